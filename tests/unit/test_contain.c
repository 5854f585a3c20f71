#include "seal_test.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "fsops/contain.h"

#define FAR deadline_in_ms(5000)

static struct contain_answer ask_in(const char *home_run, const char *path)
{
	struct contain_seal seal = {.path = home_run};
	return contain_check(path, &seal, FAR);
}
static enum contain_cause cause_of(const char *path)
{
	return ask_in(at("home/run"), path).cause;
}
#define assert_cause(path, expected) assert_string_equal(contain_cause_name(cause_of(path)), contain_cause_name(expected))

static int set_up(void **state)
{
	if (test_dir_make(state) < 0)
		return -1;
	make_dir(at("home"));
	make_dir(at("home/run"));
	make_dir(at("home/run/deep"));
	make_dir(at("other"));
	return 0;
}

static void text_is_judged_first(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum contain_cause cause;
	} table[] = {
		{"", CONTAIN_EMPTY},
		{"tmp", CONTAIN_RELATIVE},
		{"./tmp", CONTAIN_RELATIVE},
		{"~/tmp", CONTAIN_RELATIVE},
		{"\\tmp", CONTAIN_RELATIVE},
		{"C:\\tmp", CONTAIN_RELATIVE},
		{"/tmp/\xff", CONTAIN_NOT_UTF8},
		{"/tmp/\xc0\xaf", CONTAIN_NOT_UTF8},
		{"/tmp/\xed\xa0\x80", CONTAIN_NOT_UTF8},
		{"/tmp/\xf4\x90\x80\x80", CONTAIN_NOT_UTF8},
		{"/tmp/\xe2\x82", CONTAIN_NOT_UTF8},
		{"/tmp/\xe2\x82" "x", CONTAIN_NOT_UTF8},
		{"/tmp/\xe0\x9f\xbf", CONTAIN_NOT_UTF8},
		{"/tmp/\xe0\xa0\x80", CONTAIN_CLEAR},
		{"/tmp/\xed\x9f\xbf", CONTAIN_CLEAR},
		{"/tmp/\xf0\x8f\xbf\xbf", CONTAIN_NOT_UTF8},
		{"/tmp/\xf4\x8f\xbf\xbf", CONTAIN_CLEAR},
		{"/tmp/\xe2\x82\xac\xf0\x9f\x98\x80", CONTAIN_CLEAR},
		{"/", CONTAIN_CLEAR},
		{"/a\\\\b", CONTAIN_CLEAR},
		{"//h/s", CONTAIN_REMOTE_OR_DEVICE},
		{"\\\\h\\s", CONTAIN_REMOTE_OR_DEVICE},
		{"\\/h", CONTAIN_REMOTE_OR_DEVICE},
		{"/\\h", CONTAIN_REMOTE_OR_DEVICE},
		{"//", CONTAIN_REMOTE_OR_DEVICE},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_string_equal(contain_cause_name(contain_text(table[i].text, strlen(table[i].text))), contain_cause_name(table[i].cause));
	assert_int_equal(contain_text("/a\0b", 4), CONTAIN_CHECK_FAILED);
}

static void every_cause_has_its_name(void **state)
{
	(void)state;
	static const char *const names[] = {"clear", "remote-or-device", "relative", "empty", "too-long", "not-utf8", "sealed", "loop", "check-failed"};
	assert_int_equal(sizeof names / sizeof *names, CONTAIN_CAUSES);
	for (unsigned i = 0; i < CONTAIN_CAUSES; i++)
		assert_string_equal(contain_cause_name((enum contain_cause)i), names[i]);
	assert_string_equal(contain_cause_name(CONTAIN_CAUSES), "check-failed");
}

