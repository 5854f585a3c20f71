#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/help.h"
#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/model/refusal.h"
#include "pod/system/interrupt.h"

const struct verb *const verb_table[] = {
	&verb_up,     &verb_run,      &verb_down,	&verb_ls,     &verb_status, &verb_prune, &verb_logs,   &verb_exec,   &verb_url,
	&verb_env,    &verb_scenarios, &verb_install, &verb_render, &verb_probe,  &verb_mcp,	 &verb_doctor, &verb_complete, &verb_manual,
	&verb_boot,   &verb_keep,     &verb_watch,	NULL,
};

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; verb_table[i]; i++)
		if (strcmp(verb_table[i]->name, name) == 0)
			return verb_table[i];
	return NULL;
}

/* No file that we open may become descriptor 0, 1 or 2. */
static int fill_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
			return -1;
	return 0;
}

/* What the caller left ignored or blocked is not ours: waits must work, and a closed pipe or a full quota is an error, not a death. */
static void own_signals(void)
{
	sigset_t none;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}

/* A mistake on the command line: where its right form is found. */
static void print_mistake(const struct err *err, const char *verb)
{
	print_note("%s%s%s; see `kirocrew-pod %s%s--help`", err->subject, *err->subject ? ": " : "", err->text, verb, *verb ? " " : "");
}

static int run_verb(const struct verb *verb, const char *config, int argc, char **argv)
{
	struct err err = {0};
	struct arguments arguments = {.config = config};
	int r = arguments_parse(verb, argc, argv, &arguments, &err);
	if (r == 0 && arguments.value[FLAG_HELP]) {
		help_verb(verb);
		return 0;
	}
	if (r == 0)
		r = verb->run(&arguments, &err);
	if (r >= 0)
		return r;
	if (err.refusal == REFUSAL_USAGE)
		print_mistake(&err, verb->internal ? "" : verb->name);
	else
		print_err(&err);
	return (int)err_exit_status(&err);
}

static int usage(const char *word, const char *why)
{
	struct err err = {0};
	(void)refuse(&err, REFUSAL_USAGE, word, "%s", why);
	print_mistake(&err, "");
	return EXIT_USAGE;
}

static int no_such_verb(const char *word)
{
	char why[512] = "there is no such verb or option; there are";
	size_t used = strlen(why);
	for (size_t i = 0; verb_table[i] && used < sizeof why; i++)
		if (!verb_table[i]->internal)
			used += (size_t)snprintf(why + used, sizeof why - used, "%s %s", i ? "," : "", verb_table[i]->name);
	return usage(word, why);
}

/* `help VERB` is what people type who know other tools. */
static int help(const char *word)
{
	const struct verb *verb = word ? verb_find(word) : NULL;
	if (word && !verb)
		return no_such_verb(word);
	if (verb)
		help_verb(verb);
	else
		help_all();
	return EXIT_DONE;
}

static int dispatch(int argc, char **argv)
{
	const char *config = NULL;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--version") == 0)
			return print_out("kirocrew-pod %s\n", KIROCREW_POD_VERSION), 0;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "help") == 0)
			return help(argv[i + 1]);
		if (strncmp(argv[i], "--config=", 9) == 0) {
			config = argv[i] + 9;
		} else if (strcmp(argv[i], "--config") == 0) {
			if (++i == argc)
				return usage("--config", "a file has to follow");
			config = argv[i];
		} else {
			const struct verb *verb = verb_find(argv[i]);
			return verb ? run_verb(verb, config, argc - i, argv + i) : no_such_verb(argv[i]);
		}
	}
	return usage(NULL, "a verb is missing");
}

int main(int argc, char **argv)
{
	if (fill_standard_descriptors() < 0)
		return EXIT_FAILED;
	own_signals();
	int status = print_end(dispatch(argc, argv));
	interrupt_obey();
	return status;
}
