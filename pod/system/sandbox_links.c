#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/sandbox_parts.h"

#define DEPTH_MAX 64
#define ENTRIES_MAX 65536

struct scan {
	struct deadline until;
	size_t entries;
	struct err *err;
};

static int scan_directory(struct scan *scan, int fd, const char *path, unsigned depth);

static int judge(struct scan *scan, int dir, const char *path, const char *name, unsigned depth)
{
	struct stat st;
	char below[PLANE_PATH_MAX];
	(void)snprintf(below, sizeof below, "%s/%s", path, name);
	if (++scan->entries > ENTRIES_MAX || deadline_passed(scan->until))
		return err_set(scan->err, -E2BIG, "seal", below, "run holds too much to be looked through");
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT ? 0 : err_code(scan->err, -errno, "seal", below);
	if (S_ISREG(st.st_mode) && st.st_nlink > 1)
		return err_set(scan->err, -EMLINK, "seal", below, "this file has a second name, through which it could be written");
	if (!S_ISDIR(st.st_mode))
		return 0;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) /* a directory that we may not read is not ours, and neither are its files */
		return errno == ENOENT || errno == EACCES ? 0 : err_code(scan->err, -errno, "seal", below);
	return scan_directory(scan, fd, below, depth + 1);
}

/* Takes fd over. */
static int scan_directory(struct scan *scan, int fd, const char *path, unsigned depth)
{
	DIR *list = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
	if (!list) {
		int code = depth < DEPTH_MAX ? -errno : -E2BIG;
		close_quietly(fd);
		return err_code(scan->err, code, "seal", path);
	}
	const struct dirent *entry;
	int r = 0, more = 0;
	while (r == 0 && (more = listing_next(list, &entry)) > 0) {
		if (!strcmp(path, "run/mcp-tmp") && !strncmp(entry->d_name, "probe-", 6))
			continue;
		r = judge(scan, dirfd(list), path, entry->d_name, depth);
	}
	(void)closedir(list);
	return r == 0 && more < 0 ? err_code(scan->err, more, "seal", path) : r;
}

int sandbox_links_check(const struct pin *run, struct deadline until, struct err *err)
{
	struct scan scan = {.until = until, .err = err};
	int fd = openat(run->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_code(err, -errno, "seal", "run") : scan_directory(&scan, fd, "run", 0);
}
