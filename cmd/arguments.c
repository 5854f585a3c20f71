#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/help.h"
#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/model/refusal.h"

const struct flag_entry flag_table[FLAGS] = {
	[FLAG_JSON] = {"json", 0, NULL, "print JSON on stdout and nothing else there"},
	[FLAG_CHECKOUT] = {"checkout", 0, "DIR", "the KiroCrew checkout to run"},
	[FLAG_PORT] = {"port", 0, "N", "pin the port: it never moves"},
	[FLAG_SEED] = {"seed", 0, "X", "start from a scenario, or from the config.json of a directory"},
	[FLAG_HEALTH] = {"health", 0, "SPEC", "http[:PATH], tcp (default with {port} or $PORT) or none"},
	[FLAG_WAIT_SECS] = {"wait-secs", 0, "N", "how long to wait until it is ready (default 90)"},
	[FLAG_MEMORY_MAX] = {"memory-max", 0, "SIZE", "memory limit of this pod, such as 512M (systemd: default 4G)"},
	[FLAG_CPU_QUOTA] = {"cpu-quota", 0, "PCT", "processor quota of this pod, such as 150% (systemd: default 200%)"},
	[FLAG_APPROVAL] = {"approval", 0, "MODE", "reads, yolo or interactive"},
	[FLAG_CRONS] = {"crons", 0, NULL, "let the pod run its crons"},
	[FLAG_NO_EMBEDDINGS] = {"no-embeddings", 0, NULL, "do not load the embedding model"},
	[FLAG_BACKEND] = {"backend", 0, "B", "auto, systemd, launchd or embedded"},
	[FLAG_ALL] = {"all", 0, NULL, "all of them, whatever their age"},
	[FLAG_STOP_SECS] = {"stop-secs", 0, "N", "seconds between SIGTERM and SIGKILL (default: [payload] stop-secs at its up, else 15)"},
	[FLAG_OLDER_THAN] = {"older-than", 0, "AGE", "only pods at least this old: 90s, 15m, 3h, 2d (default 3d)"},
	[FLAG_DRY_RUN] = {"dry-run", 0, NULL, "say what would go, remove nothing"},
	[FLAG_LINES] = {"lines", 'n', "N", "the last N lines (default 100)"},
	[FLAG_FOLLOW] = {"follow", 'f', NULL, "print new lines as they come"},
	[FLAG_FOR] = {"for", 0, "MANAGER", "systemd or launchd"},
	[FLAG_AGENT] = {"agent", 0, NULL, "only the agent"},
	[FLAG_TIMEOUT] = {"timeout", 0, "S", "seconds for each reply (default 15)"},
	[FLAG_NO_SANDBOX] = {"no-sandbox", 0, NULL, "run without a sandbox; the result says so"},
	[FLAG_ENV] = {"env", 0, "K=V", "a variable of the server; may be given several times"},
	[FLAG_OWNER] = {"owner", 0, "PID", "take the pod down when this process ends; `none`: no more"},
	[FLAG_TTL] = {"ttl", 0, "AGE", "take the pod down after this time: 90s, 15m, 3h, 2d; `none`: no more"},
	[FLAG_PAYLOAD] = {"payload", 0, "WORDS", "what the pod runs, split as a shell would; without it the KiroCrew checkout"},
	[FLAG_STATE] = {"state", 0, "S", "only pods in this state, such as up; may be given several times"},
	[FLAG_WATCH] = {"watch", 0, NULL, "go on, and show it again whenever something changes"},
	[FLAG_REPLACE] = {"replace", 0, NULL, "of `mcp add`: what the server was before goes"},
	[FLAG_HELP] = {"help", 'h', NULL, "print this help"},
};

#define LONG_ONLY 256

const unsigned long flags_repeating = FLAG(ENV) | FLAG(STATE);

static size_t options_make(const struct verb *verb, struct option *options, char *letters)
{
	size_t n = 0, k = 0;
	letters[k++] = '-'; /* words and flags in any order, whatever POSIXLY_CORRECT says */
	letters[k++] = ':';
	for (int flag = 0; flag < FLAGS; flag++) {
		if (!(verb->flags & (1UL << flag)) && flag != FLAG_HELP)
			continue;
		const struct flag_entry *entry = &flag_table[flag];
		options[n++] = (struct option){.name = entry->name, .has_arg = entry->value ? required_argument : no_argument, .val = LONG_ONLY + flag};
		if (!entry->letter)
			continue;
		letters[k++] = entry->letter;
		if (entry->value)
			letters[k++] = ':';
	}
	options[n] = (struct option){0};
	letters[k] = '\0';
	return n;
}

static int flag_of_letter(int letter)
{
	for (int flag = 0; flag < FLAGS; flag++)
		if (flag_table[flag].letter == letter)
			return flag;
	return -1;
}

