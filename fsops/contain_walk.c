#include "fsops/contain_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/platform.h"

struct walk {
	struct contain_place *place;
	int fd; /* the deepest existing component, O_PATH */
	int links;
	char *rest;
};

static int stop(struct walk *w, enum contain_cause cause, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int stop(struct walk *w, enum contain_cause cause, const char *format, ...)
{
	w->place->cause = cause;
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(w->place->detail, sizeof w->place->detail, format, arguments);
	va_end(arguments);
	return -1;
}

static int stop_errno(struct walk *w, const char *what)
{
	return errno == ENAMETOOLONG ? stop(w, CONTAIN_TOO_LONG, "%s", "") : stop(w, CONTAIN_CHECK_FAILED, "%s: %s", what, strerrordesc_np(errno));
}

static bool same(const struct contain_identity *a, const struct contain_identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mount == b->mount;
}

static void stand_on(struct walk *w, int fd)
{
	close_quietly(w->fd);
	w->fd = fd;
}

static int push_text(struct walk *w, const char *name, size_t n)
{
	struct contain_place *p = w->place;
	if (p->len + n + 2 > sizeof p->text)
		return stop(w, CONTAIN_TOO_LONG, "%s", "");
	p->text[p->len++] = '/';
	memcpy(p->text + p->len, name, n);
	p->len += n;
	return 0;
}

static void pop_text(struct contain_place *p)
{
	while (p->len && p->text[--p->len] != '/')
		;
}

static int push_identity(struct walk *w, const struct contain_identity *identity)
{
	if (w->place->depth == CONTAIN_DEPTH_MAX)
		return stop(w, CONTAIN_CHECK_FAILED, "more than %d levels", CONTAIN_DEPTH_MAX);
	w->place->chain[w->place->depth++] = *identity;
	return 0;
}

static int go_to_root(struct walk *w)
{
	struct contain_identity identity;
	mode_t type;
	stand_on(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (w->fd < 0 || contain_identify(w->fd, &identity, &type) < 0)
		return stop_errno(w, "the root directory cannot be reached");
	w->place->depth = w->place->missing = w->place->len = 0;
	return push_identity(w, &identity);
}

static int go_up(struct walk *w)
{
	struct contain_place *p = w->place;
	if (p->missing) {
		p->missing--;
		pop_text(p);
		return 0;
	}
	if (p->depth == 1)
		return 0;
	struct contain_identity identity;
	mode_t type;
	AUTO_CLOSE int fd = openat(w->fd, "..", O_PATH | O_CLOEXEC);
	if (fd < 0 || contain_identify(fd, &identity, &type) < 0)
		return stop_errno(w, "the directory above cannot be reached");
	if (!same(&identity, &p->chain[p->depth - 2]))
		return stop(w, CONTAIN_CHECK_FAILED, "a directory was moved while it was looked at");
	p->depth--;
	pop_text(p);
	stand_on(w, take_fd(&fd));
	return 0;
}

/* Fills the chain from where fd is, upward to the root of whatever tree it belongs to. */
static int chain_from(struct walk *w, int fd)
{
	struct contain_place *p = w->place;
	struct contain_identity here, above;
	mode_t type;
	AUTO_CLOSE int at = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	p->depth = 0;
	if (at < 0 || contain_identify(at, &here, &type) < 0)
		return stop_errno(w, "a link of /proc cannot be followed");
	if (type != S_IFDIR)
		return stop(w, CONTAIN_CHECK_FAILED, "a link of /proc leads to no directory");
	for (;;) {
		if (push_identity(w, &here) < 0)
			return -1;
		int up = openat(at, "..", O_PATH | O_CLOEXEC);
		if (up < 0 || contain_identify(up, &above, &type) < 0) {
			close_quietly(up);
			return stop_errno(w, "the directory above cannot be reached");
		}
		close_quietly(at);
		at = up;
		if (same(&here, &above))
			break;
		here = above;
	}
	for (size_t i = 0; i < p->depth / 2; i++) {
		struct contain_identity swap = p->chain[i];
		p->chain[i] = p->chain[p->depth - 1 - i];
		p->chain[p->depth - 1 - i] = swap;
	}
	return 0;
}

/* A link of procfs may lead where its text does not (another root, a deleted directory): the kernel follows it, the text is asked afterwards. */
static int follow_proc(struct walk *w, const char *name)
{
	struct contain_place *p = w->place;
	AUTO_CLOSE int fd = openat(w->fd, name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return stop_errno(w, "a link of /proc cannot be followed");
	if (chain_from(w, fd) < 0)
		return -1;
	ssize_t n = contain_path_of(fd, p->text);
	if (n <= 0 || n >= CONTAIN_PATH_MAX || p->text[0] != '/')
		return stop(w, CONTAIN_CHECK_FAILED, "a link of /proc leads to no place in this tree");
	p->len = n == 1 ? 0 : (size_t)n;
	stand_on(w, take_fd(&fd));
	return 0;
}

static int follow(struct walk *w, int link, const char *name)
{
	char target[CONTAIN_PATH_MAX];
	if (++w->links > CONTAIN_LINKS_MAX)
		return stop(w, CONTAIN_LOOP, "more than %d links", CONTAIN_LINKS_MAX);
	int magic = contain_is_magic(link);
	if (magic < 0)
		return stop_errno(w, "a link cannot be judged");
	if (magic)
		return follow_proc(w, name);
	ssize_t n = contain_link_text(link, target, sizeof target);
	if (n < 0)
		return stop_errno(w, "a link cannot be read");
	if (n == 0 || (size_t)n == sizeof target)
		return stop(w, CONTAIN_CHECK_FAILED, "a link is empty or too long");
	if (contain_text_remote(target, (size_t)n))
		return stop(w, CONTAIN_REMOTE_OR_DEVICE, "%s", "");
	/* The buffer holds the path and 40 targets, each shorter than CONTAIN_PATH_MAX. */
	*--w->rest = '/';
	w->rest -= n;
	memcpy(w->rest, target, (size_t)n);
	return target[0] == '/' ? go_to_root(w) : 0;
}

static int enter(struct walk *w, const char *name, size_t n)
{
	struct contain_place *p = w->place;
	struct contain_identity identity;
	mode_t type;
	if (p->missing) {
		p->missing++;
		return push_text(w, name, n);
	}
	AUTO_CLOSE int fd = openat(w->fd, name, O_PATH_ITSELF | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		p->missing = 1;
		return push_text(w, name, n);
	}
	if (fd < 0 || contain_identify(fd, &identity, &type) < 0)
		return stop_errno(w, "a directory on the way cannot be looked into");
	if (type == S_IFLNK)
		return follow(w, fd, name);
	if (push_text(w, name, n) < 0 || push_identity(w, &identity) < 0)
		return -1;
	stand_on(w, take_fd(&fd));
	return 0;
}

static int step(struct walk *w)
{
	char name[CONTAIN_PATH_MAX];
	size_t n = strcspn(w->rest, "/");
	memcpy(name, w->rest, n);
	name[n] = '\0';
	w->rest += n;
	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, ".."))
		return go_up(w);
	return enter(w, name, n);
}

void contain_walk(const char *path, struct contain_place *place)
{
	size_t n = strlen(path);
	struct walk w = {.place = place, .fd = -1, .rest = place->rest + sizeof place->rest - 1 - n};
	memcpy(w.rest, path, n + 1);
	place->cause = CONTAIN_CLEAR;
	place->detail[0] = '\0';
	int r = go_to_root(&w);
	while (r == 0 && *(w.rest += strspn(w.rest, "/")))
		r = step(&w);
	if (!place->len)
		place->text[place->len++] = '/';
	place->text[place->len] = '\0';
	close_quietly(w.fd);
}
