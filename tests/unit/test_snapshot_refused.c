/* What is no database, and what is no file. */
#include "tests/unit/snapshot_fixture.h"

/* --- what is no database, and what is no file ------------------------------------------------------------------------------ */

static void corrupt_page(void **state)
{
	struct place *place = *state;
	make_database(in_place(place, "from/a.sqlite3"),
		      "CREATE TABLE t(a); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<2000) INSERT INTO t SELECT "
		      "hex(randomblob(100)) FROM c");
	char noise[300];
	memset(noise, 0xee, sizeof noise);
	AUTO_CLOSE int fd = open(in_place(place, "from/a.sqlite3"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, noise, sizeof noise, 3 * 4096), sizeof noise);
	refused(place, "a.sqlite3", -EBADMSG, "");
}

static void garbage_and_cut_files(void **state)
{
	struct place *place = *state;
	char noise[20000];
	unsigned seed = 7;
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (char)rand_r(&seed);
	write_file(in_place(place, "from/noise.sqlite3"), noise, sizeof noise);
	refused(place, "noise.sqlite3", -EBADMSG, "not a database");
	make_database(in_place(place, "from/cut.sqlite3"), "CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(50000))");
	assert_int_equal(truncate(in_place(place, "from/cut.sqlite3"), 9000), 0);
	refused(place, "cut.sqlite3", -EBADMSG, "");
	write_file(in_place(place, "from/short.sqlite3"), "SQLite format 3", 16);
	refused(place, "short.sqlite3", -EBADMSG, "");
}

static void empty_file_is_an_empty_database(void **state)
{
	struct place *place = *state;
	write_file(in_place(place, "from/a.sqlite3"), "", 0);
	take(place, "a.sqlite3");
	(void)sqlite3_close(copy_open(place, "a.sqlite3"));
}

static void foreign_wal(void **state)
{
	struct place *place = *state;
	make_database(in_place(place, "from/b.sqlite3"),
		      "PRAGMA page_size=1024; VACUUM; CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(9000))");
	leave_wal(place, write_many_rows, 500);
	assert_int_equal(rename(in_place(place, "from/a.sqlite3-wal"), in_place(place, "from/b.sqlite3-wal")), 0);
	uint64_t before = directory_trace(in_place(place, "from"));
	struct err err = {0};
	/* A WAL does not say whose it is: SQLite would believe it too. What is not sound afterwards is not published. */
	int r = snapshot(place, "b.sqlite3", &err);
	if (r == 0)
		(void)sqlite3_close(copy_open(place, "b.sqlite3"));
	else
		assert_int_equal(r, -EBADMSG);
	assert_true(directory_trace(in_place(place, "from")) == before);
}

static void I06_sources_that_are_no_files(void **state)
{
	struct place *place = *state;
	struct deadline quick = deadline_in_ms(QUICK_MS);
	make_database(in_place(place, "from/real.sqlite3"), "CREATE TABLE t(a)");
	assert_int_equal(symlink("real.sqlite3", in_place(place, "from/link.sqlite3")), 0);
	refused(place, "link.sqlite3", -ELOOP, "link");
	assert_int_equal(symlink("/dev/zero", in_place(place, "from/zero.sqlite3")), 0);
	refused(place, "zero.sqlite3", -ELOOP, "link");
	assert_int_equal(mkfifo(in_place(place, "from/fifo.sqlite3"), 0600), 0);
	refused(place, "fifo.sqlite3", -EINVAL, "not a regular file");
	assert_int_equal(mkdir(in_place(place, "from/dir.sqlite3"), 0700), 0);
	refused(place, "dir.sqlite3", -EINVAL, "not a regular file");
	AUTO_CLOSE int sock = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", in_place(place, "from/sock.sqlite3"));
	assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof address), 0);
	refused(place, "sock.sqlite3", -EINVAL, "not a regular file");
	assert_int_equal(link(in_place(place, "from/real.sqlite3"), in_place(place, "from/hard.sqlite3")), 0);
	refused(place, "hard.sqlite3", -EMLINK, "hard link");
	refused(place, "none.sqlite3", -ENOENT, "no such file");
	if (geteuid() == 0) {
		assert_int_equal(mknod(in_place(place, "from/null.sqlite3"), S_IFCHR | 0600, 0x103), 0);
		refused(place, "null.sqlite3", -EINVAL, "not a regular file");
	}
	assert_false(deadline_passed(quick));
}

static void I06_sidecars_that_are_no_files(void **state)
{
	struct place *place = *state;
	static const char *const sidecars[] = {"from/a.sqlite3-wal", "from/a.sqlite3-shm", "from/a.sqlite3-journal"};
	struct deadline quick = deadline_in_ms(QUICK_MS);
	make_database(in_place(place, "from/a.sqlite3"), "CREATE TABLE t(a)");
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(mkfifo(in_place(place, sidecars[i]), 0600), 0);
		refused(place, "a.sqlite3", -EINVAL, "not a regular file");
		assert_int_equal(unlink(in_place(place, sidecars[i])), 0);
		assert_int_equal(symlink("/dev/zero", in_place(place, sidecars[i])), 0);
		refused(place, "a.sqlite3", -ELOOP, "link");
		assert_int_equal(unlink(in_place(place, sidecars[i])), 0);
	}
	assert_false(deadline_passed(quick));
	take(place, "a.sqlite3");
}

static void unreadable_source(void **state)
{
	struct place *place = *state;
	make_database(in_place(place, "from/a.sqlite3"), "CREATE TABLE t(a)");
	assert_int_equal(chmod(in_place(place, "from/a.sqlite3"), 0), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(in_place(place, "from/a.sqlite3"), 65534, 65534), 0);
		refused(place, "a.sqlite3", -EPERM, "another user");
		return;
	}
	refused(place, "a.sqlite3", -EACCES, "");
}

static void create_only(void **state)
{
	struct place *place = *state;
	make_database(in_place(place, "from/a.sqlite3"), "CREATE TABLE t(a)");
	write_file(in_place(place, "to/a.sqlite3"), "mine", 4);
	refused(place, "a.sqlite3", -EEXIST, "");
	assert_int_equal(size_of(in_place(place, "to/a.sqlite3")), 4);
	assert_int_equal(unlink(in_place(place, "to/a.sqlite3")), 0);
	assert_int_equal(symlink("/nowhere/at/all", in_place(place, "to/a.sqlite3")), 0);
	refused(place, "a.sqlite3", -EEXIST, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(corrupt_page),
	    TEST(garbage_and_cut_files),
	    TEST(empty_file_is_an_empty_database),
	    TEST(foreign_wal),
	    TEST(I06_sources_that_are_no_files),
	    TEST(I06_sidecars_that_are_no_files),
	    TEST(unreadable_source),
	    TEST(create_only),
	};
	cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