/* Where a verb takes a command and there is none, the flag may well be that of a command for which the `--` was forgotten. */
static int unknown_flag(const struct verb *verb, const struct arguments *arguments, char *word, struct err *err)
{
	return refuse(err, REFUSAL_USAGE, word, "`%s` has no such flag, or more than one that begins so%s", verb->name,
		      verb->command && !arguments->has_command ? "; a command stands after `--`" : "");
}

static int take_flag(const struct verb *verb, int found, struct arguments *arguments, char **argv, struct err *err)
{
	if (found == 1) { /* never further on than where it stood */
		arguments->names[arguments->name_count++] = optarg;
		return 0;
	}
	if (found == '?')
		return unknown_flag(verb, arguments, argv[optind - 1], err);
	if (found == ':')
		return refuse(err, REFUSAL_USAGE, argv[optind - 1], "this flag takes a value");
	int flag = found >= LONG_ONLY ? found - LONG_ONLY : flag_of_letter(found);
	arguments->value[flag] = optarg ? optarg : "";
	if (!(flags_repeating & (1UL << flag)))
		return 0;
	if (arguments->repeated_count == REPEATED_MAX)
		return refuse(err, REFUSAL_USAGE, optarg, "--%s can be given %d times", flag_table[flag].name, REPEATED_MAX);
	arguments->repeated[arguments->repeated_count++] = optarg;
	return 0;
}

static int split_at_dashes(int argc, char **argv, struct arguments *arguments)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0) {
			arguments->has_command = true;
			arguments->command = argv + i + 1;
			arguments->command_count = (size_t)(argc - i - 1);
			return i;
		}
	return argc;
}

static int check_counts(const struct verb *verb, const struct arguments *arguments, struct err *err)
{
	if (arguments->name_count < verb->names_min)
		return refuse(err, REFUSAL_USAGE, verb->name, "a word is missing; usage: kirocrew-pod %s %s", verb->name, verb->operands);
	if (arguments->name_count > verb->names_max)
		return refuse(err, REFUSAL_USAGE, arguments->names[verb->names_max], "one word too many; usage: kirocrew-pod %s%s%s%s", verb->name,
			      *verb->operands ? " " : "", verb->operands, verb->command ? " (the command stands after `--`)" : "");
	if (arguments->has_command && !verb->command)
		return refuse(err, REFUSAL_USAGE, verb->name, "it takes no command after `--`");
	if (arguments->has_command && arguments->command_count == 0)
		return refuse(err, REFUSAL_USAGE, verb->name, "there is no command after `--`");
	return 0;
}

int arguments_parse(const struct verb *verb, int argc, char **argv, struct arguments *ret_arguments, struct err *err)
{
	struct option options[FLAGS + 1];
	char letters[3 * FLAGS + 3];
	(void)options_make(verb, options, letters);
	struct arguments arguments = {.config = ret_arguments->config, .names = argv + 1};
	int end = split_at_dashes(argc, argv, &arguments), r = 0;
	optind = 0;
	opterr = 0;
	for (int found; r == 0 && (found = getopt_long(end, argv, letters, options, NULL)) != -1;)
		r = take_flag(verb, found, &arguments, argv, err);
	if (r == 0 && !arguments.value[FLAG_HELP])
		r = check_counts(verb, &arguments, err);
	if (r == 0)
		*ret_arguments = arguments;
	return r;
}

int argument_name(const struct arguments *arguments, size_t index, struct pod_name *ret_name, struct err *err)
{
	return pod_name_parse(arguments->names[index], strlen(arguments->names[index]), ret_name, err);
}

/* Decimal digits only: no sign, no space, no base prefix. */
static bool digits(const char *text, long max, long *ret_value)
{
	long value = 0;
	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (*text - '0');
		if (value > max)
			return false;
	}
	*ret_value = value;
	return true;
}

int argument_number(const struct arguments *arguments, enum flag flag, int min, int max, int otherwise, int *ret_number, struct err *err)
{
	const char *text = arguments->value[flag];
	long value = otherwise;
	if (text && (!digits(text, max, &value) || value < min))
		return refuse(err, REFUSAL_USAGE, text, "--%s takes a whole number from %d to %d", flag_table[flag].name, min, max);
	*ret_number = (int)value;
	return 0;
}

int argument_age(const char *text, int64_t *ret_secs, struct err *err)
{
	static const struct {
		char unit;
		long secs;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	size_t len = strlen(text);
	char number[16];
	long value = 0;
	for (size_t i = 0; len > 1 && len <= sizeof number && i < sizeof units / sizeof *units; i++) {
		if (text[len - 1] != units[i].unit)
			continue;
		(void)snprintf(number, sizeof number, "%.*s", (int)len - 1, text);
		if (!digits(number, 1000000, &value))
			break;
		*ret_secs = value * units[i].secs;
		return 0;
	}
	return refuse(err, REFUSAL_USAGE, text, "an age is a number and a unit: 90s, 15m, 3h, 2d, 1w");
}
