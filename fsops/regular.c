#include "fsops/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/descriptor.h"
#include "fsops/platform.h"

/* Without /proc the name is opened again: non-blocking, and it must still be the file that was judged. */
static int open_judged(const struct pin *at, const char *name, int flags, int held, const struct stat *judged)
{
	int fd = descriptor_reopen(held, flags | O_NONBLOCK | O_NOCTTY);
	if (fd != -EOPNOTSUPP)
		return fd;
	AUTO_CLOSE int again = openat(at->fd, name, flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (again < 0 || fstat(again, &st) < 0)
		return -errno;
	return st.st_dev == judged->st_dev && st.st_ino == judged->st_ino ? take_fd(&again) : -ESTALE;
}

static int judge(int fd, const char *name, struct stat *ret_stat, struct err *err)
{
	if (fstat(fd, ret_stat) < 0)
		return err_code(err, -errno, "open", name);
	if (S_ISLNK(ret_stat->st_mode))
		return err_set(err, -ELOOP, "open", name, "it is a link, which is not followed here");
	if (!S_ISREG(ret_stat->st_mode))
		return err_set(err, -EINVAL, "open", name, "it is %s, not a regular file", mode_type_text(ret_stat->st_mode));
	return 0;
}

int regular_open(const struct pin *at, const char *name, int flags, struct stat *ret_stat, struct err *err)
{
	AUTO_CLOSE int held = pin_open_file(at, name, O_PATH_ITSELF, 0, err);
	if (held < 0)
		return held;
	struct stat st;
	int r = judge(held, name, &st, err);
	if (r < 0)
		return r;
	int fd = open_judged(at, name, flags, held, &st);
	if (fd < 0)
		return err_code(err, fd, "open", name);
	if (ret_stat)
		*ret_stat = st;
	return fd;
}

int regular_open_listed(const struct pin *at, const char *name, int flags, struct stat *ret_stat, struct err *err)
{
	AUTO_CLOSE int fd = pin_open_file(at, name, flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0, NULL);
	struct stat st;
	if (fd < 0 || judge(fd, name, &st, NULL) < 0)
		return regular_open(at, name, flags, ret_stat, err); /* it has become something else: judged before it is opened, like any other */
	if (ret_stat)
		*ret_stat = st;
	return take_fd(&fd);
}

int regular_create(const struct pin *at, const char *name, mode_t mode, struct err *err)
{
	/* Nobody but the owner until fchmod has undone what the umask took. */
	AUTO_CLOSE int fd = pin_open_file(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode & 0600, err);
	if (fd < 0)
		return fd;
	if (fchmod(fd, mode) < 0) {
		int code = -errno;
		regular_take_back(at, name, fd);
		return err_code(err, code, "create", name);
	}
	return take_fd(&fd);
}

void regular_take_back(const struct pin *at, const char *name, int fd)
{
	struct stat ours, there;
	if (fstat(fd, &ours) < 0 || fstatat(at->fd, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
		(void)unlinkat(at->fd, name, 0);
}
