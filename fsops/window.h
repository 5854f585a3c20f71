/* A stack of directories on the way down a tree, of which only a few are open: levels 0 and 1 and the last few. One that was closed
 * is opened again through ".." of its child, and must still be the directory that it was. Memory and descriptors are the same at
 * every depth and width; entries are streamed in batches. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fsops/descriptor.h"
#include "fsops/entries.h"
#include "fsops/pin.h"

#define WINDOW_LEVELS 4096
#define WINDOW_FIXED 2
#define WINDOW_RING 6
#define WINDOW_BYTES 16384

struct level {
	dev_t dev;
	ino_t ino;
	int64_t before, after; /* directory offsets around the entry that the next level is; valid while there is one */
	uint16_t path_len;     /* the rest is the caller's */
	uint16_t tries;
	bool left;
	/* tree_pair.h, under its lock: given and not done yet; something of it was left. */
	bool gift_left;
	uint16_t gifts;
};

struct open_level {
	int fd; /* -1: closed */
	int depth;
	bool ended;
	int64_t before; /* directory offset of the entry at `at` */
	size_t at, len;
	_Alignas(struct entry) char bytes[WINDOW_BYTES];
};

struct window {
	int depth; /* -1: empty */
	uint64_t mount;
	struct level levels[WINDOW_LEVELS];
	struct open_level open[WINDOW_FIXED + WINDOW_RING];
};

/* NULL: no memory. */
struct window *window_new(void);
void window_free(struct window **window);
#define AUTO_WINDOW __attribute__((cleanup(window_free)))

bool window_full(const struct window *w);
struct level *window_here(struct window *w);
/* Borrowed: valid until the next push or pop. */
struct pin window_pin(const struct window *w);

/* Goes down into a directory; takes fd over. Never when full. */
void window_push(struct window *w, int fd, const struct identity *id);

/* Puts a level on top that has but the one entry `name` of the directory that fd holds. */
void window_push_single(struct window *w, int fd, const struct identity *id, const char *name);

/* Back to the parent, whose current entry is the child just left, or the one after it. -ESTALE when the way back is gone because somebody
 * moved a directory: then level 1 is the current one, at the entry it was at. */
int window_pop(struct window *w, bool after_child);

/* The current entry; NULL at the end or, with *ret_code negative, where reading failed. "." and ".." are no entries. */
const struct entry *window_entry(struct window *w, int *ret_code);
void window_advance(struct window *w);
void window_rewind(struct window *w);

/* Closes what can be opened again: for one who has run out of descriptors. */
void window_close_idle(struct window *w);
