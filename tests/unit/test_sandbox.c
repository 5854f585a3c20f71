#include "seal_test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "pod/model/sandbox_plan.h"
#include "pod/system/sandbox.h"
#include "pod/system/spawn.h"

#define FAR deadline_in_ms(10000)

extern char **environ;

static struct sandbox_program program;

static int set_up(void **state)
{
	sandbox_find(&program);
	return test_dir_make(state);
}
static const char *tool(const char *name)
{
	static char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%.2000s/%s", getenv("TEST_PROGRAMS") ? getenv("TEST_PROGRAMS") : ".", name);
	return path;
}
#define NEED_BWRAP                                            \
	do {                                                  \
		if (program.kind != SANDBOX_BWRAP)            \
			SKIP("no bwrap: %s", program.detail); \
	} while (0)

/* ---- the vector ---- */

static size_t index_of(const struct words *words, const char *word, size_t from)
{
	for (size_t i = from; i < words->n; i++)
		if (!strcmp(words->v[i], word))
			return i;
	fail_msg("%s is missing", word);
	return 0;
}
static struct sandbox_plan sample(const struct environment *environment, char *const *argv)
{
	return (struct sandbox_plan){
		.program = "/usr/bin/bwrap", .by_descriptor = true, .new_session = true, .home = "/h", .run = "/l/run", .run_canonical = "/h/run",
		.scratch = "/l/run/s", .scratch_canonical = "/h/run/s", .home_fd = 11, .run_fd = 12, .scratch_fd = 13, .info_fd = 14, .block_fd = 15,
		.sync_fd = 16, .cwd = "/w", .argv = argv, .environment = environment};
}
static void the_carve_out_comes_after_the_seal(void **state)
{
	(void)state;
	char a[] = "cmd", b[] = "--bind", *argv[] = {a, b, NULL}, *none[] = {NULL};
	struct environment environment = {.v = none, .n = 0}, out = {0};
	struct words words = {0};
	struct sandbox_plan plan = sample(&environment, argv);
	assert_int_equal(sandbox_plan_bwrap(&plan, &words, &out, NULL), 0);
	size_t root = index_of(&words, "--dev-bind", 0), proc = index_of(&words, "--proc", 0), home = index_of(&words, "11", 0);
	size_t run = index_of(&words, "12", 0), scratch = index_of(&words, "13", 0), end = index_of(&words, "--", 0);
	assert_true(root < proc && proc < home && home < run && run < scratch && scratch < end);
	assert_string_equal(words.v[run - 1], "--ro-bind-fd");
	assert_string_equal(words.v[run + 1], "/h/run");
	assert_string_equal(words.v[scratch - 1], "--bind-fd");
	assert_string_equal(words.v[scratch + 1], "/h/run/s");
	for (const char *const *must = (const char *const[]){"--unshare-user", "--unshare-pid", "--die-with-parent", "--new-session", "--cap-drop", "--block-fd",
							     "--info-fd", "--sync-fd", NULL}; *must; must++)
		assert_true(index_of(&words, *must, 0) < end);
	assert_string_equal(words.v[end + 1], "cmd");
	assert_string_equal(words.v[end + 2], "--bind");
	assert_int_equal(words.n, end + 3);
	words_free(&words);
	environment_free(&out);
	plan.by_descriptor = plan.new_session = false;
	plan.scratch = NULL;
	assert_int_equal(sandbox_plan_bwrap(&plan, &words, &out, NULL), 0);
	run = index_of(&words, "--ro-bind", 0);
	assert_string_equal(words.v[run + 1], "/h/run");
	assert_string_equal(words.v[run + 2], "/h/run");
	for (size_t i = 0; i < words.n; i++)
		assert_true(strcmp(words.v[i], "--new-session") && !strstr(words.v[i], "-fd-") && !strstr(words.v[i], "/h/run/s"));
	words_free(&words);
	environment_free(&out);
}

