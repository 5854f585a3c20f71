/* Snapshots of what dead or silent owners have left, and of what is locked. */
#include "tests/unit/snapshot_fixture.h"

/* --- left-overs of dead writers --------------------------------------------------------------------------------------------- */

static void write_one_row(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	sql(db, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a); INSERT INTO t VALUES(42)");
	*shared = 1;
	(void)pause();
}

static void I08_owner_killed_directory_0555(void **state)
{
	struct place *place = *state;
	leave_wal(place, write_many_rows, 500);
	assert_int_equal(chmod(in_place(place, "from"), 0555), 0);
	untouched_by_a_snapshot(place, 500);
	assert_int_equal(chmod(in_place(place, "from"), 0700), 0);
	assert_int_equal(unlink(in_place(place, "from/a.sqlite3-shm")), 0);
	assert_int_equal(chmod(in_place(place, "from"), 0555), 0);
	untouched_by_a_snapshot(place, 500);
	assert_int_equal(chmod(in_place(place, "from"), 0700), 0);
}

static void I08_as_a_plain_user(void **state)
{
	struct place *place = *state;
	leave_wal(place, write_many_rows, 500);
	if (geteuid() == 0) {
		static const char *const files[] = {".", "from", "to", "from/a.sqlite3", "from/a.sqlite3-wal", "from/a.sqlite3-shm"};
		for (size_t i = 0; i < sizeof files / sizeof *files; i++)
			assert_int_equal(chown(in_place(place, files[i]), 65534, 65534), 0);
	}
	assert_int_equal(chmod(in_place(place, "from"), 0555), 0);
	uint64_t before = directory_trace(in_place(place, "from"));
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		_exit(snapshot_database(&place->from, "a.sqlite3", &place->to, "a.sqlite3", SOON, NULL) == 0 ? 0 : 1);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(directory_trace(in_place(place, "from")) == before);
	assert_int_equal(chmod(in_place(place, "from"), 0700), 0);
	assert_int_equal(rows_in_copy(place, "a.sqlite3"), 500);
}

static void I09_main_4096_bytes_row_in_wal(void **state)
{
	struct place *place = *state;
	leave_wal(place, write_one_row, 1);
	assert_int_equal(size_of(in_place(place, "from/a.sqlite3")), 4096);
	untouched_by_a_snapshot(place, 1);
}

static void I09_main_empty_row_in_wal(void **state)
{
	struct place *place = *state;
	leave_wal(place, write_one_row, 1);
	assert_int_equal(truncate(in_place(place, "from/a.sqlite3"), 0), 0);
	untouched_by_a_snapshot(place, 1);
	assert_int_equal(unlink(in_place(place, "from/a.sqlite3-shm")), 0);
	untouched_by_a_snapshot(place, 1);
}

static void I09_one_row_while_the_writer_is_connected(void **state)
{
	struct place *place = *state;
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), write_one_row);
	writer_await(&writer, 1);
	untouched_by_a_snapshot(place, 1);
	writer_kill(&writer);
}

/* A stale -shm is not believed: the WAL itself says what was committed. */
static void stale_shm_of_garbage(void **state)
{
	struct place *place = *state;
	char garbage[32768];
	memset(garbage, 0xa5, sizeof garbage);
	leave_wal(place, write_many_rows, 500);
	write_file(in_place(place, "from/a.sqlite3-shm"), garbage, sizeof garbage);
	untouched_by_a_snapshot(place, 500);
}

static void torn_end_of_wal(void **state)
{
	struct place *place = *state;
	leave_wal(place, write_many_rows, 500);
	off_t size = size_of(in_place(place, "from/a.sqlite3-wal"));
	assert_int_equal(truncate(in_place(place, "from/a.sqlite3-wal"), size - 100), 0);
	untouched_by_a_snapshot(place, 499);
}

static void cut_off_in_a_transaction(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	sql(db, "PRAGMA journal_mode=DELETE; PRAGMA cache_size=5; CREATE TABLE t(a, b)");
	for (int i = 0; i < 300; i++)
		sql(db, "INSERT INTO t VALUES(1, hex(randomblob(300)))");
	/* The cache is too small: pages of the unfinished transaction are written into the database. */
	sql(db, "BEGIN; UPDATE t SET a = 2, b = hex(randomblob(300)); INSERT INTO t SELECT 3, b FROM t");
	*shared = 1;
	(void)pause();
}

static void X27_hot_journal_is_rolled_back_in_the_copy_only(void **state)
{
	struct place *place = *state;
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), cut_off_in_a_transaction);
	writer_await(&writer, 1);
	writer_kill(&writer);
	assert_true(size_of(in_place(place, "from/a.sqlite3-journal")) > 0);
	untouched_by_a_snapshot(place, 300);
	sqlite3 *db = copy_open(place, "a.sqlite3");
	assert_int_equal(ask_integer(db, "SELECT count(*) FROM t WHERE a = 1"), 300);
	(void)sqlite3_close(db);
}

