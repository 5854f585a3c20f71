#include "pod/system/home_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int home_stat(int at, const char *name, struct home_stat *ret_stat)
{
	struct stat st;
	if ((*name ? fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) : fstat(at, &st)) < 0)
		return -errno;
	*ret_stat = (struct home_stat){
		.mode = st.st_mode,
		.uid = st.st_uid,
		.ino = st.st_ino,
		.has_birth = true,
		.birth_secs = st.st_birthtimespec.tv_sec,
		.birth_nsecs = (unsigned)st.st_birthtimespec.tv_nsec,
		.changed_secs = st.st_mtimespec.tv_sec,
	};
	return 0;
}
