#include "pod/system/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fsops/draft.h"
#include "pod/system/library.h"
#include "pod/system/snapshot_source.h"

#define VFS_NAME "pinned"
#define STEPS_BETWEEN_CLOCKS 20000
#define HEAP_LIMIT (256 << 20) /* a bound against rows that a broken file only claims to have */

#define FUNCTIONS(F) F(close) F(column_text) F(db_config) F(errmsg) F(errstr) F(exec) F(finalize) F(hard_heap_limit64) \
	F(open_v2) F(prepare_v2) F(progress_handler) F(step) F(vfs_find) F(vfs_register)
#define SLOT(name) __typeof__(sqlite3_##name) *name;
#define NAMED(name) {"sqlite3_" #name, &sqlite.name},

static struct {
	FUNCTIONS(SLOT)
} sqlite;

static int sqlite_load(struct err *err)
{
	static const struct library_function functions[] = {FUNCTIONS(NAMED)};
	return sqlite.open_v2 ? 0 : library_load(LIBRARY_FILE("sqlite3", "0"), functions, sizeof functions / sizeof *functions, err);
}

/* SQLite's own VFS but for one thing: it would resolve the link that leads through our descriptor and then work on a path. Kept as it is,
 * every open, stat and unlink of the copy goes below the pinned directory. */
static sqlite3_vfs pinned_vfs;

static int keep_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
	(void)vfs;
	return snprintf(out, (size_t)size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static void pinned_vfs_register(void)
{
	const sqlite3_vfs *usual = sqlite.vfs_find(NULL);
	if (!usual)
		return;
	pinned_vfs = *usual;
	pinned_vfs.pNext = NULL;
	pinned_vfs.zName = VFS_NAME;
	pinned_vfs.xFullPathname = keep_path;
	(void)sqlite.vfs_register(&pinned_vfs, 0);
	(void)sqlite.hard_heap_limit64(HEAP_LIMIT);
}

static int time_is_up(void *context)
{
	return deadline_passed(*(const struct deadline *)context);
}

static int database_error(sqlite3 *db, int code, struct err *err)
{
	switch (code & 0xff) {
	case SQLITE_INTERRUPT:
		return err_set(err, -ETIMEDOUT, "snapshot", NULL, "the copy could not be checked in time");
	case SQLITE_NOMEM:
		return err_set(err, -ENOMEM, "snapshot", NULL, "checking the copy needs too much memory");
	case SQLITE_FULL:
		return err_set(err, -ENOSPC, "snapshot", NULL, "no room to recover the copy");
	case SQLITE_IOERR:
		return err_set(err, -EIO, "snapshot", NULL, "the copy cannot be recovered: %s", sqlite.errmsg(db));
	default:
		return err_set(err, -EBADMSG, "snapshot", NULL, "%s", db ? sqlite.errmsg(db) : sqlite.errstr(code));
	}
}

static int run(sqlite3 *db, const char *statement, struct err *err)
{
	int code = sqlite.exec(db, statement, NULL, NULL, NULL);
	return code == SQLITE_OK ? 0 : database_error(db, code, err);
}

/* The first row has to be "ok". */
static int quick_check(sqlite3 *db, struct err *err)
{
	sqlite3_stmt *check = NULL;
	int code = sqlite.prepare_v2(db, "PRAGMA quick_check(1)", -1, &check, NULL);
	if (code == SQLITE_OK)
		code = sqlite.step(check);
	int r = 0;
	if (code != SQLITE_ROW) {
		r = database_error(db, code, err);
	} else {
		const char *verdict = (const char *)sqlite.column_text(check, 0);
		if (!verdict || strcmp(verdict, "ok") != 0)
			r = err_set(err, -EBADMSG, "snapshot", NULL, "damaged: %s", verdict ? verdict : "no verdict");
	}
	(void)sqlite.finalize(check);
	return r;
}

static void database_close(sqlite3 **db)
{
	(void)sqlite.close(*db);
}

/* EXCLUSIVE keeps the index of the WAL in memory: no -shm. Nothing is synced: after a power cut the pod is gone anyway. */
static const char settings[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF;"
			       "PRAGMA cell_size_check=ON;";

static int recover_and_check(const char *path, struct deadline *until, struct err *err)
{
	__attribute__((cleanup(database_close))) sqlite3 *db = NULL;
	int code = sqlite.open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, VFS_NAME);
	if (code != SQLITE_OK)
		return database_error(db, code, err);
	(void)sqlite.db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite.progress_handler(db, STEPS_BETWEEN_CLOCKS, time_is_up, until);
	int r = run(db, settings, err);
	if (r == 0)
		r = run(db, "PRAGMA wal_checkpoint(TRUNCATE)",
			err); /* also what rolls a hot journal back, and nothing where there is no WAL */
	return r < 0 ? r : quick_check(db, err);
}

/* Only the database itself may be left, with nothing beside it that is still part of it. */
static int is_single_file(const struct pin *dir, struct err *err)
{
	static const char *const sidecars[] = {SNAPSHOT_COPY_WAL, SNAPSHOT_COPY_SHM, SNAPSHOT_COPY_JOURNAL};
	struct stat st;
	for (size_t i = 0; i < sizeof sidecars / sizeof *sidecars; i++) {
		if (fstatat(dir->fd, sidecars[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return err_set(err, -EIO, "snapshot", sidecars[i], "the copy could not be brought into one file");
		if (errno != ENOENT)
			return err_code(err, -errno, "snapshot", sidecars[i]);
	}
	return 0;
}

static int recover(const struct pin *dir, struct deadline until, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char path[64];
	int r = sqlite_load(err);
	if (r < 0)
		return r;
	(void)pthread_once(&once, pinned_vfs_register);
	if (!pinned_vfs.zName)
		return err_set(err, -ENOSYS, "snapshot", NULL, "SQLite has no way to open files here");
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", dir->fd, SNAPSHOT_COPY);
	r = recover_and_check(path, &until, err);
	return r < 0 ? r : is_single_file(dir, err);
}

static int name_is_free(const struct pin *to, const char *to_name, struct err *err)
{
	struct stat st;
	if (!pin_single_name(to_name))
		return err_set(err, -EINVAL, "snapshot", to_name, "not a single name");
	if (fstatat(to->fd, to_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_code(err, -EEXIST, "snapshot", to_name);
	return errno == ENOENT ? 0 : err_code(err, -errno, "snapshot", to_name);
}

int snapshot_database(const struct pin *from, const char *name, const struct pin *to, const char *to_name, struct deadline until,
		      struct err *err)
{
	AUTO_DRAFT struct draft draft = DRAFT_NONE;
	struct err why = {0};
	int r = name_is_free(to, to_name, &why);
	if (r == 0)
		r = draft_make(to, &draft, &why);
	if (r == 0)
		r = snapshot_source_copy(from, name, &draft.dir, deadline_earlier(until, deadline_in_ms(SNAPSHOT_LOCKED_MS)), until, &why);
	if (r == 0)
		r = recover(&draft.dir, until, &why);
	if (r == 0)
		r = publish_new(&draft.dir, SNAPSHOT_COPY, to, to_name, &why);
	if (r < 0)
		return err_set(err, r, "snapshot", name, "%s%s%s", why.subject, *why.subject ? ": " : "", why.text);
	return 0;
}
