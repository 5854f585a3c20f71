#include "pod/system/snapshot_source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fsops/bytes.h"
#include "fsops/cleanup.h"
#include "pod/system/snapshot_locks.h"

#define WAL_HEADER 32
#define WAL_PAGE_SIZE_AT 8
#define ROOM_SPARE (1u << 20)

enum part { MAIN, WAL, SHM, JOURNAL, PARTS };

static const struct part_entry {
	const char *suffix, *copy; /* copy NULL: never copied */
} parts[PARTS] = {
    [MAIN] = {"", SNAPSHOT_COPY},
    [WAL] = {"-wal", SNAPSHOT_COPY_WAL},
    [SHM] = {"-shm", NULL},
    [JOURNAL] = {"-journal", SNAPSHOT_COPY_JOURNAL},
};

struct source {
	const struct pin *at;
	struct file {
		char name[NAME_MAX + 1];
		int fd; /* -1: there is none */
		struct stat st;
	} file[PARTS];
	bool hot; /* the journal has to be rolled back in the copy */
};

static void source_close(struct source *source)
{
	for (int i = 0; i < PARTS; i++)
		close_quietly(source->file[i].fd);
}
#define AUTO_SOURCE __attribute__((cleanup(source_close)))

static int changed(struct err *err, const char *name)
{
	return err_set(err, -EAGAIN, "snapshot", name, "it was replaced or changed while it was read");
}

static int judge(const struct file *file, struct err *err)
{
	if (!S_ISREG(file->st.st_mode))
		return err_set(err, -EINVAL, "snapshot", file->name, "not a regular file");
	if (file->st.st_uid != geteuid())
		return err_set(err, -EPERM, "snapshot", file->name, "it belongs to another user");
	if (file->st.st_nlink > 1)
		return err_set(err, -EMLINK, "snapshot", file->name, "it has more than one hard link");
	return file->st.st_nlink == 0 ? changed(err, file->name) : 0;
}

