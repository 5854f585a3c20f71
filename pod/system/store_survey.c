#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/store_parts.h"

#define DEPTH_MAX 16
#define CLOCK_EVERY 512
#define VERDICT_IS_DIRECTORY "a directory"

struct walk {
	const struct store *store;
	struct survey *survey;
	struct store_report *report;
	struct deadline until;
	size_t entries, databases;
};

static void stream_close(DIR **stream)
{
	if (*stream)
		(void)closedir(*stream);
}

void survey_free(struct survey *survey)
{
	for (size_t i = 0; i < survey->n; i++)
		free(survey->v[i].path);
	free(survey->v);
	free(survey->void_reason);
	*survey = (struct survey){0};
}

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);
	return len > end_len && strcmp(name + len - end_len, end) == 0;
}

bool is_database_name(const char *name)
{
	return ends_with(name, ".sqlite3") || ends_with(name, ".sqlite");
}

bool is_sidecar_name(const char *name)
{
	static const char *const ends[] = {".sqlite3-wal", ".sqlite3-shm", ".sqlite3-journal",
					   ".sqlite-wal",  ".sqlite-shm",  ".sqlite-journal"};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (ends_with(name, ends[i]))
			return true;
	return false;
}

int parent_pin(const struct pin *at, const char *path, struct pin *ret_parent, const char **ret_base, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char directory[PLANE_PATH_MAX];
	if (slash && (size_t)(slash - path) >= sizeof directory)
		return err_code(err, -ENAMETOOLONG, "store", path);
	(void)snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) : 0, path);
	*ret_base = slash ? slash + 1 : path;
	return pin_descend(at, directory, ret_parent, err);
}

/* NULL: a file that may be staged. */
static const char *verdict(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return VERDICT_IS_DIRECTORY;
	if (S_ISLNK(st->st_mode))
		return "a link";
	if (!S_ISREG(st->st_mode))
		return S_ISFIFO(st->st_mode) ? "a FIFO" : S_ISSOCK(st->st_mode) ? "a socket" : "a device";
	if (st->st_uid != geteuid())
		return "it belongs to another user";
	return st->st_nlink > 1 ? "it has more than one hard link" : NULL;
}

static int voided(struct survey *survey, const char *path, const char *why)
{
	if (!survey->void_reason && asprintf(&survey->void_reason, "%s: %s", path, why) < 0) {
		survey->void_reason = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* The list is full: a database still takes the place of a file, since databases come first. */
static struct survey_file *slot_for(struct walk *walk, bool database)
{
	struct survey *survey = walk->survey;
	if (survey->n < STORE_FILES_MAX) {
		if (!survey->v)
			survey->v = calloc(STORE_FILES_MAX, sizeof *survey->v);
		return survey->v ? &survey->v[survey->n++] : NULL;
	}
	for (size_t i = survey->n; database && walk->databases < STORE_FILES_MAX && i-- > 0;)
		if (!survey->v[i].database) {
			survey->bytes -= survey->v[i].size;
			free(survey->v[i].path);
			return &survey->v[i];
		}
	return NULL;
}

static int add_file(struct walk *walk, const char *path, const struct stat *st, bool database)
{
	struct survey *survey = walk->survey;
	survey->files++;
	struct survey_file *slot = slot_for(walk, database);
	if (!slot)
		return survey->v ? 0 : -ENOMEM;
	*slot = (struct survey_file){.path = strdup(path), .size = (uint64_t)st->st_size, .database = database};
	survey->bytes += slot->size;
	walk->databases += database;
	return slot->path ? 0 : -ENOMEM;
}

static int walk_directory(struct walk *walk, const struct pin *directory, const char *path, unsigned depth, struct err *err);

static int walk_into(struct walk *walk, const struct pin *directory, const char *name, const char *path, unsigned depth, struct err *err)
{
	AUTO_PIN struct pin child = PIN_NONE;
	struct err why = {0};
	if (depth >= DEPTH_MAX) {
		report_line(walk->report, "%s: passed over %s: more than %d levels deep", walk->store->name, path, DEPTH_MAX);
		return 0;
	}
	int r = pin_child(directory, name, &child, &why);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		report_line(walk->report, "%s: passed over %s: %s", walk->store->name, path, why.text);
		return 0;
	}
	return walk_directory(walk, &child, path, depth + 1, err);
}

static int walk_entry(struct walk *walk, const struct pin *directory, const char *name, const char *path, unsigned depth, struct err *err)
{
	struct stat st;
	if (is_sidecar_name(name))
		return 0;
	if (fstatat(directory->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_code(err, -errno, "store", path);
	const char *why_not = verdict(&st);
	if (why_not && S_ISDIR(st.st_mode))
		return walk_into(walk, directory, name, path, depth, err);
	int r = 0;
	if (!why_not)
		r = add_file(walk, path, &st, is_database_name(name));
	else if (is_database_name(name))
		r = voided(walk->survey, path, why_not);
	else
		report_line(walk->report, "%s: passed over %s: %s", walk->store->name, path, why_not);
	return r < 0 ? err_code(err, r, "store", path) : 0;
}

static int walk_directory(struct walk *walk, const struct pin *directory, const char *path, unsigned depth, struct err *err)
{
	int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_code(err, -errno, "store", path);
	__attribute__((cleanup(stream_close))) DIR *stream = fdopendir(fd);
	if (!stream) {
		close_quietly(fd);
		return err_code(err, -ENOMEM, "store", path);
	}
	for (;;) {
		const struct dirent *entry;
		int r = listing_next(stream, &entry);
		if (r <= 0)
			return r < 0 ? err_code(err, r, "store", path) : 0;
		if (++walk->entries % CLOCK_EVERY == 0 && deadline_passed(walk->until))
			return err_set(err, -ETIMEDOUT, "store", path, "it is too large to be looked through in time");
		AUTO_FREE char *below = NULL;
		if (asprintf(&below, "%s%s%s", path, *path ? "/" : "", entry->d_name) < 0) {
			below = NULL;
			return err_code(err, -ENOMEM, "store", path);
		}
		r = walk_entry(walk, directory, entry->d_name, below, depth, err);
		if (r < 0)
			return r;
	}
}

static int databases_first(const void *a, const void *b)
{
	const struct survey_file *x = a, *y = b;
	return x->database != y->database ? (x->database ? -1 : 1) : strcmp(x->path, y->path);
}

int survey_make(const struct store *store, const struct pin *source, struct deadline until, struct store_report *report,
		struct survey *ret_survey, struct err *err)
{
	AUTO_SURVEY struct survey survey = {0};
	struct walk walk = {.store = store, .survey = &survey, .report = report, .until = until};
	int r = walk_directory(&walk, source, "", 0, err);
	if (r < 0)
		return r;
	if (survey.n)
		qsort(survey.v, survey.n, sizeof *survey.v, databases_first);
	*ret_survey = survey;
	survey = (struct survey){0};
	return 0;
}
