#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/sandbox.h"
#include "pod/system/spawn.h"

#define HELP_BYTES_MAX 65536
#define HELP_MS 2000

#define PROGRAM "bwrap"
#define KIND SANDBOX_BWRAP

/* What another user could replace is no wall. */
static bool is_trusted(const char *path, char *why, size_t size)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return false;
	if (S_ISREG(st.st_mode) && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)) && (st.st_mode & S_IXOTH))
		return true;
	(void)snprintf(why, size, "%s is not a program of root that only root can change", path);
	return false;
}

static size_t read_all(int fd, char *out, size_t size, struct deadline until)
{
	size_t len = 0;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	while (len + 1 < size) {
		int ready = poll(&p, 1, deadline_poll_ms(until));
		ssize_t n = ready > 0 ? read(fd, out + len, size - 1 - len) : ready;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	out[len] = '\0';
	return len;
}

/* What it says, on either stream, when it is run with these words behind its path; "" when it cannot be run. */
static void ask(const char *path, char *const *words, char *out, size_t size)
{
	static char locale[] = "LC_ALL=C";
	char *argv[16] = {(char *)(uintptr_t)path};
	size_t n = 1;
	int ends[2];
	*out = '\0';
	while (words[n - 1] && n + 1 < sizeof argv / sizeof *argv) {
		argv[n] = words[n - 1];
		n++;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	AUTO_CLOSE int from = ends[0], to = ends[1];
	struct spawn spec = SPAWN_DEFAULT;
	spec.program = path;
	spec.argv = argv;
	spec.envp = (char *[]){locale, NULL};
	spec.stdio[1] = spec.stdio[2] = to;
	struct spawned child;
	if (spawn(&spec, &child, NULL) < 0)
		return;
	close_quietly(take_fd(&to));
	(void)read_all(from, out, size, deadline_in_ms(HELP_MS));
	(void)kill(child.pid, SIGKILL);
	(void)spawn_reap(child.pid);
	close_quietly(child.pidfd);
}

/* Its own list of options is the only thing that all versions and builds have in common. */
static bool knows(const char *path, const char *option)
{
	char text[HELP_BYTES_MAX];
	ask(path, (char *[]){(char[]){"--help"}, NULL}, text, sizeof text);
	return strstr(text, option) != NULL;
}

int sandbox_try(const struct sandbox_program *program, struct err *err)
{
	char text[4096], inner[sizeof program->path];
	(void)snprintf(inner, sizeof inner, "%s", program->path);
	ask(program->path,
	    (char *[]){(char[]){"--unshare-user"}, (char[]){"--unshare-pid"}, (char[]){"--cap-drop"}, (char[]){"ALL"}, (char[]){"--dev-bind"}, (char[]){"/"},
		       (char[]){"/"}, (char[]){"--proc"}, (char[]){"/proc"}, (char[]){"--"}, inner, (char[]){"--version"}, NULL},
	    text, sizeof text);
	if (strncmp(text, "bubblewrap ", strlen("bubblewrap ")) == 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return err_set(err, -ENOTSUP, "sandbox", program->path, "%s", *text ? text : "it cannot be run, or does not answer");
}

void sandbox_find_in(const char *const *directories, struct sandbox_program *ret_program)
{
	struct sandbox_program found = {.kind = SANDBOX_UNAVAILABLE};
	(void)snprintf(found.detail, sizeof found.detail, "%s is not installed", PROGRAM);
	for (; *directories; directories++) {
		(void)snprintf(found.path, sizeof found.path, "%s/%s", *directories, PROGRAM);
		if (!is_trusted(found.path, found.detail, sizeof found.detail))
			continue;
		found.kind = KIND;
		found.detail[0] = '\0';
		found.by_descriptor = KIND == SANDBOX_BWRAP && knows(found.path, "--ro-bind-fd");
		break;
	}
	if (found.kind == SANDBOX_UNAVAILABLE)
		found.path[0] = '\0';
	*ret_program = found;
}

void sandbox_find(struct sandbox_program *ret_program)
{
	static const char *const directories[] = {"/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", NULL};
	sandbox_find_in(directories, ret_program);
}

struct sandbox_program sandbox_none(void)
{
	return (struct sandbox_program){.kind = SANDBOX_OFF};
}
