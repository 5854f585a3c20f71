/* Identity stores: from a data home of ours into the OS home of a pod. */
#include "tests/unit/stores_fixture.h"

/* --- what is staged ----------------------------------------------------------------------------------------------------------- */

static void a_store_with_a_live_database(void **state)
{
	struct scene *scene = scene_of(state);
	sqlite3 *db = database_open(source(scene, "data.sqlite3"));
	sql(db, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a); INSERT INTO t VALUES(1)");
	put(scene, "token.json", "secret");
	assert_int_equal(mkdir(source(scene, "sub"), 0755), 0);
	put(scene, "sub/more", "deep");
	uint64_t before = directory_trace(source(scene, ""));
	stage(scene);
	assert_true(directory_trace(source(scene, "")) == before);
	assert_int_equal(rows_in(staged(scene, "data.sqlite3")), 1);
	assert_true(holds(staged(scene, "token.json"), "secret"));
	assert_true(holds(staged(scene, "sub/more"), "deep"));
	assert_false(is_there(staged(scene, "data.sqlite3-wal")));
	assert_false(is_there(staged(scene, "data.sqlite3-shm")));
	assert_int_equal(scene->report.count, 2); /* one line a store */
	assert_true(said(scene, "kiro-cli: 3 files staged, 0 kept"));
	assert_true(said(scene, "amazon-q: there is no "));
	assert_true(no_draft_left(scene));
	(void)sqlite3_close(db);
}

static void a_restart_changes_nothing(void **state)
{
	struct scene *scene = scene_of(state);
	put_database(scene, "data.sqlite3");
	put(scene, "token.json", "old");
	stage(scene);
	write_file(staged(scene, "token.json"), "refreshed", 9);
	sqlite3 *db = database_open(staged(scene, "data.sqlite3"));
	sql(db, "INSERT INTO t VALUES(2)");
	(void)sqlite3_close(db);
	uint64_t before = directory_trace(in_place(scene->place, STAGED));
	put(scene, "token.json", "newer");
	stage(scene);
	assert_true(directory_trace(in_place(scene->place, STAGED)) == before);
	assert_true(said(scene, "kiro-cli: 0 files staged, 2 kept"));
	put(scene, "later", "x");
	stage(scene);
	assert_true(holds(staged(scene, "later"), "x"));
	assert_true(holds(staged(scene, "token.json"), "refreshed"));
}

static void sidecars_are_never_staged(void **state)
{
	struct scene *scene = scene_of(state);
	static const char *const names[] = {"a.sqlite3-wal", "b.sqlite-shm", "c.sqlite3-journal"};
	for (size_t i = 0; i < 3; i++)
		put(scene, names[i], "x");
	put(scene, "notes-wal", "x");
	stage(scene);
	assert_int_equal(entries_in(in_place(scene->place, STAGED)), 1);
	assert_true(is_there(staged(scene, "notes-wal")));
}

static void I05_modes_under_any_umask(void **state)
{
	struct scene *scene = scene_of(state);
	static const mode_t masks[] = {0000, 0077, 0777};
	put_database(scene, "data.sqlite3");
	put(scene, "token.json", "x");
	assert_int_equal(mkdir(source(scene, "sub"), 0755), 0);
	put(scene, "sub/more", "x");
	assert_int_equal(chmod(source(scene, "token.json"), 0644), 0);
	static const char *const directories[] = {"to/a/os-home/.local", "to/a/os-home/.local/share", STAGED, STAGED "/sub"};
	static const char *const files[] = {STAGED "/data.sqlite3", STAGED "/token.json", STAGED "/sub/more"};
	for (size_t m = 0; m < 3; m++) {
		mode_t old = umask(masks[m]);
		int r = stage_with(scene, true, NULL, 0, NULL);
		(void)umask(old);
		assert_int_equal(r, 0);
		for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
			assert_int_equal(mode_of(in_place(scene->place, directories[i])), S_IFDIR | 0700);
		for (size_t i = 0; i < sizeof files / sizeof *files; i++)
			assert_int_equal(mode_of(in_place(scene->place, files[i])), S_IFREG | 0600);
		remove_all(in_place(scene->place, "to/a/os-home/.local"));
	}
}

