/* Homes below a pinned root. */
#include "tests/unit/database_fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include "pod/model/name.h"
#include "pod/model/refusal.h"
#include "pod/system/home_look.h"
#include "pod/system/homes.h"

#define ID "0123abcd-0000-4000-8000-0123456789ab"
#define OTHER_ID "ffffffff-0000-4000-8000-0123456789ab"

static struct pod_name named(const char *text)
{
	struct pod_name name;
	assert_int_equal(pod_name_parse(text, strlen(text), &name, NULL), 0);
	return name;
}

static const char *const levels[] = {"to/a",
				     "to/a/kiro",
				     "to/a/kiro/settings",
				     "to/a/workspace",
				     "to/a/run",
				     "to/a/os-home",
				     "to/a/os-home/.aws",
				     "to/a/os-home/.aws/sso",
				     "to/a/os-home/.aws/sso/cache"};
#define LEVELS (sizeof levels / sizeof *levels)

static int build(const struct place *place, struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	struct pod_name name = named("a");
	int r = home_make(&place->to, &name, ID, &home, err);
	return r < 0 ? r : home_furnish(&home, err);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static void I05_every_level_is_0700_under_any_umask(void **state)
{
	struct place *place = *state;
	static const mode_t masks[] = {0000, 0077, 0777};
	for (size_t m = 0; m < 3; m++) {
		mode_t old = umask(masks[m]);
		struct err err = {0};
		int r = build(place, &err);
		(void)umask(old);
		assert_int_equal(r, 0);
		for (size_t i = 0; i < LEVELS; i++)
			assert_int_equal(mode_of(in_place(place, levels[i])), S_IFDIR | 0700);
		assert_int_equal(mode_of(in_place(place, "to/a/" HOME_MARKER)), S_IFREG | 0600);
		remove_all(in_place(place, "to/a"));
	}
}

static void wide_modes_are_narrowed_and_content_is_kept(void **state)
{
	struct place *place = *state;
	assert_int_equal(build(place, NULL), 0);
	write_file(in_place(place, "to/a/os-home/.aws/sso/cache/token"), "mine", 4);
	for (size_t i = 0; i < LEVELS; i++)
		assert_int_equal(chmod(in_place(place, levels[i]), 0777), 0);
	assert_int_equal(build(place, NULL), 0);
	for (size_t i = 0; i < LEVELS; i++)
		assert_int_equal(mode_of(in_place(place, levels[i])), S_IFDIR | 0700);
	assert_int_equal(size_of(in_place(place, "to/a/os-home/.aws/sso/cache/token")), 4);
}

static void assert_refused_with(const struct place *place, const char *component)
{
	struct err err = {0};
	assert_int_equal(build(place, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_HOME);
	assert_int_equal(err_exit_status(&err), 78);
	assert_string_equal(err.subject, component);
}

static void I01_links_in_place_of_each_level(void **state)
{
	struct place *place = *state;
	assert_int_equal(mkdir(in_place(place, "victim"), 0755), 0);
	uint64_t before = directory_trace(in_place(place, "victim"));
	char dangling[300];
	(void)snprintf(dangling, sizeof dangling, "%s/victim/none", place->path);
	const char *const targets[] = {in_place(place, "victim"), dangling};
	for (size_t t = 0; t < 2; t++) {
		for (size_t i = 0; i < LEVELS; i++) {
			char parent[300];
			(void)snprintf(parent, sizeof parent, "%s", levels[i]);
			*strrchr(parent, '/') = '\0';
			char command[700];
			(void)snprintf(command, sizeof command, "mkdir -p '%s'", in_place(place, parent));
			assert_int_equal(system(command), 0);
			assert_int_equal(symlink(targets[t], in_place(place, levels[i])), 0);
			assert_refused_with(place, i == 0 ? "a" : levels[i] + strlen("to/a/"));
			remove_all(in_place(place, "to/a"));
			assert_int_equal(entries_in(in_place(place, "to")), 0);
		}
	}
	assert_true(directory_trace(in_place(place, "victim")) == before);
}

static void files_in_place_of_each_level(void **state)
{
	struct place *place = *state;
	for (size_t i = 1; i < LEVELS; i++) {
		assert_int_equal(build(place, NULL), 0);
		remove_all(in_place(place, levels[i]));
		if (i % 2)
			write_file(in_place(place, levels[i]), "x", 1);
		else
			assert_int_equal(mkfifo(in_place(place, levels[i]), 0600), 0);
		assert_refused_with(place, levels[i] + strlen("to/a/"));
		remove_all(in_place(place, "to/a"));
	}
}

static void the_marker_tells_whose_home_it_is(void **state)
{
	struct place *place = *state;
	AUTO_PIN struct pin home = PIN_NONE;
	struct pod_name name = named("a");
	char id[37];
	assert_int_equal(home_make(&place->to, &name, ID, &home, NULL), 0);
	assert_int_equal(home_marker_read(&home, id, NULL), 0);
	assert_string_equal(id, ID);
	pin_close(&home);
	assert_int_equal(home_make(&place->to, &name, OTHER_ID, &home, NULL), 0);
	assert_int_equal(home_marker_read(&home, id, NULL), 0);
	assert_string_equal(id, OTHER_ID);
	write_file(in_place(place, "to/a/" HOME_MARKER), "/etc/passwd\n", 12);
	assert_int_equal(home_marker_read(&home, id, NULL), -EINVAL);
	assert_int_equal(unlink(in_place(place, "to/a/" HOME_MARKER)), 0);
	assert_int_equal(home_marker_read(&home, id, NULL), -ENOENT);
}

static void X08_odd_markers_never_hang_and_are_never_followed(void **state)
{
	struct place *place = *state;
	struct deadline quick = deadline_in_ms(QUICK_MS);
	struct pod_name name = named("a");
	AUTO_PIN struct pin home = PIN_NONE;
	char id[37];
	write_file(in_place(place, "victim"), "sentinel", 8);
	assert_int_equal(mkdir(in_place(place, "to/a"), 0700), 0);
	assert_int_equal(mkfifo(in_place(place, "to/a/" HOME_MARKER), 0600), 0);
	assert_int_equal(home_make(&place->to, &name, ID, &home, NULL), 0);
	assert_int_equal(home_marker_read(&home, id, NULL), 0);
	assert_int_equal(unlink(in_place(place, "to/a/" HOME_MARKER)), 0);
	assert_int_equal(symlink("../../victim", in_place(place, "to/a/" HOME_MARKER)), 0);
	assert_int_equal(home_marker_read(&home, id, NULL), -ELOOP);
	pin_close(&home);
	assert_int_equal(home_make(&place->to, &name, ID, &home, NULL), 0);
	assert_int_equal(size_of(in_place(place, "victim")), 8);
	assert_int_equal(unlink(in_place(place, "to/a/" HOME_MARKER)), 0);
	assert_int_equal(mkdir(in_place(place, "to/a/" HOME_MARKER), 0700), 0);
	pin_close(&home);
	struct err err = {0};
	assert_int_equal(home_make(&place->to, &name, ID, &home, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_HOME);
	assert_string_equal(err.subject, HOME_MARKER);
	assert_false(deadline_passed(quick));
}

static void home_open_says_what_is_there(void **state)
{
	struct place *place = *state;
	struct pod_name name = named("a");
	AUTO_PIN struct pin home = PIN_NONE;
	struct err err = {0};
	assert_int_equal(home_open(&place->to, &name, &home, &err), -ENOENT);
	assert_int_equal(mkdir(in_place(place, "to/a"), 0700), 0);
	assert_int_equal(home_open(&place->to, &name, &home, &err), 0);
	struct stat st;
	assert_int_equal(stat(in_place(place, "to/a"), &st), 0);
	assert_true(home.ino == st.st_ino && home.dev == st.st_dev);
	assert_int_equal(rmdir(in_place(place, "to/a")), 0);
	assert_int_equal(symlink("/", in_place(place, "to/a")), 0);
	assert_int_equal(home_open(&place->to, &name, &home, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_HOME);
	if (geteuid() == 0) {
		assert_int_equal(unlink(in_place(place, "to/a")), 0);
		assert_int_equal(mkdir(in_place(place, "to/a"), 0700), 0);
		assert_int_equal(chown(in_place(place, "to/a"), 65534, 65534), 0);
		assert_int_equal(home_open(&place->to, &name, &home, &err), -EPERM);
		assert_int_equal(home_make(&place->to, &name, ID, &home, &err), -EPERM);
		assert_int_equal(err.refusal, REFUSAL_HOME);
	}
}

static void a_retired_home_keeps_its_inode(void **state)
{
	struct place *place = *state;
	struct pod_name name = named("a");
	bool moved = true;
	struct stat before, after;
	assert_int_equal(home_retire(&place->to, name.text, &name, &moved, NULL), 0);
	assert_false(moved);
	assert_int_equal(build(place, NULL), 0);
	assert_int_equal(stat(in_place(place, "to/a"), &before), 0);
	assert_int_equal(home_retire(&place->to, name.text, &name, &moved, NULL), 0);
	assert_true(moved);
	assert_false(is_there(in_place(place, "to/a")));
	assert_int_equal(stat(in_place(place, "to/.a@retired"), &after), 0);
	assert_true(before.st_ino == after.st_ino);
	assert_int_equal(build(place, NULL), 0);
	moved = true;
	struct err err = {0};
	assert_int_equal(home_retire(&place->to, name.text, &name, &moved, &err), -EEXIST);
	assert_true(is_there(in_place(place, "to/a/os-home")));
}

static void X04_a_home_is_found_by_identity_under_any_name(void **state)
{
	struct place *place = *state;
	AUTO_PIN struct pin home = PIN_NONE;
	struct pod_name name = named("a");
	char identity[64];
	AUTO_FREE char *entry = NULL;
	char *none = identity;
	assert_int_equal(home_make(&place->to, &name, "00000000-0000-4000-8000-000000000000", &home, NULL), 0);
	assert_int_equal(directory_identity(&home, identity, NULL), 0);
	assert_int_equal(renameat(place->to.fd, "a", place->to.fd, ".-moved\n"), 0);
	assert_int_equal(mkdirat(place->to.fd, "a", 0700), 0);
	assert_int_equal(home_find(&place->to, identity, &entry, NULL), 0);
	assert_string_equal(entry, ".-moved\n");
	assert_int_equal(home_find(&place->to, "1:-", &none, NULL), 0);
	assert_null(none);
}

/* Exchanges a level with a link to the victim, at full speed. */
static pid_t racer_start(const struct place *place, const char *level)
{
	char path[512], link_path[512];
	(void)snprintf(path, sizeof path, "%s/%s", place->path, level);
	(void)snprintf(link_path, sizeof link_path, "%s/link", place->path);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)renameat2(AT_FDCWD, path, AT_FDCWD, link_path, RENAME_EXCHANGE);
	}
	return pid;
}

static void I03_racer_against_each_level(void **state)
{
	struct place *place = *state;
	static const char *const raced[] = {"to/a/os-home", "to/a/os-home/.aws", "to/a/kiro", "to/a/os-home/.aws/sso/cache"};
	assert_int_equal(mkdir(in_place(place, "victim"), 0755), 0);
	write_file(in_place(place, "victim/sentinel"), "x", 1);
	assert_int_equal(symlink(in_place(place, "victim"), in_place(place, "link")), 0);
	uint64_t before = directory_trace(in_place(place, "victim"));
	int built = 0, refused = 0;
	for (size_t i = 0; i < sizeof raced / sizeof *raced; i++) {
		assert_int_equal(build(place, NULL), 0);
		pid_t racer = racer_start(place, raced[i]);
		for (int round = 0; round < 250; round++) {
			struct err err = {0};
			int r = build(place, &err);
			assert_true(r == 0 || err.refusal == REFUSAL_HOME);
			built += r == 0;
			refused += r < 0;
		}
		(void)kill(racer, SIGKILL);
		assert_int_equal(waitpid(racer, NULL, 0), racer);
		struct stat st;
		assert_int_equal(lstat(in_place(place, "link"), &st), 0);
		if (!S_ISLNK(st.st_mode))
			assert_int_equal(renameat2(AT_FDCWD, in_place(place, raced[i]), AT_FDCWD, in_place(place, "link"), RENAME_EXCHANGE),
					 0);
	}
	assert_int_equal(built + refused, 1000);
	assert_true(refused > 0); /* the racer did run */
	assert_true(directory_trace(in_place(place, "victim")) == before);
}

/* As on a full disk: the directory can be made, and nothing written into it. */
static void a_home_that_cannot_be_marked_is_taken_back(void **state)
{
	struct place *place = *state;
	struct rlimit before, none;
	struct stat st;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	struct err err = {0};
	int fresh = build(place, &err), made = mkdir(in_place(place, "to/a"), 0700), there = build(place, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, old);
	assert_int_equal(fresh, -EPERM);
	assert_int_equal(err.refusal, REFUSAL_HOME);
	assert_int_equal(made, 0); /* nothing was left in its place */
	assert_int_equal(there, -EPERM);
	assert_int_equal(stat(in_place(place, "to/a"), &st), 0); /* that one was somebody's */
}

struct claimant {
	struct place *place;
	int answer;
	bool nameless, marked;
};

static int claimed(void *context, const struct pin *home, struct err *err)
{
	struct claimant *claimant = context;
	char id[37];
	struct stat st;
	claimant->nameless = lstat(in_place(claimant->place, "to/a"), &st) < 0 && errno == ENOENT;
	claimant->marked = home_marker_read(home, id, NULL) == 0 && strcmp(id, ID) == 0;
	return claimant->answer < 0 ? err_set(err, claimant->answer, "claim", "a", "no room for it") : 0;
}

/* Whoever is killed while it is recorded leaves no home of which no record knows. */
static void a_new_home_is_claimed_before_it_has_its_name(void **state)
{
	struct place *place = *state;
	struct pod_name name = named("a");
	struct stat st;
	struct err err = {0};
	struct claimant claimant = {.place = place, .answer = -ENOSPC};
	AUTO_PIN struct pin home = PIN_NONE;
	assert_int_equal(home_make_claimed(&place->to, &name, ID, claimed, &claimant, &home, &err), -ENOSPC);
	assert_true(claimant.nameless && claimant.marked);
	assert_non_null(strstr(err.text, "no room for it"));
	assert_int_equal(rmdir(in_place(place, "to")), 0); /* nothing is left in it */
	assert_int_equal(mkdir(in_place(place, "to"), 0700), 0);
	pin_close(&place->to);
	assert_int_equal(pin_open(in_place(place, "to"), &place->to, NULL), 0);
	claimant = (struct claimant){.place = place};
	assert_int_equal(home_make_claimed(&place->to, &name, ID, claimed, &claimant, &home, &err), 0);
	assert_true(claimant.nameless && claimant.marked);
	assert_int_equal(lstat(in_place(place, "to/a"), &st), 0);
	assert_int_equal(st.st_ino, home.ino);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(I05_every_level_is_0700_under_any_umask),
	    TEST(a_home_that_cannot_be_marked_is_taken_back),
	    TEST(wide_modes_are_narrowed_and_content_is_kept),
	    TEST(I01_links_in_place_of_each_level),
	    TEST(files_in_place_of_each_level),
	    TEST(the_marker_tells_whose_home_it_is),
	    TEST(a_new_home_is_claimed_before_it_has_its_name),
	    TEST(X08_odd_markers_never_hang_and_are_never_followed),
	    TEST(home_open_says_what_is_there),
	    TEST(a_retired_home_keeps_its_inode),
	    TEST(X04_a_home_is_found_by_identity_under_any_name),
	    TEST(I03_racer_against_each_level),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
