#include "fsops/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/descriptor.h"
#include "fsops/platform.h"

bool pin_use_openat2 = true;

static int mount_must_match(int fd, const struct identity *parent)
{
	struct identity found;
	int r = descriptor_identity(fd, &found);
	if (r < 0)
		return r;
	return identity_same_mount(found.dev, found.mount, parent->dev, parent->mount) ? 0 : -EXDEV;
}

static bool must_be_new(int flags)
{
	return (flags & O_CREAT) && (flags & O_EXCL);
}

/* Judges what a name means without opening it, in the order in which openat2 judges: mount, link, type. */
static int walk_judge(int fd, const struct identity *parent, int flags)
{
	struct identity found;
	int r = descriptor_identity(fd, &found);
	if (r < 0)
		return r;
	if (!identity_same_mount(found.dev, found.mount, parent->dev, parent->mount))
		return -EXDEV;
	bool link_wanted = (flags & O_PATH_ITSELF) == O_PATH_ITSELF;
	if (S_ISLNK(found.mode) && !link_wanted && !must_be_new(flags))
		return -ELOOP;
	if ((flags & O_DIRECTORY) && !S_ISDIR(found.mode))
		return -ENOTDIR;
	return 0;
}

/* One component. The name is judged before it is opened and the descriptor after it: what came between is on the same mount and no
 * link, because of O_NOFOLLOW. */
static int walk_step(int at_fd, const struct identity *parent, const char *name, int flags, mode_t mode)
{
	AUTO_CLOSE int held = openat(at_fd, name, O_PATH_ITSELF | O_CLOEXEC);
	if (held < 0 && !(errno == ENOENT && (flags & O_CREAT)))
		return -errno;
	int r = held < 0 ? 0 : walk_judge(held, parent, flags);
	if (r < 0)
		return r;
	if (flags & O_PATH)
		return take_fd(&held);
	/* Truncating comes after the judgement of the descriptor. */
	AUTO_CLOSE int fd = openat(at_fd, name, (flags & ~O_TRUNC) | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	/* What this call has made is on the mount of its directory; a look that fails would leave it behind. */
	r = must_be_new(flags) ? 0 : mount_must_match(fd, parent);
	if (r < 0)
		return r;
	if ((flags & O_TRUNC) && ftruncate(fd, 0) < 0)
		return -errno;
	return take_fd(&fd);
}

/* Empty components and "." name nothing. */
static const char *skip_nothing(const char *rest)
{
	while (*rest == '/' || (*rest == '.' && (rest[1] == '/' || !rest[1])))
		rest++;
	return rest;
}

/* Cuts the next component off; false at the end. */
static bool next_component(const char **rest, char component[NAME_MAX + 1], int *ret_error)
{
	const char *start = skip_nothing(*rest);
	size_t len = strcspn(start, "/");
	*ret_error = len > NAME_MAX ? -ENAMETOOLONG : 0;
	*rest = start + len;
	if (!len || *ret_error)
		return false;
	memcpy(component, start, len);
	component[len] = '\0';
	return true;
}

static int resolve_by_walk(const struct pin *at, const char *relative, int flags, mode_t mode)
{
	struct identity top = {.dev = at->dev, .ino = at->ino, .mount = at->mount};
	AUTO_CLOSE int held = -1;
	char component[NAME_MAX + 1];
	int r;
	while (next_component(&relative, component, &r)) {
		bool last = *skip_nothing(relative) == '\0';
		int next = walk_step(held < 0 ? at->fd : held, &top, component, last ? flags : O_PATH | O_DIRECTORY, mode);
		if (next < 0 || last)
			return next;
		close_quietly(held);
		held = next;
	}
	if (r < 0)
		return r;
	int fd = openat(at->fd, ".", flags | O_CLOEXEC, mode);
	return fd < 0 ? -errno : fd;
}

int resolve_beneath(const struct pin *at, const char *relative, int flags, mode_t mode)
{
	if (strlen(relative) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (!relative[0])
		relative = ".";
	if (pin_use_openat2) {
		int fd = resolve_by_kernel(at->fd, relative, flags, mode);
		/* EPERM: from a filter, or from the file; the walk then says the same. */
		if (fd != -ENOSYS && fd != -EPERM && fd != -EAGAIN)
			return fd;
	}
	return resolve_by_walk(at, relative, flags, mode);
}