static void loader_variables_are_kept_from_the_sandbox_program(void **state)
{
	(void)state;
	char a[] = "cmd", *argv[] = {a, NULL}, preload[] = "LD_PRELOAD=/evil.so", plain[] = "A=1", tunables[] = "GLIBC_TUNABLES=x=y", *v[] = {preload, plain, tunables, NULL};
	struct environment environment = {.v = v, .n = 3}, out = {0};
	struct words words = {0};
	struct sandbox_plan plan = sample(&environment, argv);
	assert_int_equal(sandbox_plan_bwrap(&plan, &words, &out, NULL), 0);
	assert_int_equal(out.n, 1);
	assert_string_equal(out.v[0], "A=1");
	size_t at_preload = index_of(&words, "LD_PRELOAD", 0), at_tunables = index_of(&words, "GLIBC_TUNABLES", 0);
	assert_string_equal(words.v[at_preload - 1], "--setenv");
	assert_string_equal(words.v[at_preload + 1], "/evil.so");
	assert_string_equal(words.v[at_tunables + 1], "x=y");
	words_free(&words);
	environment_free(&out);
}

static void seatbelt_carve_out_is_the_last_rule(void **state)
{
	(void)state;
	char a[] = "cmd", *argv[] = {a, NULL}, *none[] = {NULL};
	struct environment environment = {.v = none, .n = 0};
	struct words words = {0};
	struct sandbox_plan plan = sample(&environment, argv);
	assert_int_equal(sandbox_plan_seatbelt(&plan, &words, NULL), 0);
	const char *profile = words.v[index_of(&words, "-p", 0) + 1], *last = NULL;
	for (const char *line = profile; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (*line == '(')
			last = line;
	assert_non_null(last);
	assert_string_equal(last, "(allow file-write* (subpath (param \"SCRATCH\")))\n");
	assert_non_null(strstr(profile, "(deny file-write* (subpath (param \"RUN\")))"));
	assert_non_null(strstr(profile, "(deny file-write* (subpath (param \"RUN_CANONICAL\")))"));
	assert_non_null(strstr(profile, "(deny file-link (subpath (param \"RUN\")))"));
	(void)index_of(&words, "RUN=/l/run", 0);
	(void)index_of(&words, "RUN_CANONICAL=/h/run", 0);
	(void)index_of(&words, "SCRATCH=/h/run/s", 0);
	assert_string_equal(words.v[words.n - 1], "cmd");
	words_free(&words);
	plan.scratch = NULL;
	assert_int_equal(sandbox_plan_seatbelt(&plan, &words, NULL), 0);
	assert_null(strstr(words.v[index_of(&words, "-p", 0) + 1], "(allow file-write*"));
	words_free(&words);
}

/* ---- real ones ---- */

struct trial {
	char home[PATH_MAX];
	struct pin pin;
	struct scratch scratch;
	struct sandbox sandbox;
	int out;        /* what the command says; EOF when everybody who could speak is gone */
	char said[8192];
	struct err err;
};

static void new_home(struct trial *trial, const char *name)
{
	*trial = (struct trial){.pin = PIN_NONE, .scratch = SCRATCH_NONE, .sandbox = SANDBOX_NONE, .out = -1};
	(void)snprintf(trial->home, sizeof trial->home, "%s", at("%s", name));
	if (!exists(trial->home)) {
		make_dir(trial->home);
		make_dir(at("%s/run", name));
		make_file(at("%s/run/file", name), "sealed");
	}
	assert_int_equal(pin_open(trial->home, &trial->pin, NULL), 0);
	if (scratch_make(&trial->pin, at("%s/run", name), FAR, &trial->scratch, &trial->err) < 0)
		fail_msg("%s", trial->err.text);
}
static int start_in(struct trial *trial, const struct sandbox_program *with, char *const *envp, char *const *argv)
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	struct environment environment = {0};
	assert_int_equal(environment_copy(envp, &environment, NULL), 0);
	struct sandbox_request request = {.program = with, .home = &trial->pin, .home_path = trial->home, .scratch = &trial->scratch, .command = argv[0],
					  .argv = argv, .environment = &environment, .cwd = trial->home, .stdio = {SPAWN_NULL, ends[1], ends[1]}, .new_session = true};
	int r = sandbox_start(&request, FAR, &trial->sandbox, &trial->err);
	(void)close(ends[1]);
	trial->out = ends[0];
	environment_free(&environment);
	return r;
}
static void start(struct trial *trial, const struct sandbox_program *with, char *const *argv)
{
	if (start_in(trial, with, environ, argv) < 0) {
		ssize_t n = read(trial->out, trial->said, sizeof trial->said - 1);
		(void)n;
		fail_msg("%s; %s", trial->err.text, trial->said);
	}
}
static void listen_to_the_end(struct trial *trial)
{
	size_t len = 0;
	struct deadline until = FAR;
	struct pollfd p = {.fd = trial->out, .events = POLLIN};
	for (;;) {
		if (poll(&p, 1, deadline_poll_ms(until)) <= 0)
			fail_msg("somebody still holds the output");
		ssize_t n = read(trial->out, trial->said + len, sizeof trial->said - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	trial->said[len] = '\0';
}
static int end(struct trial *trial)
{
	int status = -1;
	if (sandbox_end(&trial->sandbox, FAR, &status, &trial->err) < 0)
		fail_msg("%s", trial->err.text);
	listen_to_the_end(trial);
	(void)close(trial->out);
	return status;
}
static void finish(struct trial *trial)
{
	assert_int_equal(scratch_remove(&trial->scratch, FAR, NULL), 0);
	pin_close(&trial->pin);
}
static char **words_of(const char *first, ...)
{
	static char *argv[16];
	int n = 0;
	va_list words;
	va_start(words, first);
	for (const char *word = first; word; word = va_arg(words, const char *))
		argv[n++] = (char *)(uintptr_t)word;
	va_end(words);
	argv[n] = NULL;
	return argv;
}
#define ARGV(...) words_of(__VA_ARGS__, (const char *)NULL)
#define SH(script, ...) words_of("/bin/sh", "-c", script, "sh" __VA_OPT__(, ) __VA_ARGS__, (const char *)NULL)

/* listen_to_the_end twice would lose what was said: keep the first. */
static int escape_and_tell(void *plain)
{
	if (plain)
		as_plain_user();
	struct trial trial;
	char pid[16], said[sizeof trial.said];
	new_home(&trial, plain ? "plain/home" : "escape");
	(void)snprintf(pid, sizeof pid, "%d", (int)getpid());
	start(&trial, &program, ARGV(tool("escape"), trial.home, trial.scratch.path, pid));
	listen_to_the_end(&trial);
	(void)memcpy(said, trial.said, sizeof said);
	int status = end(&trial);
	finish(&trial);
	if (strcmp(said, "carve-out\n"))
		print_message("worked: %s\n", said);
	return strcmp(said, "carve-out\n") || status != 0;
}
static void seal_held(const char *name)
{
	char text[16] = "";
	int fd = open(at("%s/run/file", name), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof text) == 6);
	(void)close(fd);
	assert_string_equal(text, "sealed");
	assert_false(exists(at("%s/run/evil", name)));
}
static void X48_every_escape_fails(void **state)
{
	(void)state;
	NEED_BWRAP;
	assert_int_equal(in_child(escape_and_tell, NULL), 0);
	seal_held("escape");
}
static void X48_every_escape_fails_as_a_plain_user(void **state)
{
	(void)state;
	NEED_BWRAP;
	make_dir(at("plain"));
	assert_int_equal(chmod(test_dir, 0711), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(at("plain"), PLAIN_USER, PLAIN_USER), 0);
	assert_int_equal(in_child(escape_and_tell, test_dir), 0);
	seal_held("plain/home");
}

/* Without the seal the same program must find ways, or its silence proves nothing. */
static int unsealed(void *unused)
{
	(void)unused;
	struct sandbox_program off = sandbox_none();
	struct trial trial;
	if (!own_mounts())
		return 77;
	new_home(&trial, "control");
	start(&trial, &off, ARGV(tool("escape"), trial.home, trial.scratch.path, "1"));
	listen_to_the_end(&trial);
	for (const char *const *way = (const char *const[]){"create\n", "write\n", "chmod\n", "hard-link-out\n", "move-home\n", NULL}; *way; way++)
		if (!strstr(trial.said, *way)) {
			print_message("not found: %s", *way);
			return 1;
		}
	(void)end(&trial);
	return 0;
}
static void the_escapes_work_where_there_is_no_seal(void **state)
{
	(void)state;
	int r = in_child(unsealed, NULL);
	if (r == 77)
		SKIP("no mount namespace here");
	assert_int_equal(r, 0);
}

static void environment_and_words_are_exact(void **state)
{
	(void)state;
	NEED_BWRAP;
	struct trial trial;
	char *envp[] = {(char[]){"A-B(x)=1"}, (char[]){"LD_LIBRARY_PATH=/nowhere"}, (char[]){"X=two\nlines \x01\xff"}, (char[]){"EMPTY="}, NULL};
	new_home(&trial, "exact");
	assert_int_equal(start_in(&trial, &program, envp, ARGV("/usr/bin/env", "-0")), 0);
	struct backoff pause = {0};
	for (struct deadline until = FAR; poll(&(struct pollfd){.fd = trial.sandbox.pidfd, .events = POLLIN}, 1, 0) == 0 && !deadline_passed(until);)
		backoff_sleep(&pause, until);
	int status = end(&trial);
	assert_int_equal(status, 0);
	size_t seen = 0, entries = 0;
	for (const char *entry = trial.said; *entry; entry += strlen(entry) + 1, entries++)
		for (char **expected = envp; *expected; expected++)
			seen += !strcmp(*expected, entry);
	assert_int_equal(seen, 4);
	assert_int_equal(entries, 5); /* and PWD, which bwrap sets with the directory */
	finish(&trial);
}

static void X46_no_sandbox_program(void **state)
{
	(void)state;
	struct sandbox_program found;
	make_dir(at("evil"));
	assert_int_equal(setenv("PATH", at("evil"), 1), 0);
	make_file(at("evil/bwrap"), "#!/bin/sh\necho evil >&2\n");
	assert_int_equal(chmod(at("evil/bwrap"), 0777), 0);
	sandbox_find_in((const char *const[]){at("nothing"), NULL}, &found);
	assert_int_equal(found.kind, SANDBOX_UNAVAILABLE);
	assert_non_null(strstr(found.detail, "not installed"));
	sandbox_find_in((const char *const[]){at("evil"), NULL}, &found); /* anybody could have written it */
	assert_int_equal(found.kind, SANDBOX_UNAVAILABLE);
	assert_non_null(strstr(found.detail, "only root can change"));
	struct sandbox_program again;
	sandbox_find(&again);
	assert_string_equal(again.path, program.path);
	struct trial trial;
	new_home(&trial, "none");
	assert_int_equal(start_in(&trial, &found, environ, SH("touch \"$1\"", at("ran"))), -ENOTSUP);
	assert_false(exists(at("ran")));
	(void)close(trial.out);
	finish(&trial);
	assert_int_equal(setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1), 0);
}

