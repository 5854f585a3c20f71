#include "cmd/help.h"

#include <stdio.h>
#include <string.h>

#include "cmd/print.h"

static void flag_line(const struct flag_entry *entry)
{
	char left[64];
	if (entry->letter)
		(void)snprintf(left, sizeof left, "-%c, --%s%s%s", entry->letter, entry->name, entry->value ? " " : "", entry->value ? entry->value : "");
	else
		(void)snprintf(left, sizeof left, "    --%s%s%s", entry->name, entry->value ? " " : "", entry->value ? entry->value : "");
	print_out("  %-24s %s\n", left, entry->help);
}

void help_verb(const struct verb *verb)
{
	print_out("kirocrew-pod %s%s%s%s\n\n%s.\n", verb->name, verb->flags ? " [flags]" : "", *verb->operands ? " " : "", verb->operands, verb->summary);
	if (verb->details)
		print_out("\n%s\n", verb->details);
	print_out("\nFlags:\n");
	for (int flag = 0; flag < FLAGS; flag++)
		if ((verb->flags & (1UL << flag)) || flag == FLAG_HELP)
			flag_line(&flag_table[flag]);
}

void help_all(void)
{
	print_out("kirocrew-pod [--config FILE] VERB …: throwaway, isolated instances of a server\n\n");
	for (size_t i = 0; verb_table[i]; i++)
		if (!verb_table[i]->internal)
			print_out("  %-10s %-35s %s\n", verb_table[i]->name, verb_table[i]->operands, verb_table[i]->summary);
	print_out("\n  --config FILE  read this configuration instead of ~/.config/kirocrew-pod/config.ini\n"
		  "  --version      print the version\n"
		  "  --help         print this help; VERB --help explains a verb\n\n"
		  "Exit status: 0 done, 1 failed, 2 usage, 3 not provisioned, 69 no service manager, 70 live port, 75 busy, 78 refused.\n");
}