static void identities_and_command_payloads(void **state)
{
	struct scene *scene = scene_of(state);
	put(scene, "token.json", "kiro");
	assert_int_equal(mkdir(in_place(scene->place, "tool"), 0700), 0);
	write_file(in_place(scene->place, "tool/auth.json"), "mine", 4);
	struct ini_identity identities[] = {
	    {.name = "tool", .source = (char[]){"~/tool"}, .staged = (char[]){".config/tool"}},
	    {.name = "gone", .source = (char[]){"~/gone"}, .staged = (char[]){".gone"}},
	    {.name = "up", .source = (char[]){"~/tool"}, .staged = (char[]){"../up"}},
	    {.name = "abs", .source = (char[]){"~/tool"}, .staged = (char[]){"/tmp/abs"}},
	    {.name = "own", .source = (char[]){"~/tool"}, .staged = (char[]){".aws/sso/cache/x"}},
	    {.name = "odd", .source = (char[]){"~/tool"}, .staged = (char[]){"a//b"}},
	};
	assert_int_equal(stage_with(scene, false, identities, 6, NULL), 0);
	assert_true(nothing_staged(scene)); /* a command gets only what the INI names */
	assert_true(holds(in_place(scene->place, "to/a/os-home/.config/tool/auth.json"), "mine"));
	assert_true(said(scene, "tool: 1 files staged"));
	assert_true(said(scene, "gone: there is no "));
	static const char *const refused[] = {"up: nothing is staged", "abs: nothing is staged", "own: nothing is staged",
					      "odd: nothing is staged"};
	for (size_t i = 0; i < 4; i++)
		assert_true(said(scene, refused[i]));
	assert_int_equal(scene->report.count, 6);
	assert_int_equal(entries_in(in_place(scene->place, "to/a/os-home")), 2);
	assert_int_equal(stage_with(scene, true, identities, 1, NULL), 0);
	assert_true(holds(staged(scene, "token.json"), "kiro"));
}

/* --- what is passed over ---------------------------------------------------------------------------------------------------- */

static void I06_odd_files_among_the_sources(void **state)
{
	struct scene *scene = scene_of(state);
	struct deadline quick = deadline_in_ms(QUICK_MS);
	put(scene, "good", "x");
	put(scene, "hard", "x");
	assert_int_equal(link(source(scene, "hard"), in_place(scene->place, "other-name")), 0);
	assert_int_equal(symlink("/dev/zero", source(scene, "zero")), 0);
	assert_int_equal(symlink("..", source(scene, "up")), 0);
	assert_int_equal(mkfifo(source(scene, "fifo"), 0600), 0);
	AUTO_CLOSE int sock = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", source(scene, "sock"));
	assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof address), 0);
	if (geteuid() == 0) {
		assert_int_equal(mknod(source(scene, "device"), S_IFCHR | 0600, 0x103), 0);
		put(scene, "foreign", "x");
		assert_int_equal(chown(source(scene, "foreign"), 65534, 65534), 0);
	} else {
		put(scene, "closed", "x");
		assert_int_equal(chmod(source(scene, "closed"), 0), 0);
	}
	stage(scene);
	assert_false(deadline_passed(quick));
	assert_true(said(scene, "passed over hard: it has more than one hard link"));
	assert_true(said(scene, "passed over zero: a link"));
	assert_true(said(scene, "passed over up: a link"));
	assert_true(said(scene, "passed over fifo: a FIFO"));
	assert_true(said(scene, "passed over sock: a socket"));
	assert_true(geteuid() ? said(scene, "passed over closed") : said(scene, "passed over device: a device"));
	assert_true(geteuid() || said(scene, "passed over foreign: it belongs to another user"));
	assert_true(said(scene, "kiro-cli: 1 files staged"));
	assert_int_equal(entries_in(in_place(scene->place, STAGED)), 1);
}

static void one_bad_database_voids_the_whole_store(void **state)
{
	struct scene *scene = scene_of(state);
	char noise[9000];
	memset(noise, 0x5a, sizeof noise);
	put_database(scene, "a.sqlite3");
	put(scene, "token.json", "x");
	write_file(source(scene, "z.sqlite"), noise, sizeof noise);
	stage(scene);
	assert_true(nothing_staged(scene));
	assert_true(said(scene, "kiro-cli: nothing is staged: z.sqlite: file is not a database"));
	assert_int_equal(unlink(source(scene, "z.sqlite")), 0);
	assert_int_equal(symlink("a.sqlite3", source(scene, "z.sqlite")), 0);
	stage(scene);
	assert_true(nothing_staged(scene));
	assert_true(said(scene, "kiro-cli: nothing is staged: z.sqlite: a link"));
	assert_true(no_draft_left(scene));
	assert_int_equal(unlink(source(scene, "z.sqlite")), 0);
	stage(scene);
	assert_true(said(scene, "2 files staged"));
}

