/* Something happens exactly before the n-th system call of a snapshot, for every n; or that call fails. */
#include "tests/unit/database_fixture.h"

#include "pod/system/snapshot.h"
#include "tests/unit/stepper.h"

/* Calls that read or write a page of the copy are left out: nothing of the source is touched between them. */
#if STEPPER_CAN_FAIL
static const long steps[] = {SYS_openat,	  SYS_openat2,	 SYS_fcntl,  SYS_fstat,	  SYS_newfstatat, SYS_statx, SYS_ioctl,
			     SYS_copy_file_range, SYS_ftruncate, SYS_fchmod, SYS_mkdirat, SYS_fstatfs,	  SYS_close, SYS_renameat2,
			     SYS_unlinkat,	  SYS_unlink,	 -1};
#else
static const long *const steps = NULL;
#endif

struct scene {
	struct place *place;
	sqlite3 *db; /* the owner's connection, in this process */
	int64_t committed;
};

static int take(void *context)
{
	struct scene *scene = context;
	return snapshot_database(&scene->place->from, "a.sqlite3", &scene->place->to, "a.sqlite3", deadline_in_ms(60000), NULL);
}

static void commit(struct scene *scene)
{
	char text[256];
	int64_t i = ++scene->committed;
	(void)snprintf(
	    text, sizeof text,
	    "BEGIN; INSERT INTO t VALUES(%" PRId64 ", randomblob(300)); UPDATE s SET n = n + 1, total = total + %" PRId64 "; COMMIT", i, i);
	sql(scene->db, text);
}

static void scene_make(struct scene *scene, struct place *place, const char *pragmas)
{
	*scene = (struct scene){.place = place, .db = database_open(in_place(place, "from/a.sqlite3"))};
	(void)sqlite3_busy_timeout(scene->db, 0);
	sql(scene->db, pragmas);
	sql(scene->db,
	    "PRAGMA synchronous=OFF; CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE TABLE s(n, total); INSERT INTO s VALUES(0, 0)");
	for (int i = 0; i < 20; i++)
		commit(scene);
}

static void judge_copy(const struct scene *scene, int64_t at_least)
{
	sqlite3 *db = database_open(in_place(scene->place, "to/a.sqlite3"));
	assert_true(is_sound(db));
	int64_t rows = ask_integer(db, "SELECT count(*) FROM t");
	assert_in_range(rows, at_least, scene->committed);
	assert_int_equal(ask_integer(db, "SELECT max(a) FROM t"), rows);
	assert_int_equal(ask_integer(db, "SELECT n FROM s"), rows);
	assert_int_equal(ask_integer(db, "SELECT total FROM s"), rows * (rows + 1) / 2);
	(void)sqlite3_close(db);
	assert_int_equal(entries_in(in_place(scene->place, "to")), 1);
	assert_int_equal(unlink(in_place(scene->place, "to/a.sqlite3")), 0);
}