static void folding_is_textual(void **state)
{
	(void)state;
	static const char *const table[][2] = {{"/", "/"},	      {"/a/./b//c/", "/a/b/c"}, {"/a/../..", "/"}, {"/../a", "/a"},
					       {"/a/b/../c", "/a/c"}, {"/...", "/..."},	        {"/..a/.b", "/..a/.b"}};
	char out[CONTAIN_PATH_MAX];
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		contain_text_fold(table[i][0], out);
		assert_string_equal(out, table[i][1]);
	}
	assert_true(contain_text_below("/a", "/"));
	assert_false(contain_text_below("/a", "b"));
	assert_true(contain_text_below("/a/b", "/a"));
	assert_false(contain_text_below("/ab", "/a"));
}

/* Whatever is asked of the kernel but memory (a sanitizer's), an answer and an end is death: no fork, no file-system call. */
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static int only_memory(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(exit_group), ALLOW(write), ALLOW(mmap), ALLOW(munmap), ALLOW(madvise), ALLOW(sigaltstack), ALLOW(rt_sigprocmask), ALLOW(getpid),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
static int ask_without_system_calls(void *path)
{
	struct contain_seal seal = {.path = at("home/run")};
	struct deadline far = FAR;
	if (only_memory() < 0)
		_exit(99);
	_exit((int)contain_check(path, &seal, far).cause);
}
static void remote_spellings_cause_no_system_call(void **state)
{
	(void)state;
	char spellings[][32] = {"//h/s", "\\\\h\\s", "\\\\?\\C:\\x", "\\\\.\\pipe\\x", "\\\\?\\UNC\\h\\s", "/\\h/s"};
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
		assert_int_equal(in_child(ask_without_system_calls, spellings[i]), CONTAIN_REMOTE_OR_DEVICE);
	char control[] = "/tmp"; /* the recorder does see a look at the file system */
	assert_int_equal(in_child(ask_without_system_calls, control), 128 + SIGSYS);
}

static void M09_inside_as_written(void **state)
{
	(void)state;
	assert_cause(at("home/run"), CONTAIN_SEALED);
	assert_cause(at("home/run/"), CONTAIN_SEALED);
	assert_cause(at("home/run/x"), CONTAIN_SEALED);
	assert_cause(at("home//run/./x"), CONTAIN_SEALED);
	assert_cause(at("home/x/../run"), CONTAIN_SEALED);
	assert_cause(at("home/run/.."), CONTAIN_CLEAR);
	assert_cause(at("home/run/../tmp"), CONTAIN_CLEAR);
	assert_cause(at("home/nothing/../run/x"), CONTAIN_SEALED);
}

static void M13_siblings_are_clear(void **state)
{
	(void)state;
	static const char *const names[] = {"run2", "running", "run.bak", "ru", "RUN", "Run/x", "run "};
	make_dir(at("home/RUN"));
	make_dir(at("home/run2"));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_cause(at("home/%s", names[i]), CONTAIN_CLEAR);
	assert_cause(at("home"), CONTAIN_CLEAR);
	assert_cause("/", CONTAIN_CLEAR);
}

static void M11_links_before_dot_dot(void **state)
{
	(void)state;
	make_link(at("home/run/deep"), at("other/in"));
	make_link("../home/run", at("other/parent"));
	make_link(at("other"), at("home/run/out"));
	make_link(at("home/run/not-there"), at("other/dangling"));
	assert_cause(at("other/in"), CONTAIN_SEALED);
	assert_cause(at("other/in/../tmp"), CONTAIN_SEALED);   /* textually <dir>/other/tmp */
	assert_cause(at("other/in/../../tmp"), CONTAIN_CLEAR); /* <dir>/home/tmp */
	assert_cause(at("other/parent/x/y"), CONTAIN_SEALED);
	assert_cause(at("other/parent/"), CONTAIN_SEALED);
	assert_cause(at("other/dangling"), CONTAIN_SEALED);
	assert_cause(at("other/dangling/x"), CONTAIN_SEALED);
	assert_cause(at("other/parent/out/x"), CONTAIN_CLEAR); /* into the seal and out of it again */
	make_link("nowhere", at("other/dangling-out"));
	assert_cause(at("other/dangling-out/x"), CONTAIN_CLEAR);
	assert_cause(at("other/missing/leaf"), CONTAIN_CLEAR);
}

static void M11_chains_and_loops(void **state)
{
	(void)state;
	make_dir(at("chain"));
	make_link(at("home/run"), at("chain/1"));
	make_link(at("other"), at("chain/o1"));
	for (int i = 2; i <= 41; i++) {
		char target[16], other[16];
		(void)snprintf(target, sizeof target, "%d", i - 1);
		(void)snprintf(other, sizeof other, "o%d", i - 1);
		make_link(target, at("chain/%d", i));
		make_link(other, at("chain/o%d", i));
	}
	assert_cause(at("chain/39"), CONTAIN_SEALED);
	assert_cause(at("chain/40"), CONTAIN_SEALED);
	assert_cause(at("chain/41"), CONTAIN_LOOP);
	assert_cause(at("chain/o39/x"), CONTAIN_CLEAR);
	assert_cause(at("chain/o40/x"), CONTAIN_CLEAR);
	assert_cause(at("chain/o41/x"), CONTAIN_LOOP);
	struct stat st; /* the kernel counts the same */
	assert_int_equal(stat(at("chain/o40"), &st), 0);
	assert_int_equal(stat(at("chain/o41"), &st), -1);
	assert_int_equal(errno, ELOOP);
	make_link("self", at("chain/self"));
	make_link("b", at("chain/a"));
	make_link("a", at("chain/b"));
	assert_cause(at("chain/self"), CONTAIN_LOOP);
	assert_cause(at("chain/a/x"), CONTAIN_LOOP);
}

static void a_link_may_be_spelt_remote(void **state)
{
	(void)state;
	make_link("//host/share", at("other/unc"));
	make_link("\\\\host\\share", at("other/back"));
	assert_cause(at("other/unc"), CONTAIN_REMOTE_OR_DEVICE);
	assert_cause(at("other/back/x"), CONTAIN_REMOTE_OR_DEVICE);
}

static void both_spellings_of_a_linked_home(void **state)
{
	(void)state;
	make_link("home", at("linked"));
	assert_int_equal(ask_in(at("linked/run"), at("home/run/x")).cause, CONTAIN_SEALED);
	assert_int_equal(ask_in(at("linked/run"), at("linked/run/x")).cause, CONTAIN_SEALED);
	assert_int_equal(ask_in(at("home/run"), at("linked/run/x")).cause, CONTAIN_SEALED);
	assert_int_equal(ask_in(at("linked/run"), at("home/other")).cause, CONTAIN_CLEAR);
}

static void a_seal_that_does_not_exist_yet(void **state)
{
	(void)state;
	make_dir(at("new"));
	make_link("new", at("new-link"));
	assert_int_equal(ask_in(at("new/run"), at("new/run/x")).cause, CONTAIN_SEALED);
	assert_int_equal(ask_in(at("new-link/run"), at("new/run")).cause, CONTAIN_SEALED);
	assert_int_equal(ask_in(at("new/run"), at("new-link/run/x")).cause, CONTAIN_SEALED);
	assert_int_equal(ask_in(at("new/run"), at("new/run2")).cause, CONTAIN_CLEAR);
	assert_int_equal(ask_in(at("not/there/run"), at("new/x")).cause, CONTAIN_CLEAR);
}

static void a_seal_that_cannot_be_judged_fails_closed(void **state)
{
	(void)state;
	make_link("turn", at("turn"));
	struct contain_answer found = ask_in(at("turn/run"), at("other"));
	assert_int_equal(found.cause, CONTAIN_CHECK_FAILED);
	assert_non_null(strstr(found.detail, "the sealed directory"));
	assert_int_equal(symlink("//host/share", at("far")), 0);
	found = ask_in(at("far/run"), at("other"));
	assert_int_equal(found.cause, CONTAIN_CHECK_FAILED);
	assert_non_null(strstr(found.detail, "remote-or-device"));
	assert_int_equal(ask_in("home/run", at("other")).cause, CONTAIN_CHECK_FAILED);
	assert_int_equal(ask_in("//host/run", at("other")).cause, CONTAIN_CHECK_FAILED);
}

/* Nothing at 0, 1 and 2: what the child holds has the lowest number there is. */
static int without_standard_descriptors(void *unused)
{
	(void)unused;
	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
	return cause_of(at("home/run/x")) == CONTAIN_SEALED && cause_of(at("other/../home/run/x")) == CONTAIN_SEALED && cause_of(at("other/x")) == CONTAIN_CLEAR ? 0 : 1;
}

static void standard_descriptors_may_be_closed(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0)
		_exit(without_standard_descriptors(NULL));
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void proc_links_are_followed_for_real(void **state)
{
	(void)state;
	assert_cause(at("../../../../../../../../proc/self/root%s", at("home/run/x")), CONTAIN_SEALED);
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "/proc/self/root%.2000s", at("home/run/x"));
	assert_cause(path, CONTAIN_SEALED);
	(void)snprintf(path, sizeof path, "/proc/self/root%.2000s", at("other"));
	assert_cause(path, CONTAIN_CLEAR);
	assert_int_equal(chdir(at("home/run/deep")), 0);
	(void)snprintf(path, sizeof path, "/proc/%d/cwd/tmp", (int)getpid());
	assert_cause(path, CONTAIN_SEALED);
	(void)snprintf(path, sizeof path, "/proc/%d/cwd/../../x", (int)getpid());
	assert_cause(path, CONTAIN_CLEAR);
	assert_int_equal(chdir("/"), 0);
	assert_cause("/proc/self/exe", CONTAIN_CHECK_FAILED);
}

