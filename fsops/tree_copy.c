#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/bytes_kernel.h"
#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "fsops/regular.h"
#include "fsops/tree.h"
#include "fsops/window.h"

#define CHUNK 65536
#define RANGE_MAX (1U << 30)

/* The file systems or the kernel cannot copy this pair themselves. */
static bool range_unfit(int code)
{
	return code == -EXDEV || code == -EINVAL || code == -ENOSYS || code == -EOPNOTSUPP || code == -EPERM || code == -EBADF;
}

/* Copies up to *left bytes and counts them off. 0 also where it ends early: reading tells whether that is the end. */
static int copy_by_range(int from, int to, uint64_t *left)
{
	while (*left) {
		ssize_t got = bytes_kernel_range(from, NULL, to, NULL, *left < RANGE_MAX ? (size_t)*left : RANGE_MAX);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0 || range_unfit(-errno) ? 0 : -errno;
		*left -= (uint64_t)got;
	}
	return 0;
}

static int copy_by_reading(int from, int to, uint64_t left)
{
	AUTO_FREE char *chunk = malloc(CHUNK);
	if (!chunk)
		return -ENOMEM;
	while (left) {
		ssize_t got = read(from, chunk, left < CHUNK ? (size_t)left : CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		int r = write_all(to, chunk, (size_t)got);
		if (r < 0)
			return r;
		left -= (uint64_t)got;
	}
	return 0;
}

/* No further than the length at the beginning: a file that grows for ever is still copied in bounded time. */
static int copy_bytes(int from, int to, uint64_t len)
{
	if (bytes_kernel_clone(from, to) == 0)
		return 0;
	int r = copy_by_range(from, to, &len);
	return r < 0 || !len ? r : copy_by_reading(from, to, len);
}

static int copy_file(const struct pin *from, const char *name, const struct pin *to, const char *to_name, bool keep_executable,
		     struct err *err)
{
	struct stat st;
	AUTO_CLOSE int source = regular_open(from, name, O_RDONLY, &st, err);
	if (source < 0)
		return source;
	AUTO_CLOSE int target = regular_create(to, to_name, keep_executable && (st.st_mode & S_IXUSR) ? 0700 : 0600, err);
	if (target < 0)
		return target;
	int r = copy_bytes(source, target, (uint64_t)st.st_size);
	if (r < 0) {
		regular_take_back(to, to_name, target);
		return err_code(err, r, "copy", name);
	}
	return 0;
}

int tree_copy_file(const struct pin *from, const char *name, const struct pin *to, const char *to_name, struct err *err)
{
	return copy_file(from, name, to, to_name, false, err);
}

struct copier {
	struct window *from, *to;
	const struct pin *target; /* where the copy begins */
};

static int push_pin(struct window *w, struct pin *pin)
{
	struct identity id = {.dev = pin->dev, .ino = pin->ino, .mount = pin->mount};
	window_push(w, take_fd(&pin->fd), &id);
	return 0;
}

static int enter(struct copier *c, const char *name, struct err *err)
{
	struct pin from = window_pin(c->from), to = window_pin(c->to);
	if (window_full(c->from))
		return err_set(err, -ELOOP, "copy", name, "the tree is more than %d levels deep", WINDOW_LEVELS - 1);
	AUTO_PIN struct pin source = PIN_NONE, target = PIN_NONE;
	int r = pin_child(&from, name, &source, err);
	if (r < 0)
		return r;
	if (pin_same(&source, c->target))
		return err_set(err, -ELOOP, "copy", name, "the target lies inside of the source");
	if (mkdirat(to.fd, name, 0700) < 0)
		return err_code(err, -errno, "copy", name);
	r = pin_make_child(&to, name, 0700, NULL, &target, err);
	if (r < 0)
		return r;
	(void)push_pin(c->from, &source);
	return push_pin(c->to, &target);
}

static int type_of(const struct pin *at, const struct entry *entry, mode_t *ret_type)
{
	struct stat st;
	if (fstatat(at->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret_type = st.st_mode & S_IFMT;
	return 0;
}

/* 1: went down into a directory. */
static int copy_entry(struct copier *c, const struct entry *entry, struct err *err)
{
	struct pin from = window_pin(c->from), to = window_pin(c->to);
	mode_t type = 0;
	int r = type_of(&from, entry, &type);
	if (r < 0)
		return err_code(err, r, "copy", entry->name);
	if (S_ISDIR(type)) {
		r = enter(c, entry->name, err);
		return r < 0 ? r : 1;
	}
	if (!S_ISREG(type))
		return err_set(err, -EINVAL, "copy", entry->name, "it is %s, neither a regular file nor a directory", mode_type_text(type));
	return copy_file(&from, entry->name, &to, entry->name, true, err);
}

static int leave_directory(struct copier *c, struct err *err)
{
	int r = window_pop(c->from, true);
	if (!r)
		r = window_pop(c->to, true);
	return r < 0 ? err_set(err, r, "copy", NULL, "a directory was moved while it was copied") : 0;
}

static int copy_all(struct copier *c, const char *skip, struct err *err)
{
	for (;;) {
		int r;
		const struct entry *entry = window_entry(c->from, &r);
		if (r < 0)
			return err_code(err, r, "copy", NULL);
		if (!entry && c->from->depth == 0)
			return 0;
		if (!entry) {
			r = leave_directory(c, err);
			if (r < 0)
				return r;
			continue;
		}
		bool skipped = skip && c->from->depth == 0 && strcmp(entry->name, skip) == 0;
		r = skipped ? 0 : copy_entry(c, entry, err);
		if (r < 0)
			return r;
		if (!r)
			window_advance(c->from);
	}
}

static int open_again(const struct pin *pin, struct window *w, struct err *err)
{
	AUTO_PIN struct pin own = PIN_NONE;
	int r = pin_descend(pin, "", &own, err);
	return r < 0 ? r : push_pin(w, &own);
}

int tree_copy(const struct pin *from, const struct pin *to, const char *skip, struct err *err)
{
	AUTO_WINDOW struct window *source = window_new(), *target = window_new();
	if (!source || !target)
		return err_code(err, -ENOMEM, "copy", NULL);
	if (pin_same(from, to))
		return err_set(err, -ELOOP, "copy", NULL, "source and target are the same directory");
	int r = open_again(from, source, err);
	if (!r)
		r = open_again(to, target, err);
	struct copier c = {.from = source, .to = target, .target = to};
	return r < 0 ? r : copy_all(&c, skip, err);
}
