#include "pod/system/launchd_ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/spawn.h"

#define WORDS_MAX 8

int launchctl_find(const struct plane *plane, char *out, size_t size, struct err *err)
{
	char places[sizeof "/bin:" + PLANE_PATH_MAX];
	(void)snprintf(places, sizeof places, "/bin:%s", plane->path);
	for (const char *place = places; *place; place += *place == ':') {
		size_t len = strcspn(place, ":");
		int n = snprintf(out, size, "%.*s/launchctl", (int)len, place);
		if (*place == '/' && n > 0 && (size_t)n < size && access(out, X_OK) == 0)
			return 0;
		place += len;
	}
	return err_set(err, -ENOENT, "launchctl", NULL, "there is no launchctl in %s", places);
}

/* To the end of what it says. */
static int listen_until(int fd, struct deadline until, char *text, size_t size, struct err *err)
{
	size_t len = 0;
	for (;;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		int r = poll(&ready, 1, deadline_poll_ms(until));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? err_code(err, -errno, "launchctl", NULL) : err_set(err, -ETIME, "launchctl", NULL, "it did not end in time");
		ssize_t n = read(fd, text + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_code(err, -errno, "launchctl", NULL);
		text[len += (size_t)n] = '\0';
		if (n == 0)
			return 0;
		if (len == size - 1)
			return err_set(err, -EFBIG, "launchctl", NULL, "it said more than %zu bytes", size - 1);
	}
}

/* It has closed its output and ends by itself, or is killed at the deadline. */
static int end_of(pid_t pid, struct deadline until, int *ret_status, struct err *err)
{
	struct backoff pause = {0};
	int status;
	pid_t r;
	while ((r = waitpid(pid, &status, WNOHANG)) == 0 || (r < 0 && errno == EINTR)) {
		if (deadline_passed(until))
			return err_set(err, -ETIME, "launchctl", NULL, "it did not end in time");
		backoff_sleep(&pause, until);
	}
	if (r < 0)
		return err_code(err, -errno, "launchctl", NULL);
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}

static int start(const char *launchctl, const char *const words[], int output, struct spawned *ret_child, struct err *err)
{
	const char *argv[WORDS_MAX + 2] = {"launchctl"};
	for (size_t i = 0; words[i]; i++) {
		if (i == WORDS_MAX)
			return err_code(err, -E2BIG, "launchctl", words[0]);
		argv[i + 1] = words[i];
	}
	struct spawn how = SPAWN_DEFAULT;
	how.program = launchctl;
	how.argv = (char *const *)argv;
	how.stdio[1] = how.stdio[2] = output;
	return spawn(&how, ret_child, err);
}

int launchctl_run(const char *launchctl, const char *const words[], struct deadline until, int *ret_status, char ret_text[LAUNCHCTL_TEXT_MAX],
		  struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_code(err, -errno, "launchctl", NULL);
	AUTO_CLOSE int reading = ends[0];
	AUTO_CLOSE int writing = ends[1];
	struct spawned child = {.pidfd = -1};
	int r = start(launchctl, words, writing, &child, err);
	if (r < 0)
		return r;
	close_quietly(take_fd(&writing));
	close_quietly(child.pidfd);
	*ret_text = '\0';
	r = listen_until(reading, until, ret_text, LAUNCHCTL_TEXT_MAX, err);
	if (r == 0)
		r = end_of(child.pid, until, ret_status, err);
	if (r < 0) {
		(void)kill(child.pid, SIGKILL); /* our own child, not reaped yet: the number is still its own */
		(void)spawn_reap(child.pid);
	}
	return r < 0 ? err_prepend(err, "%s", words[0]) : 0;
}
