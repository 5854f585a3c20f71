#include <stdio.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/model/plane.h"
#include "pod/model/refusal.h"

/* scdoc(5): a backslash takes every other meaning from the character behind it. */
static void print_plain(const char *text)
{
	for (; *text; text++)
		print_out("%s%c", strchr("\\*_[]<>#|~`", *text) ? "\\" : "", *text);
}

static void print_flag(const struct flag_entry *entry)
{
	print_out("*");
	if (entry->letter)
		print_out("-%c*, *", entry->letter);
	print_out("--");
	print_plain(entry->name);
	print_out("*");
	if (entry->value) {
		print_out(" _");
		print_plain(entry->value);
		print_out("_");
	}
	print_out("\n\t");
	print_plain(entry->help);
	print_out("\n\n");
}

/* Columns that are aligned by spaces stay as they are. */
static void print_details(const char *details)
{
	bool aligned = strstr(details, "  ");
	if (aligned)
		print_out("```\n%s\n```\n\n", details);
	else
		print_plain(details);
	if (!aligned)
		print_out("\n\n");
}

static void print_verb(const struct verb *verb)
{
	print_out("## %s%s%s\n\n", verb->name, *verb->operands ? " " : "", verb->operands); /* in a heading nothing has a meaning */
	print_plain(verb->summary);
	print_out("%s\n\n", verb->summary[strlen(verb->summary) - 1] == '?' ? "" : ".");
	if (verb->details)
		print_details(verb->details);
	for (int flag = 0; flag < FLAGS; flag++)
		if (verb->flags & (1UL << flag))
			print_flag(&flag_table[flag]);
}

static void print_verbs(void)
{
	print_out("# VERBS\n\nEvery verb takes *--help*. Long options take = or a word of their own; *--* ends them.\n\n");
	for (size_t i = 0; verb_table[i]; i++)
		if (!verb_table[i]->internal)
			print_verb(verb_table[i]);
}

static void print_settings(void)
{
	print_out("# ENVIRONMENT\n\nA setting is taken from its variable, else from the \\[plane\\] section of the configuration file, else it has its default. "
		  "What is set but empty is unset.\n\n");
	for (int setting = 0; setting < PLANE_SETTINGS; setting++) {
		const struct plane_setting_entry *entry = &plane_settings[setting];
		print_out("*");
		print_plain(entry->variable);
		print_out("*, key *");
		print_plain(entry->key);
		print_out("*\n\t");
		print_plain(entry->meaning);
		if (entry->default_value) {
			print_out(" (default ");
			print_plain(entry->default_value);
			print_out(")");
		}
		print_out("\n\n");
	}
}

static int run_manual(const struct arguments *arguments, struct err *err)
{
	(void)arguments, (void)err;
	print_verbs();
	print_settings();
	return EXIT_DONE;
}

const struct verb verb_manual = {
	.name = "_manual",
	.operands = "",
	.summary = "The part of the manual page that the tables say, for scdoc",
	.internal = true,
	.run = run_manual,
};
