#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/resolve.h"
#include "fsops/tree.h"
#include "fsops/tree_pair.h"
#include "fsops/window.h"

#define FLIPS_MAX 16	 /* changes between file and directory while one entry is dealt with */
#define TRIES_AT_LEAST 3 /* for an entry that comes back, even when the deadline has passed */
#define PASSES_MAX 4096	 /* each takes WINDOW_LEVELS levels off */
#define LIFT_NAMES_MAX 64
#define ENTRIES_FOR_TWO 1000 /* fewer are gone before a second thread has begun */
#define DESCRIPTORS_FOR_TWO 64 /* each may want a window full, and what it cannot open it would leave */
#define ENTRIES_PAST_DEADLINE (1U << 22) /* a directory that is filled while it is read has no end */

enum outcome { GONE, LEFT, ENTERED, AGAIN };

struct remover {
	struct window *w;
	struct deadline until;
	struct backoff pause;
	struct tree_left left;
	bool again;	 /* something was moved to the top, or the way back was lost: the top is read once more */
	unsigned passes; /* over the top */
	unsigned lifted;
	size_t entries;
	struct tree_pair *pair; /* NULL: alone */
	enum tree_side side;
	bool outermost;
	bool stays; /* afterwards: the entry is still there, because of something left that it or the other has counted */
	char path[sizeof((struct tree_left *)0)->named[0].path]; /* of the current level, relative to where it began, cut at the end */
};

static size_t path_with(const struct remover *r, const char *name, char out[sizeof r->path])
{
	int len = window_here(r->w)->path_len;
	(void)snprintf(out, sizeof r->path, "%.*s%s%s", len, r->path, len ? "/" : "", name);
	return strlen(out);
}

static enum outcome leave(struct remover *r, const char *name, int code)
{
	if (r->left.count < TREE_LEFT_NAMED) {
		(void)path_with(r, name, r->left.named[r->left.count].path);
		r->left.named[r->left.count].code = code;
	}
	r->left.count++;
	return LEFT;
}

/* The directory that is being emptied is ours to change; the one that the whole tree stands in (level 0) is not. */
static bool mend_here(struct remover *r)
{
	return r->w->depth > 0 && descriptor_force_mode(window_pin(r->w).fd, 0700) == 0;
}

static int unlink_here(struct remover *r, const char *name, bool directory)
{
	int fd = window_pin(r->w).fd, flags = directory ? AT_REMOVEDIR : 0;
	if (unlinkat(fd, name, flags) == 0)
		return 0;
	int code = -errno;
	if (code == -EACCES && mend_here(r))
		code = unlinkat(fd, name, flags) == 0 ? 0 : -errno;
	return code;
}

static bool mend(int held, const struct identity *id)
{
	return id->uid == geteuid() && descriptor_force_mode(held, 0700) == 0;
}

