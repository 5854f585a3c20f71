#include "pod/system/home_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int home_stat(int at, const char *name, struct home_stat *ret_stat)
{
	struct statx st;
	unsigned want = STATX_TYPE | STATX_UID | STATX_INO | STATX_BTIME | STATX_MTIME | STATX_MNT_ID;
	if (statx(at, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH, want, &st) < 0)
		return -errno;
	*ret_stat = (struct home_stat){
		.mode = st.stx_mode,
		.uid = st.stx_uid,
		.ino = st.stx_ino,
		.mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0,
		.has_birth = st.stx_mask & STATX_BTIME,
		.birth_secs = st.stx_btime.tv_sec,
		.birth_nsecs = st.stx_btime.tv_nsec,
		.changed_secs = st.stx_mtime.tv_sec,
	};
	return 0;
}
