#include "pod/system/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fsops/cleanup.h"

void watch_free(struct watch_set *watch)
{
	free(watch->fds);
	*watch = (struct watch_set){0};
}

int watch_add(struct watch_set *watch, int fd)
{
	int *grown = realloc(watch->fds, (watch->n + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	watch->fds = grown;
	grown[watch->n++] = fd;
	return 0;
}

int watch_await(const struct watch_set *watch, struct deadline until, struct err *err)
{
	AUTO_FREE struct pollfd *polled = calloc(watch->n + 1, sizeof *polled);
	if (!polled)
		return err_code(err, -ENOMEM, "watch", NULL);
	for (size_t i = 0; i < watch->n; i++)
		polled[i] = (struct pollfd){.fd = watch->fds[i], .events = POLLIN};
	int ready = poll(polled, (nfds_t)watch->n, deadline_poll_ms(until));
	if (ready < 0 && errno != EINTR)
		return err_code(err, -errno, "watch", NULL);
	return ready < 0 ? 2 : ready > 0;
}

bool watch_is_readable(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	return fd >= 0 && poll(&polled, 1, 0) > 0;
}

bool watch_is_pipe(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

bool watch_has_no_reader(int fd)
{
	struct pollfd polled = {.fd = fd};
	return watch_is_pipe(fd) && poll(&polled, 1, 0) > 0 && (polled.revents & POLLERR);
}
