#include "fsops/window.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"

#define OPEN_SLOTS (WINDOW_FIXED + WINDOW_RING)

_Static_assert(WINDOW_BYTES >= sizeof(struct entry) + NAME_MAX + 1 + sizeof(int64_t), "one entry fits");

static struct open_level *slot_of(struct window *w, int depth)
{
	return &w->open[depth < WINDOW_FIXED ? depth : WINDOW_FIXED + (depth - WINDOW_FIXED) % WINDOW_RING];
}

static bool is_open(struct window *w, int depth)
{
	const struct open_level *slot = slot_of(w, depth);
	return slot->fd >= 0 && slot->depth == depth;
}

static void slot_close(struct open_level *slot)
{
	close_quietly(slot->fd);
	slot->fd = -1;
}

static void slot_set(struct open_level *slot, int fd, int depth, int64_t offset)
{
	slot_close(slot);
	slot->fd = fd;
	slot->depth = depth;
	slot->ended = false;
	slot->before = offset;
	slot->at = slot->len = 0;
}

struct window *window_new(void)
{
	struct window *w = malloc(sizeof *w);
	if (!w)
		return NULL;
	w->depth = -1;
	w->mount = 0;
	for (int i = 0; i < OPEN_SLOTS; i++)
		w->open[i].fd = -1;
	return w;
}

void window_free(struct window **window)
{
	if (!*window)
		return;
	for (int i = 0; i < OPEN_SLOTS; i++)
		slot_close(&(*window)->open[i]);
	free(*window);
	*window = NULL;
}

bool window_full(const struct window *w)
{
	return w->depth + 1 >= WINDOW_LEVELS;
}

struct level *window_here(struct window *w)
{
	return &w->levels[w->depth];
}

struct pin window_pin(const struct window *w)
{
	const struct level *here = &w->levels[w->depth];
	int fd = slot_of((struct window *)w, w->depth)->fd;
	return (struct pin){.fd = fd, .dev = here->dev, .ino = here->ino, .mount = w->mount};
}

static const struct entry *entry_at(const struct open_level *slot)
{
	return (const struct entry *)(const void *)(slot->bytes + slot->at);
}

void window_push(struct window *w, int fd, const struct identity *id)
{
	if (w->depth < 0) {
		w->mount = id->mount;
	} else {
		const struct open_level *parent = slot_of(w, w->depth);
		struct level *here = window_here(w);
		here->before = parent->before;
		here->after = parent->at < parent->len ? entry_at(parent)->next : parent->before;
	}
	w->depth++;
	*window_here(w) = (struct level){.dev = id->dev, .ino = id->ino};
	slot_set(slot_of(w, w->depth), fd, w->depth, 0);
}

void window_push_single(struct window *w, int fd, const struct identity *id, const char *name)
{
	window_push(w, fd, id);
	struct open_level *slot = slot_of(w, w->depth);
	struct entry *single = (struct entry *)(void *)slot->bytes;
	size_t room = strnlen(name, NAME_MAX) + 1;
	single->ino = 0;
	single->next = 0;
	single->size = (uint16_t)(sizeof *single + room);
	single->type = DT_UNKNOWN;
	memcpy(single->name, name, room - 1);
	single->name[room - 1] = '\0';
	slot->len = single->size;
	slot->ended = true;
}

/* A child that was moved has another "..": only the directory that was left on the way down is accepted. */
static int open_parent(struct window *w, int child_fd, const struct level *parent)
{
	AUTO_CLOSE int fd = openat(child_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct identity id;
	int r = fd < 0 ? -errno : descriptor_identity(fd, &id);
	if (r < 0)
		return r;
	if (id.dev != parent->dev || id.ino != parent->ino || !identity_same_mount(id.dev, id.mount, parent->dev, w->mount))
		return -ESTALE;
	return take_fd(&fd);
}

static int reopen_parent(struct window *w, int child_fd, int depth, bool after_child)
{
	const struct level *parent = &w->levels[depth];
	int64_t offset = after_child ? parent->after : parent->before;
	int fd = open_parent(w, child_fd, parent);
	if (fd < 0)
		return fd;
	struct open_level *slot = slot_of(w, depth);
	slot_set(slot, fd, depth, offset);
	ssize_t got = entries_seek(fd, offset, slot->bytes, sizeof slot->bytes);
	if (got < 0)
		return (int)got;
	slot->len = (size_t)got;
	return 0;
}

void window_close_idle(struct window *w)
{
	for (int i = WINDOW_FIXED; i < OPEN_SLOTS; i++)
		if (w->open[i].depth != w->depth)
			slot_close(&w->open[i]);
}

static void back_to_fixed(struct window *w)
{
	w->depth = WINDOW_FIXED - 1;
	window_close_idle(w);
}

int window_pop(struct window *w, bool after_child)
{
	struct open_level *child = slot_of(w, w->depth);
	int parent = w->depth - 1;
	if (is_open(w, parent)) {
		slot_close(child);
		w->depth = parent;
		if (after_child)
			window_advance(w);
		return 0;
	}
	if (reopen_parent(w, child->fd, parent, after_child) < 0) {
		back_to_fixed(w);
		return -ESTALE;
	}
	slot_close(child);
	w->depth = parent;
	return 0;
}

/* A directory that was removed while it is read says ENOENT: it has no more entries. */
static int refill(struct open_level *slot)
{
	ssize_t got = entries_read(slot->fd, slot->before, slot->bytes, sizeof slot->bytes);
	if (got < 0 && got != -ENOENT)
		return (int)got;
	slot->at = 0;
	slot->len = got < 0 ? 0 : (size_t)got;
	slot->ended = slot->len == 0;
	return 0;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

const struct entry *window_entry(struct window *w, int *ret_code)
{
	struct open_level *slot = slot_of(w, w->depth);
	*ret_code = 0;
	for (;;) {
		if (slot->at < slot->len) {
			if (!is_dot(entry_at(slot)->name))
				return entry_at(slot);
			window_advance(w);
			continue;
		}
		if (slot->ended)
			return NULL;
		*ret_code = refill(slot);
		if (*ret_code < 0)
			return NULL;
	}
}

void window_advance(struct window *w)
{
	struct open_level *slot = slot_of(w, w->depth);
	if (slot->at >= slot->len)
		return;
	slot->before = entry_at(slot)->next;
	slot->at += entry_at(slot)->size;
}

void window_rewind(struct window *w)
{
	struct open_level *slot = slot_of(w, w->depth);
	(void)lseek(slot->fd, 0, SEEK_SET);
	slot_set(slot, take_fd(&slot->fd), w->depth, 0);
}
