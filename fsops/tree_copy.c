#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/bytes.h"
#include "fsops/cleanup.h"
#include "fsops/crew.h"
#include "fsops/descriptor.h"
#include "fsops/regular.h"
#include "fsops/tree.h"
#include "fsops/window.h"

#define BATCH_FILES 1024
#define BATCH_PLACES 32
#define DESCRIPTORS_FOR_MANY 256 /* fewer may be open: a batch holds on to one directory, not to many */

static int copy_opened(int source, const struct stat *st, const struct pin *to, const char *to_name, bool keep_executable, struct err *err)
{
	AUTO_CLOSE int target = regular_create(to, to_name, keep_executable && (st->st_mode & S_IXUSR) ? 0700 : 0600, err);
	if (target < 0)
		return target;
	struct err why = {0};
	int r = bytes_copy(source, target, (uint64_t)st->st_size, DEADLINE_NEVER, &why);
	if (r < 0) {
		regular_take_back(to, to_name, target);
		return err_set(err, r, "copy", to_name, "%s", why.text);
	}
	return 0;
}

int tree_copy_file(const struct pin *from, const char *name, const struct pin *to, const char *to_name, struct err *err)
{
	struct stat st;
	AUTO_CLOSE int source = regular_open(from, name, O_RDONLY, &st, err);
	return source < 0 ? source : copy_opened(source, &st, to, to_name, false, err);
}

/* --- files, by two threads ----------------------------------------------------------------------------------------------------------- */

struct place {
	struct pin from, to;
};

struct listed {
	size_t place;
	char name[NAME_MAX + 1];
};

/* Files that were met and are not copied yet, of the directories that they stand in. */
struct batch {
	size_t places, places_most, files;
	bool here; /* the last place is the directory that is walked through */
	struct place place[BATCH_PLACES];
	struct listed file[BATCH_FILES];
};

static struct batch *batch_new(void)
{
	struct batch *batch = calloc(1, sizeof *batch);
	if (batch)
		batch->places_most = descriptor_allowed(DESCRIPTORS_FOR_MANY) ? BATCH_PLACES : 1;
	return batch;
}

static void batch_empty(struct batch *batch)
{
	for (size_t i = 0; i < batch->places; i++) {
		pin_close(&batch->place[i].from);
		pin_close(&batch->place[i].to);
	}
	batch->places = batch->files = 0;
	batch->here = false;
}

static void batch_free(struct batch **batch)
{
	if (*batch)
		batch_empty(*batch);
	free(*batch);
}

static int copy_listed(void *context, size_t i, struct err *err)
{
	const struct batch *batch = context;
	const struct listed *file = &batch->file[i];
	const struct place *place = &batch->place[file->place];
	struct stat st;
	AUTO_CLOSE int source = regular_open_listed(&place->from, file->name, O_RDONLY, &st, err);
	return source < 0 ? source : copy_opened(source, &st, &place->to, file->name, true, err);
}

static int batch_copy(struct batch *batch, struct err *err)
{
	struct crew crew;
	crew_begin(&crew, batch->files, copy_listed, batch);
	int r = crew_end(&crew, err);
	batch_empty(batch);
	return r;
}

static int pin_again(const struct pin *pin, struct pin *ret_pin)
{
	*ret_pin = *pin;
	ret_pin->fd = fcntl(pin->fd, F_DUPFD_CLOEXEC, 0);
	return ret_pin->fd < 0 ? -errno : 0;
}

static int batch_take_place(struct batch *batch, const struct pin *from, const struct pin *to)
{
	AUTO_PIN struct pin source = PIN_NONE, target = PIN_NONE;
	int r = batch->places == batch->places_most ? -EMFILE : pin_again(from, &source);
	if (r == 0)
		r = pin_again(to, &target);
	if (r == 0)
		batch->place[batch->places++] = (struct place){.from = pin_take(&source), .to = pin_take(&target)};
	batch->here = r == 0;
	return r;
}

static int batch_add(struct batch *batch, const struct pin *from, const struct pin *to, const char *name, struct err *err)
{
	int r = batch->files == BATCH_FILES ? batch_copy(batch, err) : 0;
	if (r < 0)
		return r;
	r = batch->here ? 0 : batch_take_place(batch, from, to);
	if (r == -EMFILE || r == -ENFILE) {
		r = batch_copy(batch, err);
		if (r < 0)
			return r;
		r = batch_take_place(batch, from, to);
	}
	if (r < 0)
		return err_code(err, r, "copy", name);
	struct listed *file = &batch->file[batch->files++];
	file->place = batch->places - 1;
	(void)snprintf(file->name, sizeof file->name, "%s", name);
	return 0;
}

/* --- directories --------------------------------------------------------------------------------------------------------------------- */

struct copier {
	struct window *from, *to;
	struct batch *batch;
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
	c->batch->here = false;
	return push_pin(c->to, &target);
}

static int type_of(const struct pin *at, const struct entry *entry, mode_t *ret_type)
{
	struct stat st = {.st_mode = (mode_t)DTTOIF(entry->type)};
	if (entry->type == DT_UNKNOWN && fstatat(at->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
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
	return batch_add(c->batch, &from, &to, entry->name, err);
}

static int leave_directory(struct copier *c, struct err *err)
{
	int r = window_pop(c->from, true);
	c->batch->here = false;
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
			return batch_copy(c->batch, err);
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
	__attribute__((cleanup(batch_free))) struct batch *batch = batch_new();
	if (!source || !target || !batch)
		return err_code(err, -ENOMEM, "copy", NULL);
	if (pin_same(from, to))
		return err_set(err, -ELOOP, "copy", NULL, "source and target are the same directory");
	int r = open_again(from, source, err);
	if (!r)
		r = open_again(to, target, err);
	struct copier c = {.from = source, .to = target, .batch = batch, .target = to};
	return r < 0 ? r : copy_all(&c, skip, err);
}
