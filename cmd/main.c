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
	print_err(&err);
	return (int)err_exit_status(&err);
}

static int usage(const char *word)
{
	struct err err = {0};
	(void)refuse(&err, REFUSAL_USAGE, word, word ? "there is no such verb or option" : "a verb is missing");
	print_err(&err);
	return EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
	const char *config = NULL;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--version") == 0)
			return print_out("kirocrew-pod %s\n", KIROCREW_POD_VERSION), 0;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "help") == 0)
			return help_all(), 0;
		if (strncmp(argv[i], "--config=", 9) == 0) {
			config = argv[i] + 9;
		} else if (strcmp(argv[i], "--config") == 0) {
			if (++i == argc)
				return usage("--config");
			config = argv[i];
		} else {
			const struct verb *verb = verb_find(argv[i]);
			return verb ? run_verb(verb, config, argc - i, argv + i) : usage(argv[i]);
		}
	}
	return usage(NULL);
}

int main(int argc, char **argv)
{
	if (fill_standard_descriptors() < 0)
		return EXIT_FAILED;
	own_signals();
	return print_end(dispatch(argc, argv));
}
