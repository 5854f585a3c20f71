#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fsops/cleanup.h"
#include "fsops/resolve.h"
#include "fsops/tree.h"
#include "fsops/window.h"

struct change_search {
	struct window *w;
	size_t met, most;
	int64_t newest_ns;
};

/* A directory is changed by names that come and go: that it was itself renamed, which its ctime tells, is no change in the tree. */
static int64_t changed_ns(const struct stat *st)
{
	const struct timespec *t = S_ISDIR(st->st_mode) ? &st->st_mtim : &st->st_ctim;
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static int enter(struct change_search *s, const char *name)
{
	struct pin here = window_pin(s->w);
	struct identity id;
	if (window_full(s->w))
		return -E2BIG;
	AUTO_CLOSE int fd = resolve_beneath(&here, name, O_RDONLY | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : descriptor_identity(fd, &id);
	if (r < 0)
		return r;
	window_push(s->w, take_fd(&fd), &id);
	return 0;
}

/* 1: it is a directory and now the current level. */
static int meet(struct change_search *s, const char *name)
{
	struct stat st;
	if (s->met++ == s->most)
		return -E2BIG;
	if (fstatat(window_pin(s->w).fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	int64_t ns = changed_ns(&st);
	if (ns > s->newest_ns)
		s->newest_ns = ns;
	if (!S_ISDIR(st.st_mode))
		return 0;
	int r = enter(s, name);
	return r < 0 ? r : 1;
}

static int search(struct change_search *s)
{
	int r = 0;
	while (r >= 0) {
		const struct entry *entry = window_entry(s->w, &r);
		if (entry) {
			r = meet(s, entry->name);
			if (r == 0)
				window_advance(s->w);
		} else if (r == 0) {
			if (s->w->depth == 0)
				return 0;
			r = window_pop(s->w, true);
		}
	}
	return r;
}

int tree_last_change(const struct pin *at, const char *name, size_t most, int64_t *ret_ns, struct err *err)
{
	AUTO_WINDOW struct window *w = window_new();
	struct identity id = {.dev = at->dev, .ino = at->ino, .mount = at->mount};
	AUTO_CLOSE int fd = fcntl(at->fd, F_DUPFD_CLOEXEC, 0);
	if (!w || fd < 0)
		return err_code(err, w ? -errno : -ENOMEM, "look", name);
	struct change_search s = {.w = w, .most = most};
	window_push_single(w, take_fd(&fd), &id, name);
	int r = search(&s);
	if (r < 0)
		return err_code(err, r, "look", name);
	*ret_ns = s.newest_ns;
	return 0;
}