static int without_user_namespaces(void *unused)
{
	(void)unused;
	if (!own_mounts() && unshare(CLONE_NEWUSER) < 0)
		return 77;
	/* the limit of a user namespace of our own, so that nobody else is touched */
	unsigned uid = geteuid();
	char map[32];
	if (uid == 0 && unshare(CLONE_NEWUSER) == 0) {
		(void)snprintf(map, sizeof map, "0 %u 1", uid);
		write_text("/proc/self/uid_map", map);
	}
	write_text("/proc/sys/user/max_user_namespaces", "0");
	if (unshare(CLONE_NEWUSER) == 0)
		return 77;
	struct trial trial;
	new_home(&trial, "forbidden");
	int r = start_in(&trial, &program, environ, SH("touch \"$1\"", at("ran")));
	(void)close(trial.out);
	(void)scratch_remove(&trial.scratch, FAR, NULL);
	return r == -ENOTSUP && !exists(at("ran")) ? 0 : 1;
}
static void X46_user_namespaces_forbidden(void **state)
{
	(void)state;
	NEED_BWRAP;
	int r = in_child(without_user_namespaces, NULL);
	if (r == 77)
		SKIP("a limit on user namespaces cannot be set here");
	assert_int_equal(r, 0);
}

static void X47_a_home_that_was_replaced(void **state)
{
	(void)state;
	NEED_BWRAP;
	struct trial trial;
	new_home(&trial, "moved");
	assert_int_equal(sandbox_still_in_place(&trial.pin, trial.home, NULL), 0);
	start(&trial, &program, SH("exec sleep 60"));
	assert_int_equal(rename(trial.home, at("aside")), 0); /* from outside of the sandbox */
	make_dir(trial.home);
	make_dir(at("moved/run"));
	(void)end(&trial);
	assert_int_equal(sandbox_still_in_place(&trial.pin, trial.home, &trial.err), -EXDEV);
	int r = start_in(&trial, &program, environ, SH("touch \"$1\"", at("ran")));
	assert_int_equal(r, -EXDEV);
	assert_false(exists(at("ran")));
	(void)close(trial.out);
	finish(&trial);
	new_home(&trial, "moved");
	assert_int_equal(rename(at("moved/run"), at("moved/run-aside")), 0);
	assert_int_equal(sandbox_still_in_place(&trial.pin, trial.home, &trial.err), -EXDEV);
	assert_int_equal(rename(at("moved/run-aside"), at("moved/run")), 0);
	finish(&trial);
}

