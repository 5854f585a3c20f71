#include <errno.h>

#include "fsops/resolve.h"

/* O_NOFOLLOW_ANY refuses links, but neither mounts nor a way up: the walk judges all of it. */
int resolve_by_kernel(int at_fd, const char *relative, int flags, mode_t mode)
{
	(void)at_fd, (void)relative, (void)flags, (void)mode;
	return -ENOSYS;
}
