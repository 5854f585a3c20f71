#include "pod/system/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/deadline.h"
#include "fsops/file.h"
#include "fsops/folder.h"
#include "fsops/pin.h"

#define LOG "pod.log"
#define OLD_LOG "pod.log.1"
#define BLOCK 65536
#define FOLLOW_MS 100

/* A FIFO or device under the log's name would block or swallow. */
static int check_regular(int fd, struct stat *ret_st, struct err *err)
{
	if (fstat(fd, ret_st) < 0)
		return err_code(err, -errno, "log", LOG);
	return S_ISREG(ret_st->st_mode) ? 0 : err_set(err, -EINVAL, "log", LOG, "not a regular file");
}

static int open_append(const struct pin *folder, int *ret_fd, struct stat *ret_st, struct err *err)
{
	AUTO_CLOSE int fd = pin_open_file(folder, LOG, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0600, err);
	if (fd < 0)
		return fd;
	int r = check_regular(fd, ret_st, err);
	if (r == 0 && ret_st->st_nlink > 1) { /* another file's name as well: the payload linked it here, and it must not be written to */
		if (unlinkat(folder->fd, LOG, 0) < 0 && errno != ENOENT)
			return err_code(err, -errno, "log", LOG);
		close_quietly(take_fd(&fd));
		fd = pin_open_file(folder, LOG, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0600, err);
		r = fd < 0 ? fd : check_regular(fd, ret_st, err);
	}
	if (r < 0)
		return r;
	if ((ret_st->st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
		return err_code(err, -errno, "log", LOG);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int folder_make(const struct plane *plane, const struct pod_name *name, struct pin *ret_folder, struct err *err)
{
	AUTO_PIN struct pin artifacts = PIN_NONE;
	int r = pin_make_path(plane->artifacts, 0700, &artifacts, err);
	if (r == 0) /* one that is there keeps its mode: it may hold more than logs */
		r = pin_child(&artifacts, name->text, ret_folder, err);
	return r == -ENOENT ? pin_make_child(&artifacts, name->text, 0700, NULL, ret_folder, err) : r;
}

int logfile_open(const struct plane *plane, const struct pod_name *name, int *ret_fd, struct err *err)
{
	AUTO_PIN struct pin folder = PIN_NONE;
	struct stat st;
	int r = folder_make(plane, name, &folder, err);
	return r < 0 ? r : open_append(&folder, ret_fd, &st, err);
}

int logfile_begin(const struct plane *plane, const struct pod_name *name, int *ret_fd, struct err *err)
{
	AUTO_PIN struct pin folder = PIN_NONE;
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r = folder_make(plane, name, &folder, err);
	if (r == 0)
		r = open_append(&folder, &fd, &st, err);
	if (r == 0 && st.st_size >= LOGFILE_ROTATE_BYTES) {
		if (renameat(folder.fd, LOG, folder.fd, OLD_LOG) < 0)
			return err_code(err, -errno, "rotate", LOG);
		close_quietly(take_fd(&fd));
		r = open_append(&folder, &fd, &st, err);
	}
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

static int open_read(const struct pin *folder, int *ret_fd, struct stat *ret_st, struct err *err)
{
	AUTO_CLOSE int fd = pin_open_file(folder, LOG, O_RDONLY | O_NONBLOCK, 0, err);
	if (fd < 0)
		return fd;
	int r = check_regular(fd, ret_st, err);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

/* Where the last `lines` lines begin: newlines counted backward, a last one at the very end not counted. */
static int tail_find(int fd, off_t size, unsigned lines, off_t *ret_start, char *block)
{
	off_t floor = size > LOGFILE_ROTATE_BYTES ? size - LOGFILE_ROTATE_BYTES : 0;
	off_t end = size;
	unsigned seen = 0;
	while (end > floor && lines) {
		off_t begin = end - floor > BLOCK ? end - BLOCK : floor;
		ssize_t n = pread(fd, block, (size_t)(end - begin), begin);
		if (n < 0)
			return -errno;
		if (n < end - begin)
			break;
		for (ssize_t i = n; i-- > 0;) {
			if (block[i] != '\n' || begin + i == size - 1)
				continue;
			if (++seen == lines) {
				*ret_start = begin + i + 1;
				return 0;
			}
		}
		end = begin;
	}
	*ret_start = lines ? floor : size;
	return 0;
}

/* Copies from *at to the end as it is now; 1 when the reader of `to` is gone. */
static int copy_on(int from, off_t *at, int to, char *block)
{
	for (;;) {
		ssize_t n = pread(from, block, BLOCK, *at);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		int r = write_all(to, block, (size_t)n);
		if (r < 0)
			return r == -EPIPE ? 1 : r;
		*at += n;
	}
}

/* One pause of following; true when the reader is gone or a signal came that did not end us. */
static bool pause_or_gone(int to)
{
	struct pollfd reader = {.fd = to, .events = 0};
	int n = poll(&reader, 1, FOLLOW_MS);
	return n < 0 || (n > 0 && (reader.revents & (POLLERR | POLLHUP | POLLNVAL)));
}

/* After a rotation the name is another file: the rest of the old one has been copied by then. */
static int reopen_if_rotated(const struct pin *folder, int *fd, off_t *at)
{
	struct stat now, ours;
	if (fstat(*fd, &ours) < 0)
		return -errno;
	if (ours.st_size < *at)
		*at = 0;
	if (fstatat(folder->fd, LOG, &now, AT_SYMLINK_NOFOLLOW) < 0 || (now.st_dev == ours.st_dev && now.st_ino == ours.st_ino))
		return 0;
	AUTO_CLOSE int fresh = -1;
	int r = open_read(folder, &fresh, &now, NULL);
	if (r < 0)
		return r;
	close_quietly(*fd);
	*fd = take_fd(&fresh);
	*at = 0;
	return 1;
}

/* Deleted, and none in its place: the pod was taken down. */
static bool has_gone(const struct pin *folder, int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_nlink == 0 && fstatat(folder->fd, LOG, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static int follow_on(const struct pin *folder, int *fd, off_t *at, int to, char *block)
{
	for (bool gone = false; !gone && !pause_or_gone(to);) {
		int rotated, r;
		gone = has_gone(folder, *fd); /* what was written until then is copied still */
		do {
			r = copy_on(*fd, at, to, block);
			if (r != 0)
				return r < 0 ? r : 0;
			rotated = reopen_if_rotated(folder, fd, at);
			if (rotated < 0)
				return rotated;
		} while (rotated);
	}
	return 0;
}

static int folder_open(const struct plane *plane, const struct pod_name *name, struct pin *ret_folder, struct err *err)
{
	AUTO_PIN struct pin artifacts = PIN_NONE;
	int r = pin_open(plane->artifacts, &artifacts, err);
	return r < 0 ? r : pin_child(&artifacts, name->text, ret_folder, err);
}

int logfile_copy(const struct plane *plane, const struct pod_name *name, unsigned lines, bool follow, int to, struct err *err)
{
	AUTO_PIN struct pin folder = PIN_NONE;
	AUTO_CLOSE int fd = -1;
	AUTO_FREE char *block = malloc(BLOCK);
	struct stat st;
	off_t at = 0;
	if (!block)
		return err_code(err, -ENOMEM, "log", name->text);
	int r = folder_open(plane, name, &folder, err);
	if (r == 0)
		r = open_read(&folder, &fd, &st, err);
	if (r < 0)
		return r;
	r = tail_find(fd, st.st_size, lines, &at, block);
	if (r == 0)
		r = copy_on(fd, &at, to, block);
	if (r == 0 && follow)
		r = follow_on(&folder, &fd, &at, to, block);
	return r < 0 ? err_code(err, r, "log", name->text) : 0;
}

int logfile_line(const struct plane *plane, const struct pod_name *name, const char *line, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	struct iovec parts[] = {{(void *)(uintptr_t)line, strlen(line)}, {(char[]){"\n"}, 1}};
	int r = logfile_open(plane, name, &fd, err);
	if (r < 0)
		return r;
	return writev(fd, parts, 2) < 0 ? err_code(err, -errno, "log", name->text) : 0;
}

/* A link or a file in the place of the directory of all logs: then there are none. */
static bool has_no_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) < 0 ? errno == ENOENT || errno == ELOOP || errno == ENOTDIR : !S_ISDIR(st.st_mode);
}

int logfile_forget(const struct plane *plane, const struct pod_name *name, struct err *err)
{
	static const char *const logs[] = {LOG, OLD_LOG};
	AUTO_PIN struct pin artifacts = PIN_NONE;
	struct err why = {0};
	int r = pin_open(plane->artifacts, &artifacts, &why);
	if (r < 0 && has_no_directory(plane->artifacts))
		return 0;
	if (r == 0)
		r = folder_forget(&artifacts, name->text, logs, sizeof logs / sizeof *logs, NULL, &why);
	if (r < 0 && err)
		*err = why;
	return r;
}

int logfile_exists(const struct plane *plane, const struct pod_name *name, bool *ret_exists, struct err *err)
{
	AUTO_PIN struct pin artifacts = PIN_NONE, folder = PIN_NONE;
	struct err why = {0};
	struct stat st;
	int r = pin_open(plane->artifacts, &artifacts, &why);
	bool none = r < 0 && has_no_directory(plane->artifacts);
	if (r == 0) {
		r = pin_child(&artifacts, name->text, &folder, &why);
		none = r == -ENOENT || (r < 0 && pin_other_stands(&artifacts, name->text, S_IFDIR));
	}
	if (r < 0 && !none) {
		if (err)
			*err = why;
		return r;
	}
	*ret_exists = r == 0 && fstatat(folder.fd, LOG, &st, AT_SYMLINK_NOFOLLOW) == 0;
	return 0;
}
