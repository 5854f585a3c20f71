/* Links, racers and writers in the way of staging. */
#include "tests/unit/stores_fixture.h"

/* --- what stands in the way --------------------------------------------------------------------------------------------------- */

static void I01_links_in_the_os_home(void **state)
{
	struct scene *scene = scene_of(state);
	static const char *const levels[] = {"to/a/os-home", "to/a/os-home/.local", "to/a/os-home/.local/share", STAGED,
					     STAGED "/token.json"};
	put(scene, "token.json", "x");
	assert_int_equal(mkdir(in_place(scene->place, "victim"), 0755), 0);
	uint64_t before = directory_trace(in_place(scene->place, "victim"));
	for (size_t i = 0; i < 10; i++) {
		const char *level = levels[i / 2];
		char parent[300], command[700];
		(void)snprintf(parent, sizeof parent, "%s", level);
		*strrchr(parent, '/') = '\0';
		(void)snprintf(command, sizeof command, "rm -rf '%s'; mkdir -p '%s'", in_place(scene->place, level),
			       in_place(scene->place, parent));
		assert_int_equal(system(command), 0);
		assert_int_equal(symlink(in_place(scene->place, i % 2 ? "victim" : "victim/none"), in_place(scene->place, level)), 0);
		struct err err = {0};
		assert_int_equal(stage_with(scene, true, NULL, 0, &err), -EPERM);
		assert_int_equal(err.refusal, REFUSAL_HOME);
		assert_int_equal(err_exit_status(&err), 78);
		const char *base = strrchr(level, '/') + 1;
		if (!strstr(err.subject, base))
			fail_msg("%s is not named in \"%s\"", base, err.subject);
		assert_int_equal(unlink(in_place(scene->place, level)), 0);
		assert_int_equal(home_furnish(&scene->home, NULL), 0);
	}
	assert_true(directory_trace(in_place(scene->place, "victim")) == before);
	stage(scene);
	assert_true(said(scene, "1 files staged"));
}

static void I02_a_hard_link_to_a_sentinel(void **state)
{
	struct scene *scene = scene_of(state);
	put(scene, "token.json", "from the host");
	put(scene, "other", "x");
	stage(scene);
	write_file(in_place(scene->place, "sentinel"), "sentinel", 8);
	assert_int_equal(chmod(in_place(scene->place, "sentinel"), 0644), 0);
	assert_int_equal(unlink(staged(scene, "token.json")), 0);
	assert_int_equal(link(in_place(scene->place, "sentinel"), staged(scene, "token.json")), 0);
	struct stat before, after;
	assert_int_equal(stat(in_place(scene->place, "sentinel"), &before), 0);
	stage(scene);
	assert_int_equal(stat(in_place(scene->place, "sentinel"), &after), 0);
	assert_true(holds(in_place(scene->place, "sentinel"), "sentinel"));
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_nlink, 2);
	assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof after.st_mtim);
}

static void I10_what_a_killed_boot_left_is_swept(void **state)
{
	struct scene *scene = scene_of(state);
	put(scene, "token.json", "x");
	assert_int_equal(mkdir(in_place(scene->place, "to/a/os-home/.draft-0123456789abcdef"), 0700), 0);
	write_file(in_place(scene->place, "to/a/os-home/.draft-0123456789abcdef/0"), "half", 4);
	stage(scene);
	assert_true(no_draft_left(scene));
}

static pid_t exchange_for_ever(const char *path, const char *other)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);
	}
	return pid;
}

