#include "fsops/bytes_kernel.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

int bytes_kernel_clone(int from, int to)
{
	return ioctl(to, FICLONE, from) < 0 ? -errno : 0;
}

ssize_t bytes_kernel_range(int from, off_t *from_at, int to, off_t *to_at, size_t size)
{
	return copy_file_range(from, from_at, to, to_at, size, 0);
}
