#include "fsops/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/regular.h"

/* lock_is_held takes the lock for some microseconds: even a deadline that has passed outlasts that. */
#define PATIENCE_MS 5

static int flock_now(int fd, int operation)
{
	while (flock(fd, operation | LOCK_NB) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Opens what is there, or makes it; one who loses the race to make it opens the winner's. */
static int open_lock_file(const struct pin *dir, const char *name, struct deadline until, struct err *err)
{
	for (struct backoff pause = {0};; backoff_sleep(&pause, until)) {
		struct err why = {0};
		int fd = regular_open(dir, name, O_RDWR, NULL, &why);
		if (fd == -ENOENT)
			fd = regular_create(dir, name, 0600, &why);
		if (fd >= 0)
			return fd;
		bool replaced = fd == -EEXIST || fd == -ESTALE;
		if (replaced && deadline_passed(until))
			return err_set(err, -EWOULDBLOCK, "lock", name, "it is deleted and made anew all the time");
		if (!replaced && (fd != -ENOENT || deadline_passed(until))) {
			if (err)
				*err = why;
			return fd;
		}
	}
}

/* 1, or 0: it was deleted or replaced. */
static int name_is_file(const struct pin *dir, const char *name, int fd)
{
	struct stat locked, there;
	if (fstat(fd, &locked) < 0)
		return -errno;
	if (fstatat(dir->fd, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
}

/* FNV-1a, as a place in a file. */
static off_t place_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return (off_t)(hash >> 2);
}

static int place_lock(int fd, int command, short type, const char *name, struct flock *ret_found)
{
	struct flock place = {.l_type = type, .l_whence = SEEK_SET, .l_start = place_of(name), .l_len = 1};
	while (fcntl(fd, command, &place) < 0)
		if (errno != EINTR)
			return -errno;
	if (ret_found)
		*ret_found = place;
	return 0;
}

static bool no_such_locks(int code)
{
	return code == -EINVAL || code == -EOPNOTSUPP || code == -ENOSYS || code == -EBADF || code == -EISDIR;
}

/* Shown first and looked for then: of two who do so at once, at least one sees the other. Who shares only looks.
 * -EWOULDBLOCK: somebody else shows it. */
static int show_name(const struct pin *dir, const char *name, enum lock_mode mode, int *ret_shown)
{
	struct flock found;
	AUTO_CLOSE int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = mode == LOCK_MODE_EXCLUSIVE ? place_lock(fd, F_OFD_SETLK, F_RDLCK, name, NULL) : 0;
	if (r == 0)
		r = place_lock(fd, F_OFD_GETLK, F_WRLCK, name, &found);
	if (no_such_locks(r))
		return 0;
	if (r < 0)
		return r;
	if (found.l_type != F_UNLCK)
		return -EWOULDBLOCK;
	if (mode == LOCK_MODE_EXCLUSIVE)
		*ret_shown = take_fd(&fd);
	return 0;
}

/* 1: it is ours. 0: it was deleted or replaced meanwhile. -EWOULDBLOCK: somebody has it. */
static int take_file(const struct pin *dir, const char *name, enum lock_mode mode, int fd, int *ret_shown)
{
	int r = flock_now(fd, mode == LOCK_MODE_SHARED ? LOCK_SH : LOCK_EX);
	if (r == 0)
		r = name_is_file(dir, name, fd);
	if (r <= 0)
		return r;
	r = show_name(dir, name, mode, ret_shown);
	return r < 0 ? r : 1;
}

int lock_take(const struct pin *dir, const char *name, enum lock_mode mode, struct deadline until, struct lock *ret_lock, struct err *err)
{
	struct deadline patience = deadline_in_ms(PATIENCE_MS);
	if (until.at_ns < patience.at_ns)
		until = patience;
	for (struct backoff pause = {0};; backoff_sleep(&pause, until)) {
		/* Opened anew each time: the file that is waited for may have been replaced meanwhile. */
		AUTO_CLOSE int fd = open_lock_file(dir, name, until, err);
		AUTO_CLOSE int shown = -1;
		if (fd < 0)
			return fd;
		int r = take_file(dir, name, mode, fd, &shown);
		if (r > 0) {
			ret_lock->fd = take_fd(&fd);
			ret_lock->shown = take_fd(&shown);
			return 0;
		}
		if (r < 0 && r != -EWOULDBLOCK)
			return err_code(err, r, "lock", name);
		if (deadline_passed(until))
			return err_set(err, -EWOULDBLOCK, "lock", name, r == 0 ? "it is deleted and made anew all the time" : "it is held by another process");
	}
}

int lock_is_held(const struct pin *dir, const char *name, bool *ret_held, struct err *err)
{
	struct err why = {0};
	AUTO_CLOSE int fd = regular_open(dir, name, O_RDWR, NULL, &why);
	if (fd == -ENOENT) {
		*ret_held = false;
		return 0;
	}
	if (fd < 0) {
		if (err)
			*err = why;
		return fd;
	}
	int r = flock_now(fd, LOCK_EX);
	if (r < 0 && r != -EWOULDBLOCK)
		return err_code(err, r, "lock", name);
	/* Unlocked by word: a fork of another thread may have made a second descriptor. */
	if (!r)
		(void)flock(fd, LOCK_UN);
	*ret_held = r == -EWOULDBLOCK;
	return 0;
}

int lock_keep_over_exec(struct lock *lock, struct err *err)
{
	int flags = fcntl(lock->fd, F_GETFD);
	if (flags < 0 || fcntl(lock->fd, F_SETFD, flags & ~FD_CLOEXEC) < 0)
		return err_code(err, -errno, "lock", NULL);
	return 0;
}

void lock_release(struct lock *lock)
{
	close_quietly(lock->shown);
	close_quietly(lock->fd);
	*lock = LOCK_NONE;
}
