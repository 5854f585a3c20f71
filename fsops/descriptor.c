#include "fsops/descriptor.h"

#include <sys/resource.h>
#include <sys/stat.h>

bool identity_same_mount(dev_t dev_a, uint64_t mount_a, dev_t dev_b, uint64_t mount_b)
{
	if (mount_a && mount_b)
		return mount_a == mount_b;
	return dev_a == dev_b;
}

const char *mode_type_text(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "a regular file";
	case S_IFDIR:
		return "a directory";
	case S_IFLNK:
		return "a link";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	default:
		return "of an unknown type";
	}
}

bool descriptor_allowed(unsigned count)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= count;
}
