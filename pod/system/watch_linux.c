#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "fsops/cleanup.h"
#include "pod/system/watch.h"

#define CHANGES (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_ONLYDIR)

int watch_directories(const struct pin *const *directories, size_t count, struct err *err)
{
	AUTO_CLOSE int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (fd < 0)
		return err_code(err, -errno, "watch", NULL);
	for (size_t i = 0; i < count; i++) {
		char path[40];
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", directories[i]->fd);
		if (inotify_add_watch(fd, path, CHANGES) < 0)
			return err_code(err, -errno, "watch", NULL);
	}
	return take_fd(&fd);
}