static void a_pin_is_enough(void **state)
{
	(void)state;
	struct stat st;
	assert_int_equal(stat(at("home/run"), &st), 0);
	struct pin pin = {.fd = -1, .dev = st.st_dev, .ino = st.st_ino};
	struct contain_seal seal = {.path = at("another/run"), .pin = &pin};
	assert_int_equal(contain_check(at("home/run/x"), &seal, FAR).cause, CONTAIN_SEALED);
	assert_int_equal(contain_check(at("other/x"), &seal, FAR).cause, CONTAIN_CLEAR);
}

static int through_a_bind_mount(void *unused)
{
	(void)unused;
	if (!own_mounts() || mount(at("home/run"), at("alias"), NULL, MS_BIND, NULL) < 0)
		return 77;
	if (cause_of(at("alias")) != CONTAIN_SEALED || cause_of(at("alias/deep/x")) != CONTAIN_SEALED)
		return 1;
	if (mount(at("other"), at("alias2"), NULL, MS_BIND, NULL) < 0 || cause_of(at("alias2/x")) != CONTAIN_CLEAR)
		return 2;
	return cause_of(at("alias/..")) == CONTAIN_CLEAR ? 0 : 3;
}
static void X12_bind_alias_is_sealed_by_identity(void **state)
{
	(void)state;
	make_dir(at("alias"));
	make_dir(at("alias2"));
	assert_int_equal(cause_of(at("alias/x")), CONTAIN_CLEAR);
	int r = in_child(through_a_bind_mount, NULL);
	if (r == 77)
		SKIP("no mount namespace here");
	assert_int_equal(r, 0);
}

