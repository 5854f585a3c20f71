/* One table of verbs and flags: parsing, --help and completion come from it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "pod/lifecycle/session.h"

enum flag {
	FLAG_JSON, FLAG_CHECKOUT, FLAG_PORT, FLAG_SEED, FLAG_HEALTH, FLAG_WAIT_SECS, FLAG_MEMORY_MAX, FLAG_CPU_QUOTA, FLAG_APPROVAL, FLAG_CRONS,
	FLAG_NO_EMBEDDINGS, FLAG_BACKEND, FLAG_ALL, FLAG_STOP_SECS, FLAG_OLDER_THAN, FLAG_DRY_RUN, FLAG_LINES, FLAG_FOLLOW, FLAG_FOR, FLAG_AGENT, FLAG_TIMEOUT, FLAG_NO_SANDBOX,
	FLAG_ENV, FLAG_OWNER, FLAG_TTL, FLAG_PAYLOAD, FLAG_STATE, FLAG_WATCH, FLAG_REPLACE, FLAG_HELP,
	FLAGS,
};

struct flag_entry {
	const char *name;  /* long name */
	char letter;       /* short form, 0 none */
	const char *value; /* its value in help, NULL: takes none */
	const char *help;
};
extern const struct flag_entry flag_table[FLAGS];
extern const unsigned long flags_repeating; /* a bit each; no verb has two of them */

#define REPEATED_MAX 64
/* What stood on the command line, after the verb. */
struct arguments {
	const char *config;        /* of --config, before the verb */
	const char *value[FLAGS];  /* "" for a flag without a value; NULL: absent */
	const char *repeated[REPEATED_MAX]; /* every value of the verb's flag that may be given several times, in order */
	size_t repeated_count;
	char **names;              /* operands */
	size_t name_count;
	char **command;            /* words after `--` */
	size_t command_count;
	bool has_command;          /* there was a `--` */
};

struct verb {
	const char *name;
	const char *operands; /* "NAME [-- CMD ARG…]" */
	const char *summary;
	const char *details;  /* a paragraph for --help */
	const char *actions;  /* the words of its first operand, one after the other; NULL: it is none */
	unsigned long flags;  /* bits of enum flag */
	size_t names_min, names_max;
	bool command;         /* takes words after `--` */
	bool internal;        /* not in --help */
	int (*run)(const struct arguments *arguments, struct err *err); /* exit status, or -errno with *err */
};
extern const struct verb *const verb_table[];
const struct verb *verb_find(const char *name);

/* Its words point into argv. REFUSAL_USAGE. */
int arguments_parse(const struct verb *verb, int argc, char **argv, struct arguments *ret_arguments, struct err *err);

/* The first operand as a pod name. */
int argument_name(const struct arguments *arguments, size_t index, struct pod_name *ret_name, struct err *err);
int argument_number(const struct arguments *arguments, enum flag flag, int min, int max, int otherwise, int *ret_number, struct err *err);
int argument_age(const char *text, int64_t *ret_secs, struct err *err); /* 90s 15m 3h 2d */

#define FLAG(name) (1UL << FLAG_##name)
extern const struct verb verb_up, verb_run, verb_down, verb_ls, verb_status, verb_prune, verb_logs, verb_exec, verb_url, verb_env, verb_scenarios,
	verb_install, verb_render, verb_probe, verb_mcp, verb_doctor, verb_complete, verb_manual, verb_boot, verb_keep, verb_watch;
