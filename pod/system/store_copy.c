#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/bytes.h"
#include "fsops/cleanup.h"
#include "pod/system/snapshot.h"
#include "pod/system/store_parts.h"

#define CHANGING_TRIES 5

void scratch_name(size_t index, char out[24])
{
	(void)snprintf(out, 24, "%zu", index);
}

static int not_taken(struct err *err, const char *base, const char *why)
{
	return err_set(err, -EINVAL, "store", base, "%s", why);
}

static int judge(int fd, const char *base, struct stat *ret_st, struct err *err)
{
	if (fstat(fd, ret_st) < 0)
		return err_code(err, -errno, "store", base);
	if (!S_ISREG(ret_st->st_mode))
		return not_taken(err, base, "not a regular file");
	if (ret_st->st_uid != geteuid())
		return not_taken(err, base, "it belongs to another user");
	return ret_st->st_nlink > 1 ? not_taken(err, base, "it has more than one hard link") : 0;
}

static bool same_state(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* -EAGAIN: it was written to meanwhile. */
static int copy_bytes_of(int from, const char *base, const struct pin *scratch, const char *to_name, struct deadline until, struct err *err)
{
	struct stat before, after;
	int r = judge(from, base, &before, err);
	if (r < 0)
		return r;
	AUTO_CLOSE int to = pin_open_file(scratch, to_name, O_RDWR | O_CREAT | O_EXCL, 0600, err);
	if (to < 0)
		return to;
	if (fchmod(to, 0600) < 0)
		return err_code(err, -errno, "store", to_name);
	r = bytes_copy(from, to, (uint64_t)before.st_size, until, err);
	if (r == 0 && fstat(from, &after) < 0)
		r = err_code(err, -errno, "store", base);
	if (r == 0 && !same_state(&before, &after))
		r = err_set(err, -EAGAIN, "store", base, "it is written to while it is read");
	if (r < 0)
		(void)unlinkat(scratch->fd, to_name, 0);
	return r;
}

static int file_copy(const struct pin *directory, const char *base, const struct pin *scratch, const char *to_name, struct deadline until,
		     struct err *err)
{
	struct backoff backoff = {0};
	for (int i = 1;; i++) {
		AUTO_CLOSE int from = pin_open_file(directory, base, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
		int r = from < 0 ? from : copy_bytes_of(from, base, scratch, to_name, until, err);
		if (r != -EAGAIN || i == CHANGING_TRIES)
			return r;
		backoff_sleep(&backoff, until);
	}
}

/* Is it this one file that cannot be had, and not the place that cannot take it? */
static bool is_the_files_fault(int code)
{
	return code == -EINVAL || code == -ELOOP || code == -ENOENT || code == -EACCES || code == -EPERM || code == -ENXIO ||
	       code == -EAGAIN || code == -EXDEV || code == -ENOTDIR;
}

static int copy_one(const struct pin *source, const struct survey_file *file, const struct pin *scratch, const char *to_name,
		    struct deadline until, struct err *err)
{
	AUTO_PIN struct pin directory = PIN_NONE;
	const char *base;
	int r = parent_pin(source, file->path, &directory, &base, err);
	if (r < 0)
		return r;
	if (file->database)
		return snapshot_database(&directory, base, scratch, to_name, until, err);
	return file_copy(&directory, base, scratch, to_name, until, err);
}

int store_copy(const struct store *store, const struct pin *source, struct survey *survey, const struct pin *scratch, struct deadline until,
	       struct store_report *report, struct err *err)
{
	for (size_t i = 0; i < survey->n; i++) {
		struct survey_file *file = &survey->v[i];
		struct err why = {0};
		char to_name[24];
		scratch_name(i, to_name);
		int r = copy_one(source, file, scratch, to_name, until, &why);
		file->copied = r == 0;
		if (r < 0 && !file->database && is_the_files_fault(r))
			report_line(report, "%s: passed over %s: %s", store->name, file->path, why.text);
		else if (r < 0)
			return err_set(err, r, "store", file->path, "%s: %s", file->path, why.text);
	}
	return 0;
}