/* Absent is no error: fd stays -1. */
static int part_open(struct source *source, enum part part, struct err *err)
{
	struct file *file = &source->file[part];
	if (fstatat(source->at->fd, file->name, &file->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_code(err, -errno, "snapshot", file->name);
	if (S_ISLNK(file->st.st_mode))
		return err_set(err, -ELOOP, "snapshot", file->name, "it is a link");
	int r = judge(file, err); /* before the open too: opening a device may do something */
	if (r < 0)
		return r;
	struct err why = {0};
	int fd = pin_open_file(source->at, file->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &why);
	if (fd < 0)
		return fd == -ENOENT ? changed(err, file->name) : err_set(err, fd, "snapshot", file->name, "%s", why.text);
	file->fd = fd;
	if (fstat(fd, &file->st) < 0)
		return err_code(err, -errno, "snapshot", file->name);
	return judge(file, err);
}

/* Does the name still (not) lead to the descriptor? */
static bool still_there(const struct source *source, enum part part)
{
	const struct file *file = &source->file[part];
	struct stat now;
	if (fstatat(source->at->fd, file->name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && file->fd < 0;
	return file->fd >= 0 && now.st_dev == file->st.st_dev && now.st_ino == file->st.st_ino;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Refreshes nothing: compares with what was read when it was opened or locked. */
static bool untouched(const struct file *file)
{
	struct stat now;
	if (file->fd < 0)
		return true;
	return fstat(file->fd, &now) == 0 && now.st_size == file->st.st_size && same_time(now.st_mtim, file->st.st_mtim) &&
	       now.st_nlink == 1;
}

/* SQLite's own test for a journal that a dead writer has left, and for the one kind that we do not take. */
static int journal_judge(struct source *source, struct err *err)
{
	static const unsigned char super_magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	const struct file *journal = &source->file[JOURNAL];
	unsigned char first = 0, last[sizeof super_magic];
	bool reserved;
	if (journal->fd < 0 || journal->st.st_size == 0 || pread(journal->fd, &first, 1, 0) != 1 || first == 0)
		return 0;
	int r = database_is_reserved(source->file[MAIN].fd, &reserved, err);
	if (r < 0 || reserved)
		return r;
	/* Rolling it back would look for, and perhaps delete, a file that the journal names by path. */
	if (journal->st.st_size > (off_t)sizeof last &&
	    pread(journal->fd, last, sizeof last, journal->st.st_size - (off_t)sizeof last) == (ssize_t)sizeof last &&
	    memcmp(last, super_magic, sizeof last) == 0)
		return err_set(err, -EINVAL, "snapshot", journal->name, "a transaction over several databases was cut off");
	source->hot = true;
	return 0;
}

static int source_hold(struct source *source, struct err *err)
{
	struct file *file = source->file;
	int r = part_open(source, MAIN, err);
	if (r < 0)
		return r;
	if (file[MAIN].fd < 0)
		return err_set(err, -ENOENT, "snapshot", file[MAIN].name, "there is no such file");
	r = lock_database_shared(file[MAIN].fd, err);
	if (r < 0)
		return r;
	for (enum part part = WAL; part < PARTS; part++) {
		r = part_open(source, part, err);
		if (r < 0)
			return r;
	}
	if (file[WAL].fd >= 0 && file[SHM].fd >= 0) {
		r = lock_wal_still(file[SHM].fd, err);
		if (r < 0)
			return r;
	}
	/* What was opened before the locks has to be what is locked now, and what is locked is measured anew. */
	for (enum part part = MAIN; part < PARTS; part++)
		if (file[part].fd >= 0 && fstat(file[part].fd, &file[part].st) < 0)
			return err_code(err, -errno, "snapshot", file[part].name);
	for (enum part part = MAIN; part <= SHM; part++)
		if (!still_there(source, part))
			return changed(err, file[part].name);
	return journal_judge(source, err);
}

/* After the last byte. A WAL with `-shm` may have grown and a journal may have come and gone: the locks answer for those. */
static int source_was_still(const struct source *source, struct err *err)
{
	const struct file *file = source->file;
	bool grows = file[WAL].fd >= 0 && file[SHM].fd >= 0;
	for (enum part part = MAIN; part <= SHM; part++)
		if (!(part == SHM && file[WAL].fd < 0) && !still_there(source, part)) /* a lone -shm is left over, or a newcomer's */
			return changed(err, file[part].name);
	if (!untouched(&file[MAIN]) || (!grows && !untouched(&file[WAL])) || (source->hot && !untouched(&file[JOURNAL])))
		return changed(err, file[MAIN].name);
	return 0;
}

static int room_for(const struct source *source, const struct pin *into, struct err *err)
{
	struct statvfs fs;
	if (fstatvfs(into->fd, &fs) < 0)
		return err_code(err, -errno, "snapshot", NULL);
	/* Recovering writes the WAL's pages into the database once more. */
	uint64_t need = (uint64_t)source->file[MAIN].st.st_size + ROOM_SPARE, have = (uint64_t)fs.f_bavail * fs.f_frsize;
	need += source->file[WAL].fd >= 0 ? 2 * (uint64_t)source->file[WAL].st.st_size : 0;
	need += source->hot ? 2 * (uint64_t)source->file[JOURNAL].st.st_size : 0;
	if (need <= have)
		return 0;
	return err_set(err, -ENOSPC, "snapshot", source->file[MAIN].name, "it needs %llu bytes of room and there are %llu",
		       (unsigned long long)need, (unsigned long long)have);
}

/* An empty database beside a WAL has all its pages there, but SQLite takes a database of no page for proof that the WAL is stale. */
static int pad_to_one_page(int copy, int wal)
{
	unsigned char header[WAL_HEADER];
	if (pread(wal, header, sizeof header, 0) != (ssize_t)sizeof header)
		return 0;
	const unsigned char *at = header + WAL_PAGE_SIZE_AT;
	uint32_t page = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
	if (page < 512 || page > 65536 || (page & (page - 1)))
		return 0;
	return ftruncate(copy, (off_t)page) < 0 ? -errno : 0;
}

static int part_copy(struct source *source, enum part part, const struct pin *into, struct deadline until, struct err *err)
{
	struct file *file = &source->file[part];
	AUTO_CLOSE int copy = pin_open_file(into, parts[part].copy, O_RDWR | O_CREAT | O_EXCL, 0600, err);
	if (copy < 0)
		return copy;
	if (fchmod(copy, 0600) < 0)
		return err_code(err, -errno, "snapshot", parts[part].copy);
	/* The WAL has grown while the database was copied. */
	struct stat now;
	if (fstat(file->fd, &now) < 0)
		return err_code(err, -errno, "snapshot", file->name);
	if (now.st_size < file->st.st_size)
		return changed(err, file->name);
	uint64_t size = (uint64_t)(part == WAL && source->file[SHM].fd >= 0 ? now.st_size : file->st.st_size);
	int r = bytes_copy(file->fd, copy, size, until, err);
	if (r < 0)
		return r;
	if (part == MAIN && size == 0 && source->file[WAL].fd >= 0)
		r = pad_to_one_page(copy, source->file[WAL].fd);
	return r < 0 ? err_code(err, r, "snapshot", parts[part].copy) : 0;
}

static int source_copy(struct source *source, const struct pin *into, struct deadline until, struct err *err)
{
	int r = room_for(source, into, err);
	if (r == 0)
		r = part_copy(source, MAIN, into, until, err); /* first: the WAL then holds all that is newer */
	if (r == 0 && source->file[WAL].fd >= 0)
		r = part_copy(source, WAL, into, until, err);
	if (r == 0 && source->hot)
		r = part_copy(source, JOURNAL, into, until, err);
	return r < 0 ? r : source_was_still(source, err);
}

static int copy_once(const struct pin *from, const char *name, const struct pin *into, struct deadline until, struct err *err)
{
	AUTO_SOURCE struct source source = {.at = from};
	for (enum part part = MAIN; part < PARTS; part++) {
		source.file[part].fd = -1;
		(void)snprintf(source.file[part].name, sizeof source.file[part].name, "%s%s", name, parts[part].suffix);
		if (parts[part].copy && unlinkat(into->fd, parts[part].copy, 0) < 0 && errno != ENOENT)
			return err_code(err, -errno, "snapshot", parts[part].copy);
	}
	int r = source_hold(&source, err);
	return r < 0 ? r : source_copy(&source, into, until, err);
}

int snapshot_source_copy(const struct pin *from, const char *name, const struct pin *into, struct deadline locked_until,
			 struct deadline until, struct err *err)
{
	struct backoff backoff = {0};
	if (strlen(name) + sizeof "-journal" > sizeof((struct file *)NULL)->name)
		return err_set(err, -ENAMETOOLONG, "snapshot", name, "the name is too long for a database");
	for (;;) {
		struct err why = {0};
		int r = copy_once(from, name, into, until, &why);
		if (r == 0)
			return 0;
		if (r != -EAGAIN || deadline_passed(locked_until)) {
			if (err)
				*err = why;
			return r == -EAGAIN ? err_set(err, -EBUSY, "snapshot", name, "%s, for as long as it was tried", why.text) : r;
		}
		backoff_sleep(&backoff, locked_until);
	}
}