static void X48_a_hard_link_outside_is_refused(void **state)
{
	(void)state;
	NEED_BWRAP;
	struct trial trial;
	new_home(&trial, "linked");
	make_dir(at("linked/run/sub"));
	make_file(at("linked/run/sub/twice"), "x");
	assert_int_equal(link(at("linked/run/sub/twice"), at("linked/outside")), 0);
	assert_int_equal(start_in(&trial, &program, environ, SH("touch \"$1\"", at("ran"))), -EMLINK);
	assert_string_equal(trial.err.subject, "run/sub/twice");
	(void)close(trial.out);
	assert_int_equal(unlink(at("linked/outside")), 0);
	make_file(at("linked/run/mcp-tmp/%s/tmp/a", trial.scratch.name), "x"); /* a server's own business */
	assert_int_equal(link(at("linked/run/mcp-tmp/%s/tmp/a", trial.scratch.name), at("linked/run/mcp-tmp/%s/tmp/b", trial.scratch.name)), 0);
	start(&trial, &program, SH("exit 7"));
	assert_true(poll(&(struct pollfd){.fd = trial.sandbox.pidfd, .events = POLLIN}, 1, 10000) == 1);
	int status = end(&trial);
	assert_int_equal(WEXITSTATUS(status), 7);
	finish(&trial);
}

