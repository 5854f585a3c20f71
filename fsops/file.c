#include "fsops/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/regular.h"

#define READ_FIRST 4096
#define TEMPORARY_PREFIX ".tmp-"
#define TEMPORARY_DIGITS 16
#define TEMPORARY_HEAD (sizeof TEMPORARY_PREFIX - 1 + TEMPORARY_DIGITS + 1)
#define TEMPORARY_TRIES 8

static int read_some(int fd, char *into, size_t room, size_t *ret_got)
{
	ssize_t got;
	do
		got = read(fd, into, room);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	*ret_got = (size_t)got;
	return 0;
}

/* The size that fstat tells is a hint only: the file may grow, and below /proc it is 0. */
static int read_whole(int fd, size_t hint, size_t max, char **ret_bytes, size_t *ret_len)
{
	AUTO_FREE char *bytes = NULL;
	size_t len = 0, room = 0;
	for (size_t got = 1; got;) {
		if (len == room) {
			size_t wanted = room ? room * 2 : (hint ? hint + 1 : READ_FIRST);
			room = wanted > max ? max + 1 : wanted;
			char *bigger = realloc(bytes, room + 1);
			if (!bigger)
				return -ENOMEM;
			bytes = bigger;
		}
		int r = read_some(fd, bytes + len, room - len, &got);
		if (r < 0)
			return r;
		len += got;
		if (len > max)
			return -EFBIG;
		if (hint && len == hint && len < room) /* read(2) of a regular file is short at its end only */
			break;
	}
	bytes[len] = '\0';
	*ret_bytes = TAKE_PTR(bytes);
	*ret_len = len;
	return 0;
}

/* `fd` may be an error, which was told already. */
static int read_opened(int fd, const struct stat *st, const char *name, size_t max, char **ret_bytes, size_t *ret_len, struct err *err)
{
	if (fd < 0)
		return fd;
	if (max > SIZE_MAX / 4)
		return err_set(err, -EINVAL, "read", name, "the limit is out of range");
	int r = (uintmax_t)st->st_size > max ? -EFBIG : read_whole(fd, (size_t)st->st_size, max, ret_bytes, ret_len);
	if (r == -EFBIG)
		return err_set(err, r, "read", name, "it holds more than %zu bytes", max);
	return r < 0 ? err_code(err, r, "read", name) : 0;
}

int file_read(const struct pin *at, const char *name, size_t max, char **ret_bytes, size_t *ret_len, struct err *err)
{
	struct stat st;
	AUTO_CLOSE int fd = regular_open(at, name, O_RDONLY, &st, err);
	return read_opened(fd, &st, name, max, ret_bytes, ret_len, err);
}

int file_read_listed(const struct pin *at, const char *name, size_t max, char **ret_bytes, size_t *ret_len, struct err *err)
{
	struct stat st;
	AUTO_CLOSE int fd = regular_open_listed(at, name, O_RDONLY, &st, err);
	return read_opened(fd, &st, name, max, ret_bytes, ret_len, err);
}

int file_read_path(const char *path, size_t max, char **ret_bytes, size_t *ret_len, struct err *err)
{
	const char *slash = strrchr(path, '/');
	if (path[0] != '/' || !slash[1])
		return err_set(err, -EINVAL, "read", path, "not the absolute path of a file");
	char parent[PATH_MAX];
	size_t len = slash == path ? 1 : (size_t)(slash - path);
	if (len >= sizeof parent)
		return err_code(err, -ENAMETOOLONG, "read", path);
	memcpy(parent, path, len);
	parent[len] = '\0';
	AUTO_PIN struct pin at = PIN_NONE;
	int r = pin_open(parent, &at, err);
	return r < 0 ? r : file_read(&at, slash + 1, max, ret_bytes, ret_len, err);
}

int write_all(int fd, const void *bytes, size_t len)
{
	const char *next = bytes;
	while (len) {
		ssize_t put = write(fd, next, len);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		next += put;
		len -= (size_t)put;
	}
	return 0;
}