/* Mounts the program's file system over `mountpoint`; -1 when the host has no FUSE for us. */
static pid_t start_fuse(const char *option, const char *backing, const char *mountpoint)
{
	struct stat before, after;
	char program[PATH_MAX];
	(void)snprintf(program, sizeof program, "%.2000s/casefold_fs", getenv("TEST_PROGRAMS") ? getenv("TEST_PROGRAMS") : ".");
	if (access(program, X_OK) < 0 || access("/dev/fuse", R_OK | W_OK) < 0 || stat(mountpoint, &before) < 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		if (option)
			execl(program, program, option, backing, mountpoint, (char *)NULL);
		else
			execl(program, program, backing, mountpoint, (char *)NULL);
		_exit(127);
	}
	struct backoff pause = {0};
	for (struct deadline until = FAR; !deadline_passed(until); backoff_sleep(&pause, until)) {
		if (stat(mountpoint, &after) == 0 && after.st_dev != before.st_dev)
			return child;
		if (waitpid(child, NULL, WNOHANG) == child)
			return -1;
	}
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	return -1;
}
static void end_fuse(pid_t child, const char *mountpoint)
{
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	(void)umount2(mountpoint, MNT_DETACH);
}

static int on_case_insensitive(void *unused)
{
	(void)unused;
	if (!own_mounts())
		return 77;
	pid_t fuse = start_fuse(NULL, at("store"), at("folded"));
	if (fuse < 0)
		return 77;
	struct contain_answer alias = ask_in(at("folded/run"), at("folded/RUN/x")), plain = ask_in(at("folded/run"), at("folded/run2"));
	struct contain_answer parent = ask_in(at("folded/run"), at("folded/Run"));
	end_fuse(fuse, at("folded"));
	return alias.cause != CONTAIN_SEALED ? 1 : parent.cause != CONTAIN_SEALED ? 2 : plain.cause != CONTAIN_CLEAR ? 3 : 0;
}
static void X12_case_alias_is_sealed_by_identity(void **state)
{
	(void)state;
	make_dir(at("store"));
	make_dir(at("store/run"));
	make_dir(at("store/run2"));
	make_dir(at("folded"));
	/* negative control: the same names where case matters */
	assert_int_equal(ask_in(at("store/run"), at("store/RUN/x")).cause, CONTAIN_CLEAR);
	int r = in_child(on_case_insensitive, NULL);
	if (r == 77)
		SKIP("no FUSE here (/dev/fuse, fusermount3, casefold_fs)");
	assert_int_equal(r, 0);
}