static void the_pods_own_wal_is_never_joined_with_another_database(void **state)
{
	struct scene *scene = scene_of(state);
	put_database(scene, "a.sqlite3");
	put(scene, "token.json", "x");
	stage(scene);
	assert_int_equal(unlink(staged(scene, "a.sqlite3")), 0);
	write_file(staged(scene, "a.sqlite3-wal"), "left", 4);
	assert_int_equal(unlink(staged(scene, "token.json")), 0);
	stage(scene);
	assert_false(is_there(staged(scene, "a.sqlite3")));
	assert_false(is_there(staged(scene, "token.json")));
	assert_true(said(scene, "a.sqlite3-wal of another database"));
	assert_true(holds(staged(scene, "a.sqlite3-wal"), "left"));
}

/* --- limits -------------------------------------------------------------------------------------------------------------------- */

static void put_many(const struct scene *scene, size_t count)
{
	AUTO_CLOSE int dir = open(source(scene, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < count; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "f%zu", i);
		AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
	}
}

static void X31_512_and_513_files(void **state)
{
	struct scene *scene = scene_of(state);
	put_many(scene, 511);
	put_database(scene, "z.sqlite3");
	stage(scene);
	assert_true(said(scene, "kiro-cli: 512 files staged"));
	assert_int_equal(scene->report.count, 2);
	remove_all(in_place(scene->place, "to/a/os-home/.local"));
	put(scene, "one-more", "x");
	stage(scene);
	assert_string_equal(scene->report.lines[0], "kiro-cli: it holds 513 files, only 512 of them are staged");
	assert_true(said(scene, "kiro-cli: 512 files staged"));
	assert_int_equal(entries_in(in_place(scene->place, STAGED)), 512);
	assert_true(is_there(staged(scene, "z.sqlite3"))); /* databases come first */
	uint64_t before = directory_trace(in_place(scene->place, STAGED));
	stage(scene);
	assert_true(directory_trace(in_place(scene->place, STAGED)) == before);
}

static void X31_100000_files(void **state)
{
	struct scene *scene = scene_of(state);
	put_many(scene, 100000);
	stage(scene);
	assert_string_equal(scene->report.lines[0], "kiro-cli: it holds 100000 files, only 512 of them are staged");
	assert_int_equal(entries_in(in_place(scene->place, STAGED)), 512);
}

static void X31_sparse_terabyte_and_5_gib(void **state)
{
	struct scene *scene = scene_of(state);
	static const off_t sizes[] = {1ll << 40, 5ll << 30};
	static const char *const names[] = {"huge.sqlite3", "huge.bin"};
	put(scene, "token.json", "x");
	for (size_t i = 0; i < 4; i++) {
		put(scene, names[i % 2], "");
		if (truncate(source(scene, names[i % 2]), sizes[i / 2]) == 0) {
			struct deadline quick = deadline_in_ms(QUICK_MS);
			stage(scene);
			assert_false(deadline_passed(quick));
			assert_true(said(scene, "no more than 4294967296 are staged"));
			assert_true(nothing_staged(scene));
			assert_true(no_draft_left(scene));
		}
		assert_int_equal(unlink(source(scene, names[i % 2])), 0);
	}
}

static void too_deep_is_passed_over(void **state)
{
	struct scene *scene = scene_of(state);
	char path[300] = "";
	put(scene, "good", "x");
	for (int i = 0; i < 40; i++) {
		(void)strcat(path, i ? "/d" : "d");
		assert_int_equal(mkdir(source(scene, path), 0700), 0);
	}
	(void)strcat(path, "/deep");
	put(scene, path, "x");
	stage(scene);
	assert_true(said(scene, "levels deep"));
	assert_true(said(scene, "1 files staged"));
}

static void the_report_is_bounded(void **state)
{
	struct scene *scene = scene_of(state);
	for (int i = 0; i < 200; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "fifo%d", i);
		assert_int_equal(mkfifo(source(scene, name), 0600), 0);
	}
	assert_int_equal(stage_with(scene, true, NULL, 0, NULL), 0);
	assert_int_equal(scene->report.count, STORE_REPORT_LINES);
	assert_true(scene->report.left_out >= 136);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_make, scene_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_store_with_a_live_database),
	    TEST(a_restart_changes_nothing),
	    TEST(sidecars_are_never_staged),
	    TEST(I05_modes_under_any_umask),
	    TEST(identities_and_command_payloads),
	    TEST(I06_odd_files_among_the_sources),
	    TEST(one_bad_database_voids_the_whole_store),
	    TEST(the_pods_own_wal_is_never_joined_with_another_database),
	    TEST(X31_512_and_513_files),
	    TEST(X31_100000_files),
	    TEST(X31_sparse_terabyte_and_5_gib),
	    TEST(too_deep_is_passed_over),
	    TEST(the_report_is_bounded),
	};
	cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
