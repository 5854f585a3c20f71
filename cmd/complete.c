#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/verbs.h"
#include "fsops/cleanup.h"
#include "pod/lifecycle/servers.h"
#include "pod/model/refusal.h"
#include "pod/system/plane_scan.h"
#include "pod/system/seeds.h"

/* What the shell is asked to complete in its own way. */
#define FILES ":files"
#define DIRECTORIES ":directories"
#define COMMANDS ":commands"

static const struct choice {
	enum flag flag;
	const char *words; /* one after the other, a space between */
} choices[] = {
	{FLAG_BACKEND, "auto systemd launchd embedded"},
	{FLAG_APPROVAL, "reads yolo interactive"},
	{FLAG_HEALTH, "http tcp none"},
	{FLAG_FOR, "systemd launchd"},
};

/* The command line up to the cursor, understood as far as it goes. */
struct typed {
	const char *config;
	const struct verb *verb; /* NULL: none yet */
	const char *operands[8]; /* the first ones */
	size_t operand_count;
	unsigned long used;      /* flags that are given */
	int awaited;             /* the flag whose value comes next, -1 none */
	bool awaits_config;
	size_t command_words;    /* after `--` */
	bool dashes;
	const char *prefix;      /* what stands before the part that is completed: "--backend=" */
	size_t prefix_len;
	const char *current;     /* that part, as far as it is typed */
};

static void offer(const struct typed *typed, const char *word, const char *help)
{
	if (strncmp(word, typed->current, strlen(typed->current)) == 0)
		print_out("%.*s%s\t%s\n", (int)typed->prefix_len, typed->prefix, word, help);
}

static int flag_of(const struct verb *verb, const char *word, size_t len)
{
	for (int flag = 0; flag < FLAGS; flag++) {
		const struct flag_entry *entry = &flag_table[flag];
		bool known = (verb->flags & (1UL << flag)) || flag == FLAG_HELP;
		bool is_long = len > 2 && strlen(entry->name) == len - 2 && strncmp(word, "--", 2) == 0 && strncmp(word + 2, entry->name, len - 2) == 0;
		bool is_short = len == 2 && word[0] == '-' && entry->letter && word[1] == entry->letter;
		if (known && (is_long || is_short))
			return flag;
	}
	return -1;
}

/* A word of the verb that is complete. */
static void take_word(struct typed *typed, const char *word)
{
	size_t len = strcspn(word, "=");
	int flag = *word == '-' ? flag_of(typed->verb, word, len) : -1;
	if (typed->dashes) {
		typed->command_words++;
	} else if (typed->awaited >= 0) {
		typed->awaited = -1;
	} else if (strcmp(word, "--") == 0) {
		typed->dashes = true;
	} else if (flag >= 0) {
		typed->used |= (1UL << flag) & ~flags_repeating;
		typed->awaited = flag_table[flag].value && !word[len] ? flag : -1;
	} else if (*word != '-') {
		if (typed->operand_count < sizeof typed->operands / sizeof *typed->operands)
			typed->operands[typed->operand_count] = word;
		typed->operand_count++;
	}
}

static void take_global(struct typed *typed, const char *word)
{
	if (typed->awaits_config) {
		typed->config = word;
		typed->awaits_config = false;
	} else if (strcmp(word, "--config") == 0) {
		typed->awaits_config = true;
	} else if (strncmp(word, "--config=", 9) == 0) {
		typed->config = word + 9;
	} else {
		typed->verb = verb_find(word);
	}
}

/* bash takes --flag=value apart, and gives the = as a word of its own. */
static bool is_separator(const char *before, const char *word)
{
	return before && strncmp(before, "--", 2) == 0 && !strchr(before, '=') && strcmp(word, "=") == 0;
}

static void split_current(struct typed *typed)
{
	const char *equals = strncmp(typed->current, "--", 2) == 0 ? strchr(typed->current, '=') : NULL;
	if (!equals || !typed->verb || typed->dashes || typed->awaited >= 0)
		return;
	typed->awaited = flag_of(typed->verb, typed->current, (size_t)(equals - typed->current));
	typed->prefix = typed->current;
	typed->prefix_len = (size_t)(equals - typed->current) + 1;
	typed->current = equals + 1;
}

/* False: a verb that does not exist, nothing can be offered. */
static bool understand(char *const *words, size_t count, struct typed *typed)
{
	*typed = (struct typed){.awaited = -1, .prefix = "", .current = words[count - 1]};
	for (size_t i = 0; i + 1 < count; i++) {
		if (is_separator(i ? words[i - 1] : NULL, words[i]))
			continue;
		bool global = !typed->verb;
		if (!global)
			take_word(typed, words[i]);
		else
			take_global(typed, words[i]);
		if (global && !typed->verb && words[i][0] != '-' && words[i] != typed->config)
			return false;
	}
	if (is_separator(count > 1 ? words[count - 2] : NULL, typed->current))
		typed->current = "";
	split_current(typed);
	return true;
}