static int on_hung(void *unused)
{
	(void)unused;
	if (!own_mounts())
		return 77;
	pid_t fuse = start_fuse("--hang", at("dead-store"), at("dead"));
	if (fuse < 0)
		return 77;
	int64_t begun = monotonic_ns();
	struct contain_seal seal = {.path = at("home/run")};
	struct contain_answer found = contain_check(at("dead/x"), &seal, deadline_in_ms(300));
	int64_t ms = (monotonic_ns() - begun) / 1000000;
	end_fuse(fuse, at("dead"));
	while (waitpid(-1, NULL, 0) > 0)
		;
	if (found.cause != CONTAIN_CHECK_FAILED || strcmp(found.detail, "the file system does not answer"))
		return 1;
	return ms >= 290 && ms < 1500 ? 0 : 2;
}
static void X13_hung_file_system_is_bounded(void **state)
{
	(void)state;
	make_dir(at("dead-store"));
	make_dir(at("dead"));
	int r = in_child(on_hung, NULL);
	if (r == 77)
		SKIP("no FUSE here (/dev/fuse, fusermount3, casefold_fs)");
	assert_int_equal(r, 0);
}

static int in_a_closed_directory(void *unused)
{
	(void)unused;
	as_plain_user();
	struct contain_answer found = ask_in(at("open/run"), at("open/closed/x"));
	if (found.cause != CONTAIN_CHECK_FAILED || !strstr(found.detail, "Permission denied"))
		return 1;
	/* the closed directory itself can be judged: what is above it was seen */
	return ask_in(at("open/run"), at("open/closed")).cause == CONTAIN_CLEAR ? 0 : 2;
}
static void no_permission_keeps_the_question_open(void **state)
{
	(void)state;
	make_dir(at("open"));
	make_dir(at("open/closed"));
	assert_int_equal(chmod(test_dir, 0755), 0);
	assert_int_equal(chmod(at("open"), 0755), 0);
	assert_int_equal(chmod(at("open/closed"), 0), 0);
	int r = in_child(in_a_closed_directory, NULL);
	assert_int_equal(chmod(at("open/closed"), 0700), 0);
	assert_int_equal(r, 0);
}

