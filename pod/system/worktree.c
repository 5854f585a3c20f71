#include "pod/system/worktree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/deadline.h"
#include "pod/model/worktree_list.h"
#include "pod/system/spawn.h"

#define GIT_MS 10000
#define OUTPUT_MAX (1UL << 20)

/* Reads until the end, the deadline or the bound: what came in time counts. */
static size_t drain(int fd, char *buffer, size_t size, struct deadline until)
{
	size_t len = 0;
	while (len < size) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (poll(&ready, 1, deadline_poll_ms(until)) <= 0)
			break;
		ssize_t n = read(fd, buffer + len, size - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len;
}

static const char *git_program(void)
{
	static const char *const places[] = {"/usr/bin/git", "/usr/local/bin/git", "/opt/homebrew/bin/git"};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static int list_worktrees(const char *git, const char *repo, char *buffer, size_t size, size_t *ret_len)
{
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	AUTO_CLOSE int reading = pipes[0];
	AUTO_CLOSE int writing = pipes[1];
	char *argv[] = {(char[]){"git"}, (char[]){"-C"}, (char *)repo, (char[]){"worktree"}, (char[]){"list"}, (char[]){"--porcelain"}, (char[]){"-z"}, NULL};
	struct spawn how = SPAWN_DEFAULT;
	struct spawned child = {.pidfd = -1};
	how.program = git;
	how.argv = argv;
	how.stdio[1] = writing;
	int r = spawn(&how, &child, NULL);
	if (r < 0)
		return r;
	close_quietly(take_fd(&writing));
	*ret_len = drain(reading, buffer, size, deadline_in_ms(GIT_MS));
	(void)kill(child.pid, SIGKILL); /* our own child, not reaped yet: the number is still its own */
	(void)spawn_reap(child.pid);
	close_quietly(child.pidfd);
	return 0;
}

static bool in_worktrees_root(const struct plane *plane, const struct pod_name *name, char *out, size_t size)
{
	struct stat st;
	char path[PLANE_PATH_MAX + POD_NAME_MAX + 2];
	(void)snprintf(path, sizeof path, "%s/%s", plane->worktrees_root, name->text);
	if (!*plane->worktrees_root || strlen(path) >= size || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	(void)snprintf(out, size, "%s", path);
	return true;
}

int worktree_find(const struct plane *plane, const struct pod_name *name, char *out, size_t size, struct err *err)
{
	AUTO_FREE char *buffer = malloc(OUTPUT_MAX);
	const char *git = git_program();
	size_t len = 0;
	if (!buffer)
		return err_code(err, -ENOMEM, "worktree", name->text);
	if (git && list_worktrees(git, plane->repo, buffer, OUTPUT_MAX, &len) == 0 && worktree_list_find(buffer, len, name->text, out, size))
		return 0;
	return in_worktrees_root(plane, name, out, size) ? 0 : err_set(err, -ENOENT, "worktree", name->text, "there is no worktree of this name");
}
