#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsops/resolve.h"

#define OPENAT2_TRIES 64

/* -EAGAIN after so many tries is left to the walk, which needs no luck. */
int resolve_by_kernel(int at_fd, const char *relative, int flags, mode_t mode)
{
	/* O_NOFOLLOW without O_PATH would turn -ELOOP into -ENOTDIR for directories; NO_SYMLINKS says it all. */
	if (!(flags & O_PATH))
		flags &= ~O_NOFOLLOW;
	struct open_how how = {
	    .flags = (unsigned int)(flags | O_CLOEXEC),
	    .mode = flags & O_CREAT ? mode & 07777 : 0,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
	};
	for (int try = 0; try < OPENAT2_TRIES; try++) {
		long fd = syscall(SYS_openat2, at_fd, relative, &how, sizeof how);
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}
