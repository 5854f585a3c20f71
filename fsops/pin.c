#include "fsops/pin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/descriptor.h"
#include "fsops/resolve.h"
#include "fsops/platform.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC)

static int say(struct err *err, int code, const char *stage, const char *subject)
{
	switch (code) {
	case -ELOOP:
		return err_set(err, code, stage, subject, "it is a link, which is not followed here");
	case -EXDEV:
		return err_set(err, code, stage, subject, "it is a mount point, which is not entered");
	default:
		return err_code(err, code, stage, subject);
	}
}

static int adopt(int fd, struct pin *ret_pin)
{
	struct identity id;
	int r = descriptor_identity(fd, &id);
	if (!r && !S_ISDIR(id.mode))
		r = -ENOTDIR;
	if (r < 0) {
		close_quietly(fd);
		return r;
	}
	*ret_pin = (struct pin){.fd = fd, .dev = id.dev, .ino = id.ino, .mount = id.mount};
	return 0;
}

int pin_adopt(int fd, struct pin *ret_pin, struct err *err)
{
	int r = fd < 0 ? -EBADF : adopt(fd, ret_pin);
	return r < 0 ? err_code(err, r, "pin", NULL) : 0;
}

int pin_open(const char *path, struct pin *ret_pin, struct err *err)
{
	if (path[0] != '/')
		return err_set(err, -EINVAL, "open", path, "the path is not absolute");
	int fd = open(path, OPEN_DIR);
	int r = fd < 0 ? -errno : adopt(fd, ret_pin);
	return r < 0 ? err_code(err, r, "open", path) : 0;
}

bool pin_single_name(const char *name)
{
	return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/');
}

static int single_or_refuse(const char *name, const char *stage, struct err *err)
{
	if (pin_single_name(name))
		return 0;
	return err_set(err, -EINVAL, stage, name, "not a single file name");
}

int pin_child(const struct pin *at, const char *name, struct pin *ret_pin, struct err *err)
{
	int r = single_or_refuse(name, "open", err);
	if (r < 0)
		return r;
	int fd = resolve_beneath(at, name, OPEN_DIR, 0);
	r = fd < 0 ? fd : adopt(fd, ret_pin);
	return r < 0 ? say(err, r, "open", name) : 0;
}

static bool climbs(const char *relative)
{
	if (relative[0] == '/')
		return true;
	for (const char *at = relative; *at; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");
		if (len == 2 && at[0] == '.' && at[1] == '.')
			return true;
		at += len;
	}
	return false;
}

int pin_descend(const struct pin *at, const char *relative, struct pin *ret_pin, struct err *err)
{
	if (climbs(relative))
		return err_set(err, -EINVAL, "open", relative, "the path is not relative and downward");
	int fd = resolve_beneath(at, relative, OPEN_DIR, 0);
	int r = fd < 0 ? fd : adopt(fd, ret_pin);
	return r < 0 ? say(err, r, "open", relative) : 0;
}

int pin_open_file(const struct pin *at, const char *name, int flags, mode_t mode, struct err *err)
{
	int r = single_or_refuse(name, "open", err);
	if (r < 0)
		return r;
	int fd = resolve_beneath(at, name, flags, mode);
	return fd < 0 ? say(err, fd, "open", name) : fd;
}

/* From an O_PATH descriptor of a directory to one that can be read, its owner and mode settled on the way: with an umask of 0777
 * a directory that was just made cannot be opened for reading yet. */
static int settle(int path_fd, mode_t mode, struct pin *ret_pin)
{
	struct identity id;
	int r = descriptor_identity(path_fd, &id);
	if (r < 0)
		return r;
	if (id.uid != geteuid())
		return -EPERM;
	if ((id.mode & 07777) != mode) {
		r = descriptor_force_mode(path_fd, mode);
		if (r < 0)
			return r;
	}
	int fd = openat(path_fd, ".", OPEN_DIR);
	return fd < 0 ? -errno : adopt(fd, ret_pin);
}

