/* A program with the tool's words and one planted bug, which the harness must find (tests/fault/all, controls). PLANTED names the bug; each shows only when a
 * system call or an allocation fails, or when it is killed:
 *   none      none: it is left alone, or rolls back and says so
 *   crash     it dies of SIGABRT
 *   lie       it says that it is up, and is not
 *   silence   it fails without a word
 *   residue   its record stays and is not listed
 *   stranger  it removes a file that is not its own
 *   hang      it never ends
 *   daemon    a process of it stays */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *bug;
static char home[PATH_MAX], record[PATH_MAX];

static int has(const char *name)
{
	return strcmp(bug, name) == 0;
}

static const char *below(const char *variable, const char *name, char path[PATH_MAX])
{
	const char *top = getenv(variable);
	if (top)
		(void)mkdir(top, 0700);
	(void)snprintf(path, PATH_MAX, "%s/%s", top ? top : "/nonexistent", name);
	return path;
}

static void linger(void)
{
	if (fork() == 0) {
		(void)setsid();
		for (int fd = 0; fd < 3; fd++)
			(void)close(fd);
		for (;;)
			(void)pause();
	}
}

static int report(void)
{
	const char *port = getenv("KIROCREW_POD_BASE_PORT");
	(void)printf("{\"name\":\"a\",\"status\":\"up\",\"port\":%s,\"home\":\"%s\"}\n", port ? port : "0", home);
	return fflush(stdout) ? 1 : 0;
}

static int failed(void)
{
	char stranger[PATH_MAX];
	if (has("crash"))
		abort();
	if (has("lie"))
		return report();
	if (has("hang"))
		(void)pause();
	if (has("stranger"))
		(void)unlink(below("HOME", "store/token", stranger));
	if (has("daemon"))
		linger();
	(void)rmdir(home);
	if (!has("residue"))
		(void)unlink(record);
	if (!has("silence"))
		(void)fprintf(stderr, "kirocrew-pod: a: it could not be made, as planted\n");
	return 1;
}

static int up(void)
{
	void *volatile memory = malloc(100); /* volatile: the compiler may not drop it */
	int fd = open(record, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (!memory || fd < 0 || write(fd, "x", 1) != 1)
		return failed();
	free(memory);
	(void)close(fd);
	return mkdir(home, 0700) < 0 ? failed() : report();
}

static int down(void)
{
	(void)rmdir(home);
	if (!has("residue"))
		(void)unlink(record);
	return 0;
}

static int ls(void)
{
	const char *port = getenv("KIROCREW_POD_BASE_PORT");
	int there = access(home, F_OK) == 0 || (access(record, F_OK) == 0 && !has("residue"));
	if (there)
		(void)printf("[{\"name\":\"a\",\"state\":\"up\",\"port\":%s,\"home\":\"%s\"}]\n", port ? port : "0", home);
	else
		(void)puts("[]");
	return 0;
}

int main(int argc, char **argv)
{
	(void)fcntl(0, F_GETFD); /* as the tool begins */
	bug = getenv("PLANTED") ? getenv("PLANTED") : "none";
	(void)below("KIROCREW_POD_ROOT", "a", home);
	(void)below("KIROCREW_POD_ENV_DIR", "a.env", record);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "up") == 0)
			return up();
		if (strcmp(argv[i], "down") == 0 || strcmp(argv[i], "prune") == 0)
			return down();
		if (strcmp(argv[i], "ls") == 0)
			return ls();
	}
	return 2;
}
