/* Payloads that do not want to end. Usage: crowd MODE [N]; every process ignores every signal that can be ignored.
 *   deaf      stays                              stopped   stops itself
 *   tree N    N processes, each the parent of the next   wide N    N children
 *   respawn   a child follows each process at once, in a session of its own, for ever
 *   zombies N N children that have ended and that nobody waits for
 *   ends N FILE STARTS  appends a line to STARTS, stays until FILE is there, then exits with N, or dies by the signal -N */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	(void)nanosleep(&pause, NULL);
}

_Noreturn static void stay(void)
{
	for (;;)
		(void)pause();
}

static void hear_nothing(void)
{
	for (int number = 1; number < NSIG; number++)
		if (number != SIGCHLD)
			(void)signal(number, SIG_IGN);
}

_Noreturn static void tree(long n)
{
	for (; n > 1; n--)
		if (fork() != 0)
			stay();
	stay();
}

_Noreturn static void wide(long n)
{
	for (; n > 0; n--)
		if (fork() == 0)
			stay();
	stay();
}

/* Faster than who lists processes one by one; the first stays, so that there is a main process. */
_Noreturn static void respawn(void)
{
	if (fork() != 0)
		stay();
	for (;;) {
		pid_t child = fork();
		if (child > 0)
			_exit(0);
		if (child == 0)
			(void)setsid();
		pause_ms(1);
	}
}

_Noreturn static void zombies(long n)
{
	for (; n > 0; n--)
		if (fork() == 0)
			_exit(0);
	stay();
}

_Noreturn static void ends(int how, const char *file, const char *starts)
{
	struct rlimit no_core = {0};
	int fd = open(starts, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "start\n", 6) != 6)
		_exit(99);
	while (access(file, F_OK) < 0)
		pause_ms(50);
	if (how >= 0)
		_exit(how);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)signal(-how, SIG_DFL);
	(void)raise(-how);
	stay();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 1;
	if (strcmp(mode, "ends") == 0 && argc > 4)
		ends((int)n, argv[3], argv[4]);
	hear_nothing();
	if (strcmp(mode, "stopped") == 0)
		(void)raise(SIGSTOP);
	if (strcmp(mode, "tree") == 0)
		tree(n);
	if (strcmp(mode, "wide") == 0)
		wide(n);
	if (strcmp(mode, "respawn") == 0)
		respawn();
	if (strcmp(mode, "zombies") == 0)
		zombies(n);
	stay();
}