static void both_spellings_of_a_linked_home_are_sealed(void **state)
{
	(void)state;
	NEED_BWRAP;
	struct trial trial;
	make_dir(at("real-home"));
	make_link("real-home", at("linked-home"));
	new_home(&trial, "linked-home");
	start(&trial, &program, SH("for d in \"$1\" \"$2\"; do cat \"$d/mcp-tmp/\"*/.owner >/dev/null && echo readable; (: >\"$d/x\") 2>/dev/null && echo open; done; : >\"$3/y\" && echo tmp",
				   at("linked-home/run"), at("real-home/run"), trial.scratch.path));
	assert_true(poll(&(struct pollfd){.fd = trial.sandbox.pidfd, .events = POLLIN}, 1, 10000) == 1);
	(void)end(&trial);
	assert_string_equal(trial.said, "readable\nreadable\ntmp\n");
	finish(&trial);
}

static const struct sandbox_program *kinds[2];
static int daemons_end_too(const struct sandbox_program *with, const char *name)
{
	struct trial trial;
	new_home(&trial, name);
	start(&trial, with, SH("trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; echo up; sleep 60; sleep 60' & sh -c 'sleep 60 & sleep 60' & sleep 60; sleep 60"));
	assert_true(read(trial.out, trial.said, 3) > 0);
	int64_t begun = monotonic_ns();
	(void)end(&trial); /* reads to the end of file: nobody is left who could write */
	assert_true(monotonic_ns() - begun < 3000000000LL);
	finish(&trial);
	return 0;
}
static int prober_is_killed(void *index)
{
	const struct sandbox_program *with = kinds[*(int *)index];
	struct trial trial;
	new_home(&trial, "killed");
	int copy = 100; /* the test's end of the pipe */
	struct environment environment = {0};
	assert_int_equal(environment_copy(environ, &environment, NULL), 0);
	char **argv = SH("setsid sleep 60 & echo up; sleep 60; sleep 60");
	struct sandbox_request request = {.program = with, .home = &trial.pin, .home_path = trial.home, .scratch = &trial.scratch, .command = argv[0], .argv = argv,
					  .environment = &environment, .cwd = "/", .stdio = {SPAWN_NULL, copy, copy}};
	if (sandbox_start(&request, FAR, &trial.sandbox, &trial.err) < 0)
		return 1;
	(void)poll(NULL, 0, 200);
	(void)raise(SIGKILL);
	return 1;
}
static void nothing_survives(int index)
{
	int ends[2];
	assert_int_equal(daemons_end_too(kinds[index], "daemons"), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], 100), 100);
	(void)close(ends[1]);
	(void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	assert_int_equal(in_child(prober_is_killed, &index), 128 + SIGKILL);
	(void)close(100);
	struct trial trial = {.out = ends[0]};
	listen_to_the_end(&trial);
	assert_string_equal(trial.said, "up\n");
	(void)close(ends[0]);
	struct pin pin = PIN_NONE;
	size_t removed = 0;
	assert_int_equal(pin_open(at("killed"), &pin, NULL), 0);
	assert_int_equal(scratch_sweep(&pin, FAR, &removed, NULL), 0);
	assert_int_equal(removed, 1);
	pin_close(&pin);
}
static void X49_nothing_survives_in_the_sandbox(void **state)
{
	(void)state;
	NEED_BWRAP;
	kinds[0] = &program;
	nothing_survives(0);
}
static void X49_nothing_survives_without_one(void **state)
{
	(void)state;
	static struct sandbox_program off;
	off = sandbox_none();
	kinds[1] = &off;
	nothing_survives(1);
}

