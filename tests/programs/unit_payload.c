/* What a test unit runs: `_run NAME`, and the name says what to do. Every start adds a line to <pods dir>/<name>.starts.
 *   exit-N     exits with N          toggle   exits 1 until <pods dir>/toggle.good is there, then stays
 *   say…       prints 300 lines, stays          deaf   ignores SIGTERM, stays
 *   daemon     stays, with a child in a session of its own
 *   any other  stays */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int in_pods_dir(const char *name, const char *suffix, int flags)
{
	char path[4096];
	const char *directory = getenv("KIROCREW_POD_ENV_DIR");
	snprintf(path, sizeof path, "%s/%s%s", directory ? directory : "", name, suffix);
	return open(path, flags | O_CLOEXEC, 0600);
}

static void stay(void)
{
	for (;;)
		pause();
}

static void say(void)
{
	for (int i = 1; i <= 300; i++)
		printf("line %d\n", i);
	fflush(stdout);
}

/* What the test relies on is set before the start is told. */
static void prepare(const char *name)
{
	if (strcmp(name, "deaf") == 0)
		signal(SIGTERM, SIG_IGN);
	if (strcmp(name, "daemon") == 0 && fork() == 0) {
		setsid();
		stay();
	}
}

int main(int argc, char **argv)
{
	if (argc < 3 || strcmp(argv[argc - 2], "_run") != 0)
		return 64;
	const char *name = argv[argc - 1];
	prepare(name);
	int starts = in_pods_dir(name, ".starts", O_WRONLY | O_CREAT | O_APPEND);
	if (starts < 0 || write(starts, "start\n", 6) != 6)
		return 65;
	close(starts);
	if (strncmp(name, "exit-", 5) == 0)
		return atoi(name + 5);
	if (strcmp(name, "toggle") == 0 && in_pods_dir(name, ".good", O_RDONLY) < 0)
		return 1;
	if (strncmp(name, "say", 3) == 0)
		say();
	stay();
}
