/* Stands in for kirocrew-pod where only the keeper matters: `_keep NAME` is the real keeper with times of the environment, `_run NAME` becomes the
 * payload that TEST_PAYLOAD names ("exit:3", "tree:500", …) and first appends a line to the file TEST_STARTS_FILE. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fsops/pin.h"
#include "pod/system/keeper.h"
#include "pod/system/surroundings.h"

static int64_t setting(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	return text ? atoll(text) : otherwise;
}

static int keep(const char *config, const char *text)
{
	struct surroundings around = {0};
	struct pod_name name;
	struct err err = {0};
	AUTO_PIN struct pin pods_dir = PIN_NONE;
	if (pod_name_parse(text, strlen(text), &name, &err) < 0 || surroundings_read(config, &around, &err) < 0 ||
	    pin_open(around.plane.pods_dir, &pods_dir, &err) < 0) {
		fprintf(stderr, "keeper_host: %s: %s\n", err.subject, err.text);
		return 1;
	}
	if (getenv("TEST_KEEPER_DIES"))
		return 9;
	struct service_context context = {.plane = &around.plane, .pods_dir = &pods_dir, .program = around.program, .config_file = config};
	struct keeper_limits limits = {
		.restart_ms = setting("TEST_RESTART_MS", keeper_limits_default.restart_ms),
		.sweep_ms = setting("TEST_SWEEP_MS", keeper_limits_default.sweep_ms),
		.window_ms = setting("TEST_WINDOW_MS", keeper_limits_default.window_ms),
		.starts = (unsigned)setting("TEST_STARTS", keeper_limits_default.starts),
	};
	if (keeper_run(&context, &name, &limits, &err) < 0) {
		fprintf(stderr, "keeper_host: %s: %s\n", err.subject, err.text);
		return 1;
	}
	return 0;
}

static void ignore_all(void)
{
	for (int s = 1; s < NSIG; s++)
		if (s != SIGCHLD)
			(void)signal(s, SIG_IGN);
}

_Noreturn static void forever(void)
{
	for (;;)
		pause();
}

static void nap_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	(void)nanosleep(&t, NULL);
}

/* Tells the tests, by a file, that all is set up. */
static void ready(void)
{
	const char *file = getenv("TEST_READY_FILE");
	if (file)
		close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static int tree(int size)
{
	for (int i = 1; i < size; i++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0) {
			if (i % 3 == 0)
				(void)setsid();
			if (i % 5 == 0)
				(void)signal(SIGTERM, SIG_IGN);
			if (i % 7 == 0 && fork() == 0)
				forever();
			forever();
		}
	}
	ready();
	forever();
}

/* Up to `limit` alive; every one makes others as fast as it can, and a counter shared by all stops it at the limit. */
static int bomb(int limit)
{
	int pipe_ends[2];
	if (pipe(pipe_ends) < 0)
		return 1;
	for (int i = 0; i < limit; i++)
		(void)!write(pipe_ends[1], "x", 1);
	(void)fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
	ignore_all();
	(void)signal(SIGCHLD, SIG_IGN);
	ready();
	for (;;) {
		char token;
		if (read(pipe_ends[0], &token, 1) != 1) {
			nap_ms(100);
			continue;
		}
		(void)fork();
	}
}

/* Each generation daemonizes its successor and ends: no pid lives longer than a moment. */
static int respawner(void)
{
	pid_t keeper = (pid_t)setting(KEEPER_ENV_KEEPER, 0);
	ignore_all();
	ready();
	if (fork() > 0)
		forever();
	for (;;) {
		if (kill(keeper, 0) < 0) /* only so that a failed test does not leave it for ever */
			_exit(0);
		pid_t pid = fork();
		if (pid < 0)
			nap_ms(1);
		if (pid == 0)
			(void)setsid();
		if (pid > 0) {
			nap_ms(2);
			_exit(0);
		}
	}
}

static int zombies(int count)
{
	for (int i = 0; i < count; i++)
		if (fork() == 0)
			_exit(0);
	ready();
	forever();
}