static void lengths(void **state)
{
	(void)state;
	char path[CONTAIN_PATH_MAX + 2];
	size_t n = (size_t)snprintf(path, sizeof path, "%s", test_dir);
	while (n < CONTAIN_PATH_MAX - 1) {
		path[n] = n % 200 == 0 ? '/' : 'x';
		n++;
	}
	path[CONTAIN_PATH_MAX - 1] = '\0';
	assert_cause(path, CONTAIN_CLEAR);
	path[CONTAIN_PATH_MAX - 1] = 'x';
	path[CONTAIN_PATH_MAX] = '\0';
	assert_cause(path, CONTAIN_TOO_LONG);
	char name[300];
	memset(name, 'n', sizeof name);
	name[255] = '\0';
	assert_cause(at("%s", name), CONTAIN_CLEAR);
	name[255] = 'n';
	name[256] = '\0';
	assert_cause(at("%s", name), CONTAIN_TOO_LONG);
	assert_cause(at("other/\xff"), CONTAIN_NOT_UTF8);
}

static void files_on_the_way(void **state)
{
	(void)state;
	make_file(at("other/file"), "x");
	make_file(at("home/run/file"), "x");
	make_link(at("home/run/file"), at("other/to-file"));
	assert_cause(at("other/file"), CONTAIN_CLEAR);
	assert_cause(at("other/file/x"), CONTAIN_CLEAR);
	assert_cause(at("other/to-file"), CONTAIN_SEALED);
	assert_cause(at("other/to-file/x"), CONTAIN_SEALED);
	assert_int_equal(mkfifo(at("other/fifo"), 0600), 0);
	assert_cause(at("other/fifo"), CONTAIN_CLEAR);
}

static int open_descriptors(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}
static void nothing_is_left_behind(void **state)
{
	(void)state;
	int before = open_descriptors();
	for (int i = 0; i < 50; i++)
		assert_cause(at("other/x"), CONTAIN_CLEAR);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void SIGCHLD_ignored(void **state)
{
	(void)state;
	void (*before)(int) = signal(SIGCHLD, SIG_IGN);
	assert_cause(at("other/in"), CONTAIN_SEALED);
	assert_cause(at("other"), CONTAIN_CLEAR);
	(void)signal(SIGCHLD, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_judged_first),
		cmocka_unit_test(every_cause_has_its_name),
		cmocka_unit_test(folding_is_textual),
		cmocka_unit_test(remote_spellings_cause_no_system_call),
		cmocka_unit_test(M09_inside_as_written),
		cmocka_unit_test(M13_siblings_are_clear),
		cmocka_unit_test(M11_links_before_dot_dot),
		cmocka_unit_test(M11_chains_and_loops),
		cmocka_unit_test(a_link_may_be_spelt_remote),
		cmocka_unit_test(both_spellings_of_a_linked_home),
		cmocka_unit_test(a_seal_that_does_not_exist_yet),
		cmocka_unit_test(a_seal_that_cannot_be_judged_fails_closed),
		cmocka_unit_test(standard_descriptors_may_be_closed),
		cmocka_unit_test(proc_links_are_followed_for_real),
		cmocka_unit_test(a_pin_is_enough),
		cmocka_unit_test(X12_bind_alias_is_sealed_by_identity),
		cmocka_unit_test(X12_case_alias_is_sealed_by_identity),
		cmocka_unit_test(X13_hung_file_system_is_bounded),
		cmocka_unit_test(no_permission_keeps_the_question_open),
		cmocka_unit_test(lengths),
		cmocka_unit_test(files_on_the_way),
		cmocka_unit_test(nothing_is_left_behind),
		cmocka_unit_test(SIGCHLD_ignored),
	};
	return cmocka_run_group_tests(tests, set_up, test_dir_remove);
}
