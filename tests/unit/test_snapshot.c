/* Snapshots of live databases. The copy is always judged by PRAGMA integrity_check, the source by every byte, name and time of its
 * directory. */
#include "tests/unit/snapshot_fixture.h"

#include <sys/resource.h>

/* --- a writer that never stops ---------------------------------------------------------------------------------------------- */

/* Rows 1, 2, 3 …, each in a transaction that also keeps two sums, so that a mixture of generations shows. */
static void commit_for_ever(sqlite3 *db, volatile int64_t *shared, const char *every_100)
{
	sql(db, "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b BLOB); CREATE TABLE IF NOT EXISTS s(n, total);"
		"INSERT INTO s SELECT 0, 0 WHERE NOT EXISTS (SELECT * FROM s)");
	for (int64_t i = 1;; i++) {
		char text[256];
		(void)snprintf(text, sizeof text,
			       "BEGIN; INSERT INTO t VALUES(%" PRId64 ", randomblob(%d)); UPDATE s SET n = n + 1, total = total + %" PRId64
			       "; COMMIT",
			       i, i % 50 ? (int)(i % 300) : 30000, i);
		sql(db, text);
		*shared = i;
		if (every_100 && i % 100 == 0)
			sql(db, every_100);
		nap_ms(3);
	}
}

static void write_wal(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=50");
	commit_for_ever(db, shared, NULL);
}

static void write_wal_truncating(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	(void)sqlite3_busy_timeout(db, 0); /* a snapshot may not disturb a writer that does not wait */
	sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=0");
	commit_for_ever(db, shared, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void write_rollback(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	sql(db, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF");
	commit_for_ever(db, shared, NULL);
}

static void write_persist(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	sql(db, "PRAGMA journal_mode=PERSIST; PRAGMA synchronous=OFF");
	commit_for_ever(db, shared, NULL);
}

static void every_copy_is_a_prefix(void **state, void (*body)(const char *, volatile int64_t *), int rounds)
{
	struct place *place = *state;
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), body);
	writer_await(&writer, 1);
	for (int i = 0; i < rounds; i++) {
		int64_t before = *writer.shared;
		take(place, "a.sqlite3");
		sqlite3 *db = copy_open(place, "a.sqlite3");
		int64_t rows = ask_integer(db, "SELECT count(*) FROM t");
		assert_true(rows >= before);
		assert_int_equal(ask_integer(db, "SELECT max(a) FROM t"), rows);
		assert_int_equal(ask_integer(db, "SELECT n FROM s"), rows);
		assert_int_equal(ask_integer(db, "SELECT total FROM s"), rows * (rows + 1) / 2);
		(void)sqlite3_close(db);
		assert_int_equal(waitpid(writer.pid, NULL, WNOHANG), 0); /* never failed, never waited */
	}
	int64_t last = *writer.shared;
	writer_await(&writer, last + 1);
	writer_kill(&writer);
}

static void I07_wal_writer_200_snapshots(void **state)
{
	every_copy_is_a_prefix(state, write_wal, 200);
}

static void X29_wal_truncated_all_the_time(void **state)
{
	every_copy_is_a_prefix(state, write_wal_truncating, 200);
}

static void rollback_journal_writer(void **state)
{
	every_copy_is_a_prefix(state, write_rollback, 100);
}

static void persistent_journal_writer(void **state)
{
	every_copy_is_a_prefix(state, write_persist, 50);
}

/* --- kinds of databases ------------------------------------------------------------------------------------------------------ */

static int64_t pragma(const char *path, const char *name)
{
	char text[64];
	sqlite3 *db = database_open(path);
	(void)snprintf(text, sizeof text, "PRAGMA %s", name);
	int64_t value = ask_integer(db, text);
	(void)sqlite3_close(db);
	return value;
}

static void X30_page_sizes_vacuum_versions_modes(void **state)
{
	struct place *place = *state;
	static const char *const modes[] = {"WAL", "DELETE"};
	for (int size = 512, vacuum = 0; size <= 65536; size *= 2, vacuum = (vacuum + 1) % 3) {
		for (size_t mode = 0; mode < 2; mode++) {
			char text[512], name[32], from[64];
			(void)snprintf(name, sizeof name, "p%d-%zu.sqlite", size, mode);
			(void)snprintf(from, sizeof from, "from/%s", name);
			(void)snprintf(
			    text, sizeof text,
			    "PRAGMA page_size=%d; PRAGMA auto_vacuum=%d; VACUUM; PRAGMA journal_mode=%s; PRAGMA user_version=2147483647;"
			    "PRAGMA application_id=77; CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(100000)); PRAGMA wal_checkpoint;"
			    "INSERT INTO t VALUES(2)",
			    size, vacuum, modes[mode]);
			sqlite3 *db = database_open(in_place(place, from));
			sql(db, text);
			uint64_t before = directory_trace(in_place(place, "from"));
			assert_int_equal(snapshot(place, name, NULL), 0);
			assert_true(directory_trace(in_place(place, "from")) == before);
			(void)sqlite3_close(db);
			char to[64], head[20];
			(void)snprintf(to, sizeof to, "to/%s", name);
			AUTO_CLOSE int fd = open(in_place(place, to), O_RDONLY | O_CLOEXEC);
			assert_int_equal(pread(fd, head, sizeof head, 0), sizeof head);
			assert_int_equal(head[18], mode == 0 ? 2 : 1); /* the journal mode that the file carries */
			assert_int_equal(rows_in_copy(place, name), 2);
			assert_int_equal(pragma(in_place(place, to), "page_size"), size);
			assert_int_equal(pragma(in_place(place, to), "auto_vacuum"), vacuum);
			assert_int_equal(pragma(in_place(place, to), "user_version"), 2147483647);
			assert_int_equal(pragma(in_place(place, to), "application_id"), 77);
		}
	}
}

static void I05_mode_under_any_umask(void **state)
{
	struct place *place = *state;
	static const mode_t masks[] = {0000, 0077, 0777};
	leave_wal(place, write_many_rows, 500);
	for (size_t i = 0; i < 3; i++) {
		mode_t old = umask(masks[i]);
		int r = snapshot(place, "a.sqlite3", NULL);
		(void)umask(old);
		assert_int_equal(r, 0);
		assert_int_equal(rows_in_copy(place, "a.sqlite3"), 500);
	}
}

static void grow(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
	for (int i = 0; i < 100; i++)
		sql(db, "BEGIN; WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<2000) INSERT INTO t(b) SELECT "
			"randomblob(1000) FROM "
			"c; COMMIT");
	*shared = 1;
	for (;;) {
		sql(db, "INSERT INTO t(b) VALUES(randomblob(1000))");
		nap_ms(2);
	}
}

static void database_of_200_mb_in_little_memory(void **state)
{
	struct place *place = *state;
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), grow);
	struct deadline until = deadline_in_ms(120000);
	struct backoff backoff = {0};
	while (!*writer.shared && !deadline_passed(until))
		backoff_sleep(&backoff, until);
	assert_true(size_of(in_place(place, "from/a.sqlite3")) > 200000000);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(snapshot_database(&place->from, "a.sqlite3", &place->to, "a.sqlite3", SOON, NULL) == 0 ? 0 : 1);
	int status = -1;
	struct rusage usage;
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	assert_int_equal(status, 0);
	print_message("peak of the child: %ld KiB\n", usage.ru_maxrss);
	if (!SANITIZED)
		assert_true(usage.ru_maxrss < 40000);
	writer_kill(&writer);
	assert_true(rows_in_copy(place, "a.sqlite3") >= 200000);
}