/* Pods that somebody knows of; a home alone may be anybody's directory. */
static void offer_pods(const struct typed *typed)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_ENTRIES struct plane_entries entries = {0};
	if (session_open(typed->config, &session, NULL) < 0 ||
	    plane_scan(&session.root, &session.pods_dir, session.around.plane.prefix, &entries, NULL) < 0)
		return;
	for (size_t i = 0; i < entries.n; i++) {
		bool given = false;
		for (size_t k = 0; k < typed->operand_count && k < sizeof typed->operands / sizeof *typed->operands; k++)
			given |= strcmp(typed->operands[k], entries.v[i].name.text) == 0;
		if (!given && entries.v[i].traces & ~(unsigned)TRACE_HOME)
			offer(typed, entries.v[i].name.text, "pod");
	}
}

static void offer_servers(const struct typed *typed, const char *pod)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	struct pod_name name;
	if (pod_name_parse(pod, strlen(pod), &name, NULL) < 0 || session_open(typed->config, &session, NULL) < 0 ||
	    servers_list(&session, &name, &servers, NULL) < 0)
		return;
	for (size_t i = 0; i < servers.n; i++)
		if (pod_name_parse(servers.v[i].name, strlen(servers.v[i].name), &name, NULL) == 0) /* others would have to be quoted */
			offer(typed, servers.v[i].name, "MCP server");
}

static void offer_words(const struct typed *typed, const char *words)
{
	for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ') {
		char word[32];
		(void)snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
		offer(typed, word, "");
	}
}

static void offer_scenarios(const struct typed *typed)
{
	AUTO_SCENARIOS struct scenario_listing listing = {0};
	if (scenarios_list(&listing, NULL) < 0)
		return;
	for (size_t i = 0; i < listing.n; i++)
		offer(typed, listing.v[i].name, "scenario");
}

static void offer_values(const struct typed *typed)
{
	const char *value = flag_table[typed->awaited].value;
	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
		if (choices[i].flag == (enum flag)typed->awaited)
			offer_words(typed, choices[i].words);
	for (int state = 0; typed->awaited == FLAG_STATE && state < POD_STATES; state++)
		offer(typed, pod_state_name((enum pod_state)state), "");
	if (typed->awaited == FLAG_SEED)
		offer_scenarios(typed);
	if (value && (strcmp(value, "DIR") == 0 || typed->awaited == FLAG_SEED))
		print_out(DIRECTORIES "\n");
}

static void offer_flags(const struct typed *typed)
{
	for (int flag = 0; flag < FLAGS; flag++) {
		char word[64];
		if (!(typed->verb->flags & ~typed->used & (1UL << flag)) && flag != FLAG_HELP)
			continue;
		(void)snprintf(word, sizeof word, "--%s", flag_table[flag].name);
		offer(typed, word, flag_table[flag].help);
	}
}

/* The word of the verb's operands that stands at this place: "NAME", "SERVER", "ACTION", "--", or "" past the last. The last one counts for all
 * that follow if it may be repeated. */
static void operand_at(const struct verb *verb, size_t index, char *out, size_t size)
{
	const char *at = verb->operands;
	*out = '\0';
	for (size_t i = 0; *at; i++) {
		size_t len = strcspn(at, " ");
		bool repeated = len > 3 && memchr(at, '.', len);
		if (i == index || (repeated && i < index)) {
			at += *at == '[';
			(void)snprintf(out, size, "%.*s", (int)strcspn(at, " .]"), at);
			return;
		}
		at += len;
		at += *at == ' ';
	}
}

static void offer_operands(const struct typed *typed)
{
	char operand[32];
	operand_at(typed->verb, typed->operand_count, operand, sizeof operand);
	if (strcmp(operand, "NAME") == 0)
		offer_pods(typed);
	else if (strcmp(operand, "SERVER") == 0)
		offer_servers(typed, typed->operands[typed->verb->actions ? 1 : 0]);
	else if (strcmp(operand, "ACTION") == 0)
		offer_words(typed, typed->verb->actions);
	else if (strcmp(operand, "--") == 0)
		offer(typed, "--", "the command follows");
}

static void offer_verbs(const struct typed *typed)
{
	for (size_t i = 0; verb_table[i]; i++)
		if (!verb_table[i]->internal)
			offer(typed, verb_table[i]->name, verb_table[i]->summary);
	if (*typed->current != '-')
		return;
	offer(typed, "--config", "read this configuration");
	offer(typed, "--version", "print the version");
	offer(typed, "--help", "print help");
}

static int run_complete(const struct arguments *arguments, struct err *err)
{
	struct typed typed;
	(void)err;
	if (!arguments->command_count || !understand(arguments->command, arguments->command_count, &typed))
		return EXIT_DONE;
	if (typed.awaits_config)
		print_out(FILES "\n");
	else if (!typed.verb)
		offer_verbs(&typed);
	else if (typed.dashes)
		print_out("%s\n", typed.command_words ? FILES : COMMANDS);
	else if (typed.awaited >= 0)
		offer_values(&typed);
	else if (*typed.current == '-')
		offer_flags(&typed);
	else
		offer_operands(&typed);
	return EXIT_DONE;
}

const struct verb verb_complete = {
	.name = "_complete",
	.operands = "-- WORD...",
	.summary = "What could stand in the place of the last word: one candidate a line, a tab and what it is; or what the shell is to complete",
	.command = true,
	.internal = true,
	.run = run_complete,
};