int pin_make_child(const struct pin *at, const char *name, mode_t mode, bool *ret_made, struct pin *ret_pin, struct err *err)
{
	int r = single_or_refuse(name, "mkdir", err);
	if (r < 0)
		return r;
	bool made = mkdirat(at->fd, name, mode) == 0;
	if (!made && errno != EEXIST)
		return err_code(err, -errno, "mkdir", name);
	AUTO_CLOSE int held = resolve_beneath(at, name, O_PATH | O_DIRECTORY, 0);
	r = held < 0 ? held : settle(held, mode, ret_pin);
	if (r < 0 && made) /* empty, and nobody would know whose it is */
		(void)unlinkat(at->fd, name, AT_REMOVEDIR);
	if (held < 0)
		return say(err, held, "mkdir", name);
	if (r == -EPERM)
		return err_set(err, r, "mkdir", name, "the directory belongs to another user, or its mode cannot be set");
	if (r < 0)
		return err_code(err, r, "mkdir", name);
	if (ret_made)
		*ret_made = made;
	return 0;
}

/* One missing component. What appears between the look and the mkdir is taken if it is a directory. */
static int make_component(int at_fd, const char *name, mode_t mode, int *ret_fd)
{
	bool made = mkdirat(at_fd, name, mode) == 0;
	if (!made && errno != EEXIST)
		return -errno;
	/* Missing a moment ago and there now: a dangling link, or somebody else's directory of just now. */
	AUTO_CLOSE int fd = openat(at_fd, name, O_PATH_ITSELF | O_CLOEXEC);
	struct identity id;
	int r = fd < 0 ? -errno : descriptor_identity(fd, &id);
	if (r < 0)
		return r;
	if (S_ISLNK(id.mode))
		return -ELOOP;
	if (!S_ISDIR(id.mode))
		return -ENOTDIR;
	if (made && id.uid != geteuid())
		return -EPERM;
	if (made && (id.mode & 07777) != mode)
		r = descriptor_force_mode(fd, mode);
	if (r < 0)
		return r;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int enter_or_make(int at_fd, const char *name, mode_t mode, int *ret_fd)
{
	int fd = openat(at_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return make_component(at_fd, name, mode, ret_fd);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int pin_make_path(const char *path, mode_t mode, struct pin *ret_pin, struct err *err)
{
	if (path[0] != '/')
		return err_set(err, -EINVAL, "mkdir", path, "the path is not absolute");
	AUTO_CLOSE int held = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (held < 0)
		return err_code(err, -errno, "mkdir", path);
	for (const char *rest = path + strspn(path, "/"); *rest; rest += strspn(rest, "/")) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(rest, "/");
		int next = -1;
		(void)snprintf(name, sizeof name, "%.*s", (int)len, rest);
		int r = len > NAME_MAX ? -ENAMETOOLONG : enter_or_make(held, name, mode, &next);
		if (r == -ELOOP)
			return err_set(err, r, "mkdir", path, "%s is a link that leads nowhere", name);
		if (r < 0)
			return err_code(err, r, "mkdir", path);
		close_quietly(held);
		held = next;
		rest += len;
	}
	int fd = openat(held, ".", OPEN_DIR);
	int r = fd < 0 ? -errno : adopt(fd, ret_pin);
	return r < 0 ? err_code(err, r, "mkdir", path) : 0;
}

bool pin_other_stands(const struct pin *at, const char *name, mode_t type)
{
	struct stat st;
	return fstatat(at->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) != type;
}

bool pin_same(const struct pin *a, const struct pin *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

void pin_close(struct pin *pin)
{
	close_quietly(pin->fd);
	pin->fd = -1;
}

struct pin pin_take(struct pin *pin)
{
	struct pin taken = *pin;
	*pin = PIN_NONE;
	return taken;
}
