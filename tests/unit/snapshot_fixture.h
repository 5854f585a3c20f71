/* A snapshot of <place>/from into <place>/to, and what there is to be said about the copy. */
#pragma once

#include "tests/unit/database_fixture.h"

#include "pod/system/snapshot.h"

#define SOON deadline_in_ms(60000)

static inline int snapshot(const struct place *place, const char *name, struct err *err)
{
	(void)unlinkat(place->to.fd, name, 0);
	return snapshot_database(&place->from, name, &place->to, name, SOON, err);
}

static inline void take(const struct place *place, const char *name)
{
	struct err err = {0};
	if (snapshot(place, name, &err) < 0)
		fail_msg("%s: %s", err.subject, err.text);
	assert_int_equal(entries_in(in_place(place, "to")), 1);
}

static inline void refused(const struct place *place, const char *name, int code, const char *part_of_text)
{
	struct err err = {0};
	size_t before = entries_in(in_place(place, "to"));
	assert_int_equal(snapshot_database(&place->from, name, &place->to, name, SOON, &err), code);
	if (!strstr(err.text, part_of_text))
		fail_msg("\"%s\" is not in \"%s\"", part_of_text, err.text);
	assert_string_equal(err.subject, name);
	assert_int_equal(entries_in(in_place(place, "to")), before);
}

/* Opens the published copy, which has to be one sound file; the caller closes it. */
static sqlite3 *copy_open(const struct place *place, const char *name)
{
	char path[512];
	(void)snprintf(path, sizeof path, "%s/to/%s", place->path, name);
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	sqlite3 *db = database_open(path);
	assert_true(is_sound(db));
	return db;
}

static inline int64_t rows_in_copy(const struct place *place, const char *name)
{
	sqlite3 *db = copy_open(place, name);
	int64_t rows = ask_integer(db, "SELECT count(*) FROM t");
	(void)sqlite3_close(db);
	return rows;
}

static inline void write_many_rows(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	sql(db, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a)");
	for (int i = 0; i < 500; i++)
		sql(db, "INSERT INTO t VALUES(hex(randomblob(400)))");
	*shared = 500;
	(void)pause();
}

static inline void leave_wal(const struct place *place, void (*body)(const char *, volatile int64_t *), int64_t rows)
{
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), body);
	writer_await(&writer, rows);
	writer_kill(&writer);
	assert_true(size_of(in_place(place, "from/a.sqlite3-wal")) > 0);
}

static inline void untouched_by_a_snapshot(const struct place *place, int64_t rows)
{
	uint64_t before = directory_trace(in_place(place, "from"));
	take(place, "a.sqlite3");
	assert_true(directory_trace(in_place(place, "from")) == before);
	assert_int_equal(rows_in_copy(place, "a.sqlite3"), rows);
}

static inline void make_database(const char *path, const char *text)
{
	sqlite3 *db = database_open(path);
	sql(db, text);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}
