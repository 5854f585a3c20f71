#include "fsops/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fsops/cleanup.h"

#define DESCRIPTORS_MOST 65536 /* as spawn_child.c has it */
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* one number on every Linux architecture but alpha */
#endif

#define PROC_NAME_SIZE 48

/* The same numbers as statx gives, since Linux 3.15. */
static uint64_t mount_from_fdinfo(int fd)
{
	char name[PROC_NAME_SIZE], text[512];
	(void)snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
	AUTO_CLOSE int info = open(name, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return 0;
	ssize_t got = read(info, text, sizeof text - 1);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	const char *line = strstr(text, "mnt_id:");
	uint64_t mount = 0;
	return line && sscanf(line, "mnt_id: %" SCNu64, &mount) == 1 ? mount : 0;
}

int descriptor_identity(int fd, struct identity *ret_identity)
{
	struct statx st;
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MODE | STATX_UID | STATX_INO | STATX_MNT_ID, &st) < 0)
		return -errno;
	*ret_identity = (struct identity){
	    .dev = makedev(st.stx_dev_major, st.stx_dev_minor),
	    .ino = st.stx_ino,
	    .mode = st.stx_mode,
	    .uid = st.stx_uid,
	    .mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : mount_from_fdinfo(fd),
	};
	return 0;
}

int descriptor_force_mode(int fd, mode_t mode)
{
	if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	/* A filter that does not know the call says EPERM; a real EPERM is said again below. */
	if (errno != ENOSYS && errno != EPERM && errno != EINVAL)
		return -errno;
	int first = -errno;
	char name[PROC_NAME_SIZE];
	(void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	if (chmod(name, mode) == 0)
		return 0;
	if (errno != ENOENT && errno != ENOTDIR)
		return -errno;
	if (fchmod(fd, mode) == 0)
		return 0;
	return errno == EBADF ? first : -errno;
}

int descriptor_reopen(int path_fd, int flags)
{
	char name[PROC_NAME_SIZE];
	(void)snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
	int fd = open(name, flags | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT || errno == ENOTDIR ? -EOPNOTSUPP : -errno;
}

void descriptor_close_range(unsigned first, unsigned last)
{
	struct rlimit limit = {.rlim_cur = 1024};
	if (syscall(SYS_close_range, first, last, 0U) == 0)
		return;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	rlim_t end = limit.rlim_cur < DESCRIPTORS_MOST ? limit.rlim_cur : DESCRIPTORS_MOST;
	for (unsigned fd = first; fd < end && fd <= last; fd++)
		(void)close((int)fd);
}