static void names_with_odd_bytes(void **state)
{
	struct place *place = *state;
	static const char *const names[] = {"a b?c#d%41.sqlite3", "\xff\xfe.sqlite3", "-rf.sqlite3", "a'\"\n.sqlite"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char from[64];
		(void)snprintf(from, sizeof from, "from/%s", names[i]);
		make_database(in_place(place, "from/plain"), "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
		assert_int_equal(rename(in_place(place, "from/plain"), in_place(place, from)), 0);
		take(place, names[i]);
		assert_int_equal(unlinkat(place->to.fd, names[i], 0), 0);
	}
	char longest[256];
	memset(longest, 'x', 255);
	longest[255] = '\0';
	write_file(in_place(place, "from/x"), "", 0);
	refused(place, longest, -ENAMETOOLONG, "too long");
}

static void no_descriptor_is_left(void **state)
{
	struct place *place = *state;
	leave_wal(place, write_many_rows, 500);
	take(place, "a.sqlite3");
	size_t before = entries_in("/proc/self/fd");
	take(place, "a.sqlite3");
	refused(place, "none", -ENOENT, "");
	assert_int_equal(entries_in("/proc/self/fd"), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(I07_wal_writer_200_snapshots),
	    TEST(X29_wal_truncated_all_the_time),
	    TEST(rollback_journal_writer),
	    TEST(persistent_journal_writer),
	    TEST(X30_page_sizes_vacuum_versions_modes),
	    TEST(I05_mode_under_any_umask),
	    TEST(database_of_200_mb_in_little_memory),
	    TEST(names_with_odd_bytes),
	    TEST(no_descriptor_is_left),
	};
	cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