static void signals_and_status_without_a_sandbox(void **state)
{
	(void)state;
	struct sandbox_program off = sandbox_none();
	struct trial trial;
	new_home(&trial, "off");
	start(&trial, &off, SH("trap 'exit 9' USR1; echo up; while :; do sleep 0.05; done"));
	assert_int_equal(read(trial.out, trial.said, 3), 3);
	assert_int_equal(sandbox_signal(&trial.sandbox, SIGUSR1, NULL), 0);
	assert_true(poll(&(struct pollfd){.fd = trial.sandbox.pidfd, .events = POLLIN}, 1, 10000) == 1);
	int status = end(&trial);
	assert_int_equal(WEXITSTATUS(status), 9);
	assert_int_equal(start_in(&trial, &off, environ, ARGV("/nothing/here")), -ENOENT);
	assert_non_null(strstr(trial.err.subject, "/nothing/here"));
	(void)close(trial.out);
	finish(&trial);
}
static void signals_reach_the_command(void **state)
{
	(void)state;
	NEED_BWRAP;
	struct trial trial;
	new_home(&trial, "signals");
	start(&trial, &program, SH("trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"));
	assert_int_equal(read(trial.out, trial.said, 3), 3);
	assert_int_equal(sandbox_signal(&trial.sandbox, SIGTERM, NULL), 0);
	assert_true(poll(&(struct pollfd){.fd = trial.sandbox.pidfd, .events = POLLIN}, 1, 10000) == 1);
	int status = end(&trial);
	assert_int_equal(WEXITSTATUS(status), 9);
	assert_int_equal(sandbox_signal(&trial.sandbox, SIGTERM, NULL), -ESRCH);
	finish(&trial);
}

