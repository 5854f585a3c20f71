#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fsops/contain_walk.h"

/* Type and identity never change, so a cached answer is as good: a remote file system need not be asked. */
int contain_identify(int fd, struct contain_identity *ret_identity, mode_t *ret_type)
{
	struct statx st;
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_MNT_ID, &st) < 0)
		return -1;
	*ret_identity = (struct contain_identity){
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor), .ino = st.stx_ino, .mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0};
	*ret_type = st.stx_mode & S_IFMT;
	return 0;
}

int contain_is_magic(int link)
{
	struct statfs fs;
	return fstatfs(link, &fs) < 0 ? -1 : fs.f_type == PROC_SUPER_MAGIC;
}

ssize_t contain_link_text(int link, char *out, size_t size)
{
	return readlinkat(link, "", out, size);
}

ssize_t contain_path_of(int fd, char out[CONTAIN_PATH_MAX])
{
	char self[48];
	(void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return readlink(self, out, CONTAIN_PATH_MAX);
}