/* A held directory of ours is made readable before it is opened for reading, and once more if somebody undoes that. */
static int open_held(int held, const struct identity *id)
{
	bool closed_to_us = (id->mode & 0700) != 0700;
	bool mended = closed_to_us && mend(held, id);
	int fd = openat(held, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int code = fd < 0 ? -errno : 0;
	if (code == -EACCES && mend(held, id)) {
		fd = openat(held, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		code = fd < 0 ? -errno : 0;
	}
	if (code < 0)
		return code;
	/* Without /proc and fchmodat2 at least what can be read can be made writable. */
	if (closed_to_us && !mended)
		(void)fchmod(fd, 0700);
	return fd;
}

/* Too deep to remember the way back: the directory moves to the top of the tree and is met again there. rename follows no link, and
 * whatever it moves was in the tree. */
static int lift(struct remover *r, int held, const struct identity *id, const char *name)
{
	int top = r->w->open[WINDOW_FIXED - 1].fd;
	if ((id->mode & 0700) != 0700)
		(void)mend(held, id);
	for (int i = 0; i < LIFT_NAMES_MAX; i++) {
		char lifted[32];
		(void)snprintf(lifted, sizeof lifted, ".deep-%u", r->lifted++);
		if (renameat(window_pin(r->w).fd, name, top, lifted) == 0) {
			r->again = true;
			return 0;
		}
		if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR && errno != EISDIR)
			return -errno;
	}
	return -EEXIST;
}

static int hold(struct remover *r, const char *name)
{
	struct pin here = window_pin(r->w);
	int held = resolve_beneath(&here, name, O_PATH | O_DIRECTORY, 0);
	if (held == -EACCES && mend_here(r))
		held = resolve_beneath(&here, name, O_PATH | O_DIRECTORY, 0);
	if (held == -EMFILE || held == -ENFILE) {
		window_close_idle(r->w);
		held = resolve_beneath(&here, name, O_PATH | O_DIRECTORY, 0);
	}
	return held;
}

/* 1 entered, 0 not there any more, -errno. */
static int enter(struct remover *r, const char *name)
{
	AUTO_CLOSE int held = hold(r, name);
	struct identity id;
	int code = held < 0 ? held : descriptor_identity(held, &id);
	if (code < 0)
		return code;
	if (window_full(r->w))
		return lift(r, held, &id, name);
	int fd = open_held(held, &id);
	if (fd == -EMFILE || fd == -ENFILE) {
		window_close_idle(r->w);
		fd = open_held(held, &id);
	}
	if (fd < 0)
		return fd;
	char path[sizeof r->path];
	size_t len = path_with(r, name, path);
	memcpy(r->path, path, len + 1);
	window_push(r->w, fd, &id);
	window_here(r->w)->path_len = (uint16_t)len;
	return 1;
}

static bool may_try_again(struct remover *r, unsigned tries)
{
	if (tries < TRIES_AT_LEAST)
		return true;
	if (deadline_passed(r->until))
		return false;
	backoff_sleep(&r->pause, r->until);
	return true;
}

static bool give(struct remover *r, const char *name)
{
	struct pin here = window_pin(r->w);
	struct level *level = window_here(r->w);
	char path[sizeof r->path];
	if (!r->pair || r->w->depth == 0) /* what was begun here is not passed on */
		return false;
	(void)snprintf(path, sizeof path, "%.*s", level->path_len, r->path);
	return tree_pair_give(r->pair, r->side, &here, level, name, path);
}

/* A directory that rmdir refuses: its contents may go even where it may not itself. One that was emptied and is refused again is
 * emptied again only if somebody fills it. */
static enum outcome refused_directory(struct remover *r, const char *name, int code, bool *ret_flip)
{
	unsigned tries = window_here(r->w)->tries;
	bool filled = code == -ENOTEMPTY || code == -EEXIST;
	bool forbidden = code == -EPERM || code == -EACCES;
	if (!filled && !(forbidden && !tries))
		return leave(r, name, code);
	if (tries && !may_try_again(r, tries))
		return leave(r, name, code);
	if (filled && !tries && give(r, name))
		return GONE;
	int entered = enter(r, name);
	*ret_flip = entered == -ENOTDIR || entered == -ELOOP;
	if (entered == 0 || entered == -ENOENT)
		return GONE;
	return entered > 0 || *ret_flip ? ENTERED : leave(r, name, entered);
}

static bool looks_like_directory(struct remover *r, const struct entry *entry)
{
	struct stat st;
	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR;
	return fstatat(window_pin(r->w).fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Its type is a guess that every call checks again: somebody may exchange the entry at any time. */
static enum outcome deal_with(struct remover *r, const struct entry *entry)
{
	bool directory = looks_like_directory(r, entry);
	for (int flips = 0; flips < FLIPS_MAX; flips++, directory = !directory) {
		int code = unlink_here(r, entry->name, directory);
		if (code == 0 || code == -ENOENT)
			return GONE;
		if (code == (directory ? -ENOTDIR : -EISDIR))
			continue;
		if (!directory)
			return leave(r, entry->name, code);
		bool flip = false;
		enum outcome outcome = refused_directory(r, entry->name, code, &flip);
		if (!flip)
			return outcome;
	}
	return may_try_again(r, window_here(r->w)->tries) ? AGAIN : leave(r, entry->name, -EBUSY);
}

static bool read_top_again(struct remover *r)
{
	if (r->w->depth != WINDOW_FIXED - 1 || !r->again || r->passes++ >= PASSES_MAX)
		return false;
	/* What was left is met and named again. */
	r->again = false;
	r->left.count = 0;
	if (r->pair && r->outermost) /* what the other has left elsewhere is not met again by who only helps */
		tree_pair_forget_left(r->pair);
	window_here(r->w)->left = window_here(r->w)->gift_left = false;
	window_here(r->w)->tries = 0;
	window_rewind(r->w);
	return true;
}

static void remove_gift(struct remover *r, enum tree_side side, struct tree_pair *pair, struct tree_gift *gift);

/* NULL: of all levels. Without a pair of its own, so that nobody waits for who waits. */
static void settle_gifts(struct remover *r, const struct level *level)
{
	struct tree_gift gift;
	while (r->pair && tree_pair_await(r->pair, r->side, level, &gift))
		remove_gift(r, r->side, NULL, &gift);
}

static void end_of_directory(struct remover *r)
{
	settle_gifts(r, window_here(r->w));
	window_here(r->w)->left |= window_here(r->w)->gift_left;
	if (read_top_again(r))
		return;
	bool left = window_here(r->w)->left;
	bool lost = window_pop(r->w, left) < 0;
	if (lost)
		settle_gifts(r, NULL);
	struct level *parent = window_here(r->w);
	if (lost && !deadline_passed(r->until))
		r->again = true;
	if (left && !lost) {
		parent->left = true;
		parent->tries = 0;
	} else {
		parent->tries++;
	}
}

static void name_unreadable(struct remover *r, int code)
{
	struct level *here = window_here(r->w);
	here->left = true;
	if (r->left.count < TREE_LEFT_NAMED) {
		(void)snprintf(r->left.named[r->left.count].path, sizeof r->path, "%.*s", here->path_len, r->path);
		r->left.named[r->left.count].code = code;
	}
	r->left.count++;
}

static bool endless(struct remover *r)
{
	return ++r->entries >= ENTRIES_PAST_DEADLINE && deadline_passed(r->until);
}

/* The next entry to deal with; NULL when this directory has no more, or none that may be read. */
static const struct entry *next_entry(struct remover *r)
{
	int code;
	const struct entry *entry = window_entry(r->w, &code);
	if (code < 0)
		name_unreadable(r, code);
	if (!entry || !endless(r))
		return entry;
	(void)leave(r, entry->name, -ETIME);
	window_here(r->w)->left = true;
	return NULL;
}

static void settle(struct remover *r, enum outcome outcome)
{
	struct level *here = window_here(r->w);
	if (outcome == AGAIN) {
		here->tries++;
		return;
	}
	here->left |= outcome == LEFT;
	here->tries = 0;
	window_advance(r->w);
}

static void get_help(struct remover *r);

static void work(struct remover *r)
{
	for (;;) {
		const struct entry *entry = next_entry(r);
		if (entry) {
			get_help(r);
			enum outcome outcome = deal_with(r, entry);
			if (outcome != ENTERED)
				settle(r, outcome);
		} else if (r->w->depth == 0) {
			return;
		} else {
			end_of_directory(r);
		}
	}
}

/* Level 0 is the directory that the tree stands in, cut down to one entry. */
static int start(struct remover *r, const struct pin *at, const char *name)
{
	int fd = fcntl(at->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	struct identity id = {.dev = at->dev, .ino = at->ino, .mount = at->mount};
	window_push_single(r->w, fd, &id, name);
	window_here(r->w)->path_len = (uint16_t)strlen(r->path);
	return 0;
}

static int remove_in(struct remover *r, const struct pin *at, const char *name)
{
	AUTO_WINDOW struct window *w = window_new();
	if (!w)
		return -ENOMEM;
	r->w = w;
	int code = start(r, at, name);
	if (code == 0) {
		work(r);
		settle_gifts(r, NULL);
		r->stays = window_here(w)->left || r->left.count;
	}
	return code;
}

/* What could not even be begun is left. */
static void remove_gift(struct remover *r, enum tree_side side, struct tree_pair *pair, struct tree_gift *gift)
{
	struct remover other = {.until = r->until, .pair = pair, .side = side};
	memcpy(other.path, gift->path, sizeof other.path);
	int code = remove_in(&other, &gift->at, gift->name);
	if (code < 0) {
		struct tree_left one = {.count = 1, .named = {{.code = code}}};
		size_t len = strnlen(gift->path, sizeof gift->path);
		(void)snprintf(one.named[0].path, sizeof one.named[0].path, "%s%s%s", gift->path, len ? "/" : "", gift->name);
		tree_left_add(&other.left, &one);
		other.stays = true;
	}
	tree_pair_done(r->pair, gift, other.stays, &other.left);
}

static void assist(void *context, enum tree_side side, struct tree_gift *gift)
{
	struct remover *r = context;
	remove_gift(r, side, r->pair, gift);
}

static void get_help(struct remover *r)
{
	if (r->outermost && !r->pair && r->entries == ENTRIES_FOR_TWO && descriptor_allowed(DESCRIPTORS_FOR_TWO))
		r->pair = tree_pair_start(assist, r);
}

static int say_left(const struct tree_left *left, const char *name, struct err *err)
{
	char why[128];
	return err_set(err, -ENOTEMPTY, "remove", name, "%zu could not be removed, the first is %s: %s", left->count, left->named[0].path,
		       strerror_r(-left->named[0].code, why, sizeof why));
}

int tree_remove(const struct pin *at, const char *name, struct deadline until, struct tree_left *ret_left, struct err *err)
{
	if (!pin_single_name(name))
		return err_set(err, -EINVAL, "remove", name, "not a single file name");
	if (strlen(name) > NAME_MAX)
		return err_code(err, -ENAMETOOLONG, "remove", name);
	struct remover r = {.until = until, .outermost = true};
	int code = remove_in(&r, at, name);
	tree_pair_end(r.pair, &r.left);
	if (code < 0)
		return err_code(err, code, "remove", name);
	/* What was left may have been removed by somebody else meanwhile. */
	struct stat st;
	if (r.left.count && fstatat(at->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		r.left = (struct tree_left){0};
	if (ret_left)
		*ret_left = r.left;
	return r.left.count ? say_left(&r.left, name, err) : 0;
}