/* ---- the pipe of the answers ---- */

/* Stands for bwrap's first process: holds the pipe, and has a child that holds it or not, or none yet. */
static struct sandbox stand_in(const int pipe_ends[2], bool child, bool holds)
{
	int go[2];
	char byte;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (child && fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (!holds)
				(void)close(pipe_ends[1]);
			(void)close(pipe_ends[0]);
			(void)!write(go[1], "x", 1);
			for (;;)
				(void)pause();
		}
		if (!child)
			(void)!write(go[1], "x", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(go[0], &byte, 1), 1);
	(void)close(go[0]);
	(void)close(go[1]);
	return (struct sandbox){.kind = SANDBOX_BWRAP, .pid = pid, .inner = pid, .pidfd = -1, .inner_pidfd = -1};
}
static void a_pipe_is_held_until_a_command_that_was_started_lets_go(void **state)
{
	(void)state;
	static const struct {
		bool child, holds, held;
	} cases[] = {{false, false, true}, {true, true, true}, {true, false, false}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int ends[2];
		struct stat st;
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		assert_int_equal(fstat(ends[0], &st), 0);
		struct sandbox sandbox = stand_in(ends, cases[i].child, cases[i].holds);
		assert_int_equal(sandbox_holds_pipe(&sandbox, st.st_ino), cases[i].held);
		(void)kill(sandbox.pid, SIGKILL);
		assert_int_equal(waitpid(sandbox.pid, NULL, 0), sandbox.pid);
		(void)close(ends[0]);
		(void)close(ends[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_carve_out_comes_after_the_seal),
		cmocka_unit_test(loader_variables_are_kept_from_the_sandbox_program),
		cmocka_unit_test(seatbelt_carve_out_is_the_last_rule),
		cmocka_unit_test(X48_every_escape_fails),
		cmocka_unit_test(X48_every_escape_fails_as_a_plain_user),
		cmocka_unit_test(the_escapes_work_where_there_is_no_seal),
		cmocka_unit_test(environment_and_words_are_exact),
		cmocka_unit_test(X46_no_sandbox_program),
		cmocka_unit_test(X46_user_namespaces_forbidden),
		cmocka_unit_test(X47_a_home_that_was_replaced),
		cmocka_unit_test(X48_a_hard_link_outside_is_refused),
		cmocka_unit_test(both_spellings_of_a_linked_home_are_sealed),
		cmocka_unit_test(X49_nothing_survives_in_the_sandbox),
		cmocka_unit_test(X49_nothing_survives_without_one),
		cmocka_unit_test(a_pipe_is_held_until_a_command_that_was_started_lets_go),
		cmocka_unit_test(signals_reach_the_command),
		cmocka_unit_test(signals_and_status_without_a_sandbox),
	};
	return cmocka_run_group_tests(tests, set_up, test_dir_remove);
}
