#include "fsops/descriptor.h"

#include <errno.h>
#include <sys/stat.h>

/* Every mount has a device number of its own: there are no bind mounts. */
int descriptor_identity(int fd, struct identity *ret_identity)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_identity = (struct identity){.dev = st.st_dev, .ino = st.st_ino, .mode = st.st_mode, .uid = st.st_uid};
	return 0;
}

int descriptor_force_mode(int fd, mode_t mode)
{
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

int descriptor_reopen(int path_fd, int flags)
{
	(void)path_fd, (void)flags;
	return -EOPNOTSUPP;
}