static void X27_hot_journal_of_several_databases_is_refused(void **state)
{
	struct place *place = *state;
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), cut_off_in_a_transaction);
	writer_await(&writer, 1);
	writer_kill(&writer);
	static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	FILE *journal = fopen(in_place(place, "from/a.sqlite3-journal"), "ae");
	assert_int_equal(fwrite(magic, 1, sizeof magic, journal), sizeof magic);
	(void)fclose(journal);
	refused(place, "a.sqlite3", -EINVAL, "several databases");
}

/* --- locked --------------------------------------------------------------------------------------------------------------- */

static void hold(const char *path, volatile int64_t *shared, const char *text)
{
	sqlite3 *db = database_open(path);
	sql(db, text);
	*shared = 1;
	(void)pause();
}

static void hold_open_transaction_wal(const char *path, volatile int64_t *shared)
{
	hold(path, shared, "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1); BEGIN IMMEDIATE; INSERT INTO t VALUES(2)");
}
static void hold_open_transaction(const char *path, volatile int64_t *shared)
{
	hold(path, shared, "CREATE TABLE t(a); INSERT INTO t VALUES(1); BEGIN IMMEDIATE; INSERT INTO t VALUES(2)");
}
static void hold_exclusive(const char *path, volatile int64_t *shared)
{
	hold(path, shared, "CREATE TABLE t(a); BEGIN EXCLUSIVE; INSERT INTO t VALUES(2)");
}
static void hold_exclusive_wal_without_shm(const char *path, volatile int64_t *shared)
{
	hold(path, shared, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1)");
}

static void last_commit_beside_an_open_transaction(struct place *place, void (*body)(const char *, volatile int64_t *))
{
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), body);
	writer_await(&writer, 1);
	struct deadline quick = deadline_in_ms(QUICK_MS);
	untouched_by_a_snapshot(place, 1);
	assert_false(deadline_passed(quick));
	writer_kill(&writer);
}

static void X27_open_transaction_wal(void **state)
{
	last_commit_beside_an_open_transaction(*state, hold_open_transaction_wal);
}

static void X27_open_transaction_rollback(void **state)
{
	last_commit_beside_an_open_transaction(*state, hold_open_transaction);
}

static void busy_for_five_seconds(struct place *place, void (*body)(const char *, volatile int64_t *))
{
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), body);
	writer_await(&writer, 1);
	uint64_t before = directory_trace(in_place(place, "from"));
	int64_t began = monotonic_ns();
	refused(place, "a.sqlite3", -EBUSY, "another process holds the database locked");
	int64_t took_ms = (monotonic_ns() - began) / 1000000;
	assert_in_range(took_ms, SNAPSHOT_LOCKED_MS - 50, SNAPSHOT_LOCKED_MS + QUICK_MS);
	assert_true(directory_trace(in_place(place, "from")) == before);
	writer_kill(&writer);
}

static void X27_locked_exclusively(void **state)
{
	busy_for_five_seconds(*state, hold_exclusive);
}

static void X27_exclusive_mode_wal_without_shm(void **state)
{
	struct place *place = *state;
	busy_for_five_seconds(place, hold_exclusive_wal_without_shm);
	assert_false(is_there(in_place(place, "from/a.sqlite3-shm")));
}

static void the_callers_deadline_is_kept(void **state)
{
	struct place *place = *state;
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), hold_exclusive);
	writer_await(&writer, 1);
	int64_t began = monotonic_ns();
	assert_int_equal(snapshot_database(&place->from, "a.sqlite3", &place->to, "b", deadline_in_ms(200), NULL), -EBUSY);
	assert_in_range((monotonic_ns() - began) / 1000000, 150, SNAPSHOT_LOCKED_MS - 1);
	writer_kill(&writer);
	assert_int_equal(entries_in(in_place(place, "to")), 0);
}

static void locked_for_a_while(const char *path, volatile int64_t *shared)
{
	sqlite3 *db = database_open(path);
	sql(db, "CREATE TABLE t(a); BEGIN EXCLUSIVE; INSERT INTO t VALUES(2)");
	*shared = 1;
	nap_ms(700);
	sql(db, "COMMIT");
	(void)pause();
}

static void a_lock_that_ends_is_waited_for(void **state)
{
	struct place *place = *state;
	struct writer writer = writer_start(in_place(place, "from/a.sqlite3"), locked_for_a_while);
	writer_await(&writer, 1);
	take(place, "a.sqlite3");
	assert_int_equal(rows_in_copy(place, "a.sqlite3"), 1);
	writer_kill(&writer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(I08_owner_killed_directory_0555),
	    TEST(I08_as_a_plain_user),
	    TEST(I09_main_4096_bytes_row_in_wal),
	    TEST(I09_main_empty_row_in_wal),
	    TEST(I09_one_row_while_the_writer_is_connected),
	    TEST(stale_shm_of_garbage),
	    TEST(torn_end_of_wal),
	    TEST(X27_hot_journal_is_rolled_back_in_the_copy_only),
	    TEST(X27_hot_journal_of_several_databases_is_refused),
	    TEST(X27_open_transaction_wal),
	    TEST(X27_open_transaction_rollback),
	    TEST(X27_locked_exclusively),
	    TEST(X27_exclusive_mode_wal_without_shm),
	    TEST(the_callers_deadline_is_kept),
	    TEST(a_lock_that_ends_is_waited_for),
	};
	cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
