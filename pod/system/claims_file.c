#include "pod/system/claims_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"

#define KEPT_BYTES_MAX (16 << 20)
#define TICK_NS INT64_C(2000000000) /* the coarsest time stamps that a file system has: FAT's */

void claims_kept_free(struct claims_kept *kept)
{
	claims_free(&kept->claims);
}

static int64_t changed_ns(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

static bool read_whole(int fd, char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = pread(fd, bytes + at, len - at, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

void claims_load(const struct lock *plane, struct claims_kept *ret_kept)
{
	struct stat st;
	*ret_kept = (struct claims_kept){0};
	if (fstat(plane->fd, &st) < 0 || st.st_size <= 0 || st.st_size > KEPT_BYTES_MAX)
		return;
	AUTO_FREE char *bytes = malloc((size_t)st.st_size);
	if (!bytes || !read_whole(plane->fd, bytes, (size_t)st.st_size))
		return;
	ret_kept->kept_ns = changed_ns(&st);
	(void)claims_parse(bytes, (size_t)st.st_size, &ret_kept->claims, NULL);
}

void claims_store(const struct lock *plane, const struct claims *claims)
{
	AUTO_FREE char *bytes = NULL;
	size_t len = 0;
	if (claims_render(claims, &bytes, &len, NULL) < 0 || len > KEPT_BYTES_MAX)
		return;
	/* Whoever is killed in between leaves what is not whole, and is not used. */
	if (ftruncate(plane->fd, 0) == 0 && lseek(plane->fd, 0, SEEK_SET) == 0)
		(void)write_all(plane->fd, bytes, len);
}

int record_stamp(const struct pin *pods_dir, const struct pod_name *name, struct stamp *ret_stamp)
{
	struct stat st;
	if (fstatat(pods_dir->fd, pod_file_record(name).text, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_stamp = (struct stamp){.inode = st.st_ino, .changed_ns = changed_ns(&st), .bytes = st.st_size};
	return 0;
}

const struct claim *claims_still(const struct claims_kept *kept, const struct stamp *stamp)
{
	return stamp->changed_ns < kept->kept_ns - TICK_NS ? claims_find(&kept->claims, stamp) : NULL;
}