/* L07: double fork, session of its own, a listener. */
static int daemonize(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		(void)setsid();
		if (fork() > 0)
			_exit(0);
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 5) < 0)
			_exit(1);
		(void)signal(SIGTERM, SIG_IGN);
		ready();
		forever();
	}
	(void)waitpid(pid, NULL, 0);
	forever();
}

/* L06: the leader obeys SIGTERM at once, a child of its group does not. */
static int leader_obeys(void)
{
	if (fork() == 0) {
		(void)signal(SIGTERM, SIG_IGN);
		ready();
		forever();
	}
	forever();
}

/* L01: a writer that ignores SIGTERM and makes the home again and again. */
static int writer(void)
{
	const char *home = getenv("TEST_HOME");
	if (fork() > 0)
		forever();
	(void)signal(SIGTERM, SIG_IGN);
	ready();
	if (!home)
		return 1;
	for (char path[4200];;) {
		(void)mkdir(home, 0700);
		(void)snprintf(path, sizeof path, "%s/log", home);
		int fd = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
		(void)!write(fd, "line\n", 5);
		close(fd);
		nap_ms(50);
	}
}

/* What the payload inherited, one line each. */
static int show(void)
{
	FILE *out = fopen(getenv("TEST_SHOW_FILE"), "we");
	if (!out)
		return 1;
	for (int fd = 0; fd < 256; fd++)
		if (fd != fileno(out) && fcntl(fd, F_GETFD) >= 0)
			fprintf(out, "fd %d\n", fd);
	sigset_t mask;
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int s = 1; s < NSIG; s++) {
		struct sigaction action;
		if (sigismember(&mask, s) == 1)
			fprintf(out, "blocked %d\n", s);
		if (sigaction(s, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			fprintf(out, "ignored %d\n", s);
	}
	fprintf(out, "session %d\nkeeper %s\nid %s\ninvocation %s\nroot %s\nhome %s\n", getsid(0) == getpid(), getenv(KEEPER_ENV_KEEPER), getenv(KEEPER_ENV_ID),
		getenv(KEEPER_ENV_INVOCATION), getenv("KIROCREW_POD_ROOT"), getenv("HOME"));
	fclose(out);
	ready();
	forever();
}

static int run(const char *payload)
{
	int number = strchr(payload, ':') ? atoi(strchr(payload, ':') + 1) : 0;
	const char *starts = getenv("TEST_STARTS_FILE");
	int fd = starts ? open(starts, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600) : -1;
	if (fd >= 0) {
		char line[32];
		int len = snprintf(line, sizeof line, "%d\n", (int)getpid());
		(void)!write(fd, line, (size_t)len);
		close(fd);
	}
#define IS(word) (strncmp(payload, word, strlen(word)) == 0)
	if (IS("exit:"))
		return number;
	if (IS("signal:")) {
		(void)prctl(PR_SET_DUMPABLE, 0);
		(void)signal(number, SIG_DFL); /* a sanitizer catches some */
		(void)raise(number);
		return 99;
	}
	if (IS("stubborn"))
		ignore_all();
	if (IS("says")) {
		printf("hello from the payload\n");
		fflush(stdout);
	}
	if (IS("stops-itself")) {
		ready();
		(void)raise(SIGSTOP);
	}
	if (IS("left:") && fork() > 0) /* ends itself and leaves a child behind */
		return number;
	if (IS("tree:"))
		return tree(number);
	if (IS("bomb:"))
		return bomb(number);
	if (IS("respawner"))
		return respawner();
	if (IS("zombies:"))
		return zombies(number);
	if (IS("daemon"))
		return daemonize();
	if (IS("leader"))
		return leader_obeys();
	if (IS("writer"))
		return writer();
	if (IS("show"))
		return show();
	ready();
	forever();
}

int main(int argc, char **argv)
{
	const char *config = NULL;
	if (argc > 2 && strcmp(argv[1], "--config") == 0) {
		config = argv[2];
		argv += 2;
		argc -= 2;
	}
	if (argc == 3 && strcmp(argv[1], "_keep") == 0)
		return keep(config, argv[2]);
	if (argc == 3 && strcmp(argv[1], "_run") == 0)
		return run(getenv("TEST_PAYLOAD") ? getenv("TEST_PAYLOAD") : "sleep");
	return 2;
}