/* Returns how many calls there were to stop at. */
static int at_every_call(struct scene *scene, void (*before)(void *, int))
{
	for (int n = 0;; n++) {
		int64_t at_start = scene->committed;
		struct stepped stepped = {.call = take, .before = before, .context = scene, .at = n, .eligible = steps};
		struct stepped_end end = step_run(&stepped);
		assert_int_equal(end.result, 0);
		judge_copy(scene, at_start);
		if (!end.acted)
			return n;
		if (n % 2 == 1) /* keeps the WAL short */
			(void)sqlite3_exec(scene->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
		assert_true(n < 2000);
	}
}

static void commit_and(struct scene *scene, const char *text)
{
	/* A checkpoint may find the snapshot's locks in its way and say so; a commit never does. */
	commit(scene);
	(void)sqlite3_exec(scene->db, text, NULL, NULL, NULL);
	commit(scene);
	commit(scene);
}

static void checkpoint_truncate(void *context, int n)
{
	(void)n;
	commit_and(context, "PRAGMA wal_checkpoint(TRUNCATE)");
}
static void checkpoint_restart(void *context, int n)
{
	(void)n;
	commit_and(context, "PRAGMA wal_checkpoint(RESTART)");
}
static void checkpoint_passive(void *context, int n)
{
	(void)n;
	commit_and(context, "PRAGMA wal_checkpoint(PASSIVE)");
}

static void X29_checkpoint_before_every_call(void **state)
{
	struct scene scene;
	scene_make(&scene, *state, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0");
	assert_true(at_every_call(&scene, checkpoint_truncate) > 50);
	assert_true(at_every_call(&scene, checkpoint_restart) > 50);
	assert_true(at_every_call(&scene, checkpoint_passive) > 50);
	(void)sqlite3_close(scene.db);
}

/* The trap of a reader that holds no mark in the WAL: all of it is in the database, so the next commit begins it anew. */
static void all_backfilled_then_commit(void *context, int n)
{
	(void)n;
	struct scene *scene = context;
	commit(scene);
	commit(scene);
}

static void X29_wal_begun_anew_before_every_call(void **state)
{
	struct scene scene;
	scene_make(&scene, *state, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0");
	for (int n = 0;; n++) {
		for (int i = 0; i < 5; i++)
			commit(&scene);
		sql(scene.db, "PRAGMA wal_checkpoint(PASSIVE)");
		int64_t at_start = scene.committed;
		struct stepped stepped = {
		    .call = take, .before = all_backfilled_then_commit, .context = &scene, .at = n, .eligible = steps};
		struct stepped_end end = step_run(&stepped);
		assert_int_equal(end.result, 0);
		judge_copy(&scene, at_start);
		if (!end.acted)
			break;
	}
	(void)sqlite3_close(scene.db);
}

/* The same with a WAL that takes several reads: what was read of the old one may not be joined with the new one. */
static void rewrite_all(struct scene *scene)
{
	char text[256];
	int64_t i = ++scene->committed;
	(void)snprintf(text, sizeof text,
		       "UPDATE t SET b = randomblob(3000); INSERT INTO t VALUES(%" PRId64
		       ", 1); UPDATE s SET n = n + 1, total = total + %" PRId64,
		       i, i);
	sql(scene->db, "BEGIN");
	sql(scene->db, text);
	sql(scene->db, "COMMIT");
}

static void rewrite_all_of_it(void *context, int n)
{
	(void)n;
	rewrite_all(context);
	rewrite_all(context);
}

static void X29_long_wal_begun_anew_while_it_is_read(void **state)
{
	static const long copies[] = {SYS_copy_file_range, -1};
	struct scene scene;
	scene_make(&scene, *state, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0");
	while (scene.committed < 1700)
		commit(&scene);
	for (int n = 0;; n++) {
		rewrite_all_of_it(&scene, 0);
		sql(scene.db, "PRAGMA wal_checkpoint(PASSIVE)");
		int64_t at_start = scene.committed;
		assert_true(size_of(in_place(scene.place, "from/a.sqlite3-wal")) > (9 << 20));
		struct stepped stepped = {.call = take, .before = rewrite_all_of_it, .context = &scene, .at = n, .eligible = copies};
		struct stepped_end end = step_run(&stepped);
		assert_int_equal(end.result, 0);
		judge_copy(&scene, at_start);
		sql(scene.db, "PRAGMA wal_checkpoint(TRUNCATE)");
		if (!end.acted) {
			assert_true(n >= 3);
			break;
		}
	}
	(void)sqlite3_close(scene.db);
}

/* The owner leaves (the last one to close takes WAL and -shm away) and comes back. */
static void leave_and_return(void *context, int n)
{
	struct scene *scene = context;
	(void)n;
	commit(scene);
	(void)sqlite3_close(scene->db);
	scene->db = database_open(in_place(scene->place, "from/a.sqlite3"));
	commit(scene);
}

static void owner_leaves_and_returns_before_every_call(void **state)
{
	struct scene scene;
	scene_make(&scene, *state, "PRAGMA journal_mode=WAL");
	assert_true(at_every_call(&scene, leave_and_return) > 50);
	(void)sqlite3_close(scene.db);
}

/* Nobody is connected at first: the WAL is left alone or not there, and somebody comes. */
static void somebody_comes(void *context, int n)
{
	struct scene *scene = context;
	(void)n;
	scene->db = database_open(in_place(scene->place, "from/a.sqlite3"));
	commit(scene);
	commit_and(scene, "PRAGMA wal_checkpoint(PASSIVE)");
}

static void somebody_comes_before_every_call(void **state)
{
	struct place *place = *state;
	struct scene scene;
	scene_make(&scene, place, "PRAGMA journal_mode=WAL");
	for (int n = 0;; n++) {
		(void)sqlite3_close(scene.db);
		scene.db = NULL;
		assert_false(is_there(in_place(place, "from/a.sqlite3-wal")));
		int64_t at_start = scene.committed;
		struct stepped stepped = {.call = take, .before = somebody_comes, .context = &scene, .at = n, .eligible = steps};
		struct stepped_end end = step_run(&stepped);
		assert_int_equal(end.result, 0);
		judge_copy(&scene, at_start);
		if (!end.acted)
			break;
	}
}

static void commit_rollback(void *context, int n)
{
	struct scene *scene = context;
	(void)n;
	/* A commit waits for its readers; with none to wait it fails as a whole, and that is not the snapshot's to decide. */
	if (sqlite3_exec(scene->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return;
	char text[256];
	int64_t i = scene->committed + 1;
	(void)snprintf(text, sizeof text,
		       "INSERT INTO t VALUES(%" PRId64 ", randomblob(300)); UPDATE s SET n = n + 1, total = total + %" PRId64, i, i);
	sql(scene->db, text);
	if (sqlite3_exec(scene->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
		scene->committed++;
	else
		sql(scene->db, "ROLLBACK");
}

static void commit_with_rollback_journal_before_every_call(void **state)
{
	static const char *const modes[] = {"PRAGMA journal_mode=DELETE", "PRAGMA journal_mode=TRUNCATE", "PRAGMA journal_mode=PERSIST"};
	for (size_t i = 0; i < 3; i++) {
		struct scene scene;
		scene_make(&scene, *state, modes[i]);
		assert_true(at_every_call(&scene, commit_rollback) > 40);
		(void)sqlite3_close(scene.db);
		assert_int_equal(unlink(in_place(*state, "from/a.sqlite3")), 0);
		(void)unlink(in_place(*state, "from/a.sqlite3-journal"));
	}
}

/* --- swaps ----------------------------------------------------------------------------------------------------------------- */

static void swap_database(void *context, int n)
{
	struct scene *scene = context;
	(void)n;
	assert_int_equal(renameat2(scene->place->from.fd, "a.sqlite3", scene->place->from.fd, "other", RENAME_EXCHANGE), 0);
}

static void X28_database_swapped_before_every_call(void **state)
{
	struct place *place = *state;
	static const char *const names[] = {"from/a.sqlite3", "from/other"};
	for (int i = 0; i < 2; i++) {
		char text[256];
		sqlite3 *db = database_open(in_place(place, names[i]));
		(void)snprintf(
		    text, sizeof text,
		    "CREATE TABLE t(a); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<300) INSERT INTO t SELECT "
		    "hex(zeroblob(200)) || '%d' FROM c",
		    i);
		sql(db, text);
		(void)sqlite3_close(db);
	}
	struct scene scene = {.place = place};
	int ways[3] = {0, 0, 0};
	for (int n = 0;; n++) {
		struct stepped stepped = {.call = take, .before = swap_database, .context = &scene, .at = n, .eligible = steps};
		struct stepped_end end = step_run(&stepped);
		assert_int_equal(end.result, 0); /* it is tried again, and then it stands still */
		sqlite3 *db = database_open(in_place(place, "to/a.sqlite3"));
		assert_true(is_sound(db));
		assert_int_equal(ask_integer(db, "SELECT count(DISTINCT a) FROM t"), 1);
		assert_int_equal(ask_integer(db, "SELECT count(*) FROM t"), 300);
		ways[ask_integer(db, "SELECT CAST(substr(a, -1) AS INTEGER) FROM t")]++;
		(void)sqlite3_close(db);
		assert_int_equal(unlink(in_place(place, "to/a.sqlite3")), 0);
		if (!end.acted)
			break;
	}
	assert_true(ways[0] > 0 && ways[1] > 0);
}

static void replace_by_fifo(void *context, int n)
{
	struct scene *scene = context;
	(void)n;
	(void)renameat(scene->place->from.fd, "a.sqlite3", scene->place->from.fd, "away");
	(void)mkfifoat(scene->place->from.fd, "a.sqlite3", 0600);
}
static void replace_by_link(void *context, int n)
{
	struct scene *scene = context;
	(void)n;
	(void)renameat(scene->place->from.fd, "a.sqlite3", scene->place->from.fd, "away");
	(void)!symlinkat("/dev/zero", scene->place->from.fd, "a.sqlite3"); /* once is enough */
}
static void remove_it(void *context, int n)
{
	struct scene *scene = context;
	(void)n;
	(void)renameat(scene->place->from.fd, "a.sqlite3", scene->place->from.fd, "away");
}

static void I04_replaced_before_every_call(void **state)
{
	struct place *place = *state;
	void (*const ways[])(void *, int) = {replace_by_fifo, replace_by_link, remove_it};
	struct scene scene;
	scene_make(&scene, place, "PRAGMA journal_mode=DELETE");
	(void)sqlite3_close(scene.db);
	for (size_t way = 0; way < 3; way++) {
		int refusals = 0;
		for (int n = 0;; n++) {
			struct deadline quick = deadline_in_ms(QUICK_MS);
			struct stepped stepped = {.call = take, .before = ways[way], .context = &scene, .at = n, .eligible = steps};
			struct stepped_end end = step_run(&stepped);
			assert_false(deadline_passed(quick));
			if (end.result == 0)
				judge_copy(&scene, scene.committed);
			else
				refusals++;
			assert_int_not_equal(end.result, -ECHILD);
			assert_int_equal(entries_in(in_place(place, "to")), 0);
			if (!end.acted)
				break;
			assert_int_equal(unlink(in_place(place, "from/a.sqlite3")) == 0 || errno == ENOENT, 1);
			assert_int_equal(rename(in_place(place, "from/away"), in_place(place, "from/a.sqlite3")), 0);
		}
		assert_true(refusals > 2);
	}
}

/* --- failures --------------------------------------------------------------------------------------------------------------- */

#if STEPPER_CAN_FAIL
static const long writing[] = {
    SYS_write, SYS_pwrite64, SYS_copy_file_range, SYS_ftruncate, SYS_mkdirat, SYS_renameat2, SYS_linkat, SYS_fchmod, -1};
static const long reading[] = {SYS_pread64, SYS_copy_file_range, SYS_fstat, SYS_newfstatat, SYS_fcntl, SYS_openat, SYS_statfs, -1};
static const long syncing[] = {SYS_fsync, SYS_fdatasync, -1};

static void fails_at_every_call(struct scene *scene, const long *eligible, int code, bool from_then_on)
{
	for (int n = 0;; n++) {
		uint64_t before = directory_trace(in_place(scene->place, "from"));
		struct stepped stepped = {
		    .call = take, .context = scene, .at = n, .fail_with = code, .fail_on = from_then_on, .eligible = eligible};
		struct stepped_end end = step_run(&stepped);
		assert_int_not_equal(end.result, -ECHILD);
		if (end.result == 0)
			judge_copy(scene, scene->committed);
		assert_int_equal(entries_in(in_place(scene->place, "to")), 0);
		assert_true(directory_trace(in_place(scene->place, "from")) == before);
		if (!end.acted) {
			assert_int_equal(end.result, 0);
			return;
		}
	}
}
#endif

static void X32_each_call_fails(void **state)
{
#if STEPPER_CAN_FAIL
	struct scene scene;
	scene_make(&scene, *state, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0");
	fails_at_every_call(&scene, writing, ENOSPC, false);
	fails_at_every_call(&scene, writing, EDQUOT, true);
	fails_at_every_call(&scene, reading, EIO, false);
	fails_at_every_call(&scene, syncing, EIO, true);
	(void)sqlite3_close(scene.db);
#else
	(void)state;
	print_message("failures are injected on x86-64 only\n");
	const char *must = getenv("MUST_WORK");
	assert_false(must && strcmp(must, "1") == 0);
	skip();
#endif
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(X29_checkpoint_before_every_call),
	    TEST(X29_wal_begun_anew_before_every_call),
	    TEST(X29_long_wal_begun_anew_while_it_is_read),
	    TEST(owner_leaves_and_returns_before_every_call),
	    TEST(somebody_comes_before_every_call),
	    TEST(commit_with_rollback_journal_before_every_call),
	    TEST(X28_database_swapped_before_every_call),
	    TEST(I04_replaced_before_every_call),
	    TEST(X32_each_call_fails),
	};
	cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