int file_create(const struct pin *at, const char *name, const void *bytes, size_t len, mode_t mode, struct err *err)
{
	AUTO_CLOSE int fd = regular_create(at, name, mode, err);
	if (fd < 0)
		return fd;
	int r = write_all(fd, bytes, len);
	if (r < 0) {
		regular_take_back(at, name, fd);
		return err_code(err, r, "write", name);
	}
	return 0;
}

static int temporary_name(const char *name, char out[NAME_MAX + 1])
{
	uint64_t random;
	ssize_t got;
	do
		got = getrandom(&random, sizeof random, 0);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof random)
		return got < 0 ? -errno : -EIO;
	(void)snprintf(out, NAME_MAX + 1, TEMPORARY_PREFIX "%016" PRIx64 "@%.*s", random, (int)(NAME_MAX - TEMPORARY_HEAD), name);
	return 0;
}

bool file_is_temporary(const char *name)
{
	size_t prefix = sizeof TEMPORARY_PREFIX - 1;
	if (strncmp(name, TEMPORARY_PREFIX, prefix) != 0)
		return false;
	return strspn(name + prefix, "0123456789abcdef") == TEMPORARY_DIGITS && name[TEMPORARY_HEAD - 1] == '@' && name[TEMPORARY_HEAD];
}

static int create_temporary(const struct pin *at, const char *name, mode_t mode, char temporary[NAME_MAX + 1], struct err *err)
{
	int r = -EEXIST;
	for (int try = 0; r == -EEXIST && try < TEMPORARY_TRIES; try++) {
		r = temporary_name(name, temporary);
		if (r < 0)
			return err_code(err, r, "write", name);
		r = regular_create(at, temporary, mode, err);
	}
	return r;
}

/* Some file systems cannot sync a directory and say EINVAL: there is nothing more to do for them. */
static int sync_directory(int fd)
{
	return fsync(fd) == 0 || errno == EINVAL ? 0 : -errno;
}

static int publish(const struct pin *at, int fd, const char *temporary, const char *name, const void *bytes, size_t len)
{
	int r = write_all(fd, bytes, len);
	if (r < 0)
		return r;
	return fsync(fd) < 0 || renameat(at->fd, temporary, at->fd, name) < 0 ? -errno : 0;
}

int file_sync_names(const struct pin *at, struct err *err)
{
	int r = sync_directory(at->fd);
	return r < 0 ? err_code(err, r, "sync", NULL) : 0;
}

int file_replace_unsynced(const struct pin *at, const char *name, const void *bytes, size_t len, mode_t mode, struct err *err)
{
	if (!pin_single_name(name))
		return err_set(err, -EINVAL, "write", name, "not a single file name");
	char temporary[NAME_MAX + 1];
	AUTO_CLOSE int fd = create_temporary(at, name, mode, temporary, err);
	if (fd < 0)
		return fd;
	int r = publish(at, fd, temporary, name, bytes, len);
	if (r < 0) {
		regular_take_back(at, temporary, fd);
		return err_code(err, r, "write", name);
	}
	return 0;
}

int file_replace(const struct pin *at, const char *name, const void *bytes, size_t len, mode_t mode, struct err *err)
{
	int r = file_replace_unsynced(at, name, bytes, len, mode, err);
	return r < 0 ? r : file_sync_names(at, err);
}

int file_remove(const struct pin *at, const char *name, bool *ret_removed, struct err *err)
{
	if (!pin_single_name(name))
		return err_set(err, -EINVAL, "remove", name, "not a single file name");
	bool removed = unlinkat(at->fd, name, 0) == 0;
	int code = removed || errno == ENOENT ? 0 : -errno;
	struct stat st;
	/* POSIX lets unlink of a directory say EPERM. */
	if (code == -EPERM && fstatat(at->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		code = -EISDIR;
	if (code < 0)
		return err_code(err, code, "remove", name);
	if (ret_removed)
		*ret_removed = removed;
	return 0;
}
