#include "fsops/bytes_kernel.h"

#include <errno.h>

/* fclonefileat(2) clones to a name that does not exist yet, never to a descriptor. */
int bytes_kernel_clone(int from, int to)
{
	(void)from, (void)to;
	return -EOPNOTSUPP;
}

ssize_t bytes_kernel_range(int from, off_t *from_at, int to, off_t *to_at, size_t size)
{
	(void)from, (void)from_at, (void)to, (void)to_at, (void)size;
	errno = ENOSYS;
	return -1;
}