/* os-home, .local, the store's directory, the staged file, and on the other side the source's database and directory. */
static void I03_racer_1000_rounds(void **state)
{
	struct scene *scene = scene_of(state);
	static const char *const raced[] = {"to/a/os-home",	  "to/a/os-home/.local",	STAGED,
					    STAGED "/token.json", "from/kiro-cli/data.sqlite3", "from/kiro-cli/sub"};
	static const int rounds[] = {200, 200, 200, 100, 200, 100};
	put_database(scene, "data.sqlite3");
	put(scene, "token.json", "x");
	assert_int_equal(mkdir(source(scene, "sub"), 0700), 0);
	put(scene, "sub/more", "x");
	char copy[700];
	(void)snprintf(copy, sizeof copy, "cp -a '%s' '%s'", source(scene, ""), in_place(scene->place, "victim"));
	assert_int_equal(system(copy), 0);
	uint64_t before = directory_trace(in_place(scene->place, "victim"));
	int done = 0, refused = 0;
	for (size_t i = 0; i < sizeof raced / sizeof *raced; i++) {
		char path[512], link_path[512];
		bool of_source = strncmp(raced[i], "from/", 5) == 0;
		(void)snprintf(path, sizeof path, "%s", in_place(scene->place, raced[i]));
		(void)snprintf(link_path, sizeof link_path, "%s", in_place(scene->place, "link"));
		stage(scene);
		assert_int_equal(symlink(in_place(scene->place, "victim"), link_path), 0);
		AUTO_CLOSE int kept =
		    open(in_place(scene->place, STAGED), O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* whatever its name is meanwhile */
		assert_true(kept >= 0);
		pid_t racer = exchange_for_ever(path, link_path);
		for (int round = 0; round < rounds[i]; round++) {
			struct err err = {0};
			if (i >= 2 && i != 3) /* there is something to stage again */
				(void)unlinkat(kept, "token.json", 0), (void)unlinkat(kept, "data.sqlite3", 0);
			int r = stage_with(scene, true, NULL, 0, &err);
			assert_true(r == 0 || (err.refusal == REFUSAL_HOME && !of_source));
			done++;
			refused += r < 0;
		}
		(void)kill(racer, SIGKILL);
		assert_int_equal(waitpid(racer, NULL, 0), racer);
		struct stat st;
		assert_int_equal(lstat(link_path, &st), 0);
		if (!S_ISLNK(st.st_mode))
			assert_int_equal(renameat2(AT_FDCWD, path, AT_FDCWD, link_path, RENAME_EXCHANGE), 0);
		assert_int_equal(unlink(link_path), 0);
		assert_true(directory_trace(in_place(scene->place, "victim")) == before);
	}
	assert_int_equal(done, 1000);
	assert_true(refused > 0);
	assert_true(no_draft_left(scene));
}

static void rewrite_for_ever(const char *path, volatile int64_t *shared)
{
	for (char letter = 'a';; letter = letter == 'z' ? 'a' : (char)(letter + 1)) {
		char text[200000];
		memset(text, letter, sizeof text);
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (write(fd, text, sizeof text) != (ssize_t)sizeof text)
			abort();
		(void)close(fd);
		*shared += 1;
		nap_ms(1);
	}
}

static void I04_a_file_written_to_meanwhile_is_never_mixed(void **state)
{
	struct scene *scene = scene_of(state);
	struct writer writer = writer_start(source(scene, "token.json"), rewrite_for_ever);
	writer_await(&writer, 3);
	int whole = 0;
	for (int i = 0; i < 100; i++) {
		stage(scene);
		static char text[200001];
		AUTO_CLOSE int fd = open(staged(scene, "token.json"), O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ssize_t n = read(fd, text, sizeof text);
		for (ssize_t at = 1; at < n; at++)
			assert_int_equal(text[at], text[0]);
		whole += n == 200000;
		assert_int_equal(unlink(staged(scene, "token.json")), 0);
	}
	assert_true(whole > 0);
	writer_kill(&writer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_make, scene_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(I01_links_in_the_os_home),
	    TEST(I02_a_hard_link_to_a_sentinel),
	    TEST(I03_racer_1000_rounds),
	    TEST(I04_a_file_written_to_meanwhile_is_never_mixed),
	    TEST(I10_what_a_killed_boot_left_is_swept),
	};
	cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
