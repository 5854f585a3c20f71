#include "seal_test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/file.h>

#include "pod/system/scratch.h"

#define FAR deadline_in_ms(5000)

static struct pin home = PIN_NONE;

static int set_up(void **state)
{
	if (test_dir_make(state) < 0 || mkdir(at("home"), 0700) < 0)
		return -1;
	return pin_open(at("home"), &home, NULL);
}
static int tear_down(void **state)
{
	pin_close(&home);
	return test_dir_remove(state);
}

static struct scratch make(void)
{
	struct scratch scratch = SCRATCH_NONE;
	struct err err = {0};
	if (scratch_make(&home, at("home/run"), FAR, &scratch, &err) < 0)
		fail_msg("%s", err.text);
	return scratch;
}
static size_t entries(const char *path)
{
	size_t n = 0;
	DIR *d = opendir(path);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.' || !strcmp(e->d_name, ".owner");
	(void)closedir(d);
	return n;
}
static size_t sweep(void)
{
	size_t removed = 999;
	struct err err = {0};
	if (scratch_sweep(&home, FAR, &removed, &err) < 0)
		fail_msg("%s", err.text);
	return removed;
}

static void nothing_to_sweep_makes_nothing(void **state)
{
	(void)state;
	assert_int_equal(sweep(), 0);
	assert_false(exists(at("home/run")));
}

static void made_owned_and_removed(void **state)
{
	(void)state;
	struct scratch scratch = make();
	struct stat st;
	unsigned hex = 0;
	int end = 0;
	assert_int_equal(sscanf(scratch.name, "probe-%8x%n", &hex, &end), 1);
	assert_int_equal(end, 14);
	assert_int_equal(strlen(scratch.name), 14);
	assert_string_equal(scratch.path, at("home/run/mcp-tmp/%s/tmp", scratch.name));
	assert_int_equal(stat(scratch.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_ino, scratch.tmp.ino);
	assert_int_equal(stat(at("home/run/mcp-tmp/%s/.owner", scratch.name), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(at("home/run"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	make_file(at("home/run/mcp-tmp/%s/tmp/left", scratch.name), "x");
	assert_int_equal(scratch_remove(&scratch, FAR, NULL), 0);
	assert_int_equal(entries(at("home/run/mcp-tmp")), 0);
	assert_int_equal(scratch_remove(&scratch, FAR, NULL), 0);
}

static void M14_fifty_leave_nothing(void **state)
{
	(void)state;
	struct scratch many[50];
	for (size_t i = 0; i < 50; i++)
		many[i] = make();
	assert_int_equal(entries(at("home/run/mcp-tmp")), 50);
	assert_int_equal(sweep(), 0);
	for (size_t i = 0; i < 50; i++)
		assert_int_equal(scratch_remove(&many[i], FAR, NULL), 0);
	assert_int_equal(entries(at("home/run/mcp-tmp")), 0);
}

/* A prober that makes a scratch, starts a server in a group of its own, tells its pid and dies by SIGKILL. */
static int prober(void *to)
{
	struct scratch scratch = make();
	pid_t server = fork();
	if (server == 0) {
		(void)setpgid(0, 0);
		(void)close(*(int *)to);
		for (;;)
			(void)pause();
	}
	(void)setpgid(server, server);
	if (scratch_own(&scratch, server, NULL) < 0 || write(*(int *)to, &server, sizeof server) != (ssize_t)sizeof server)
		return 1;
	(void)raise(SIGKILL);
	return 1;
}
static void M14_kept_while_a_server_lives(void **state)
{
	(void)state;
	int ends[2];
	pid_t server = 0;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(in_child(prober, &ends[1]), 128 + SIGKILL);
	assert_int_equal(read(ends[0], &server, sizeof server), sizeof server);
	assert_int_equal(sweep(), 0);
	assert_int_equal(entries(at("home/run/mcp-tmp")), 1);
	assert_int_equal(kill(server, SIGKILL), 0);
	size_t removed = 0;
	struct backoff pause = {0};
	for (struct deadline until = FAR; !(removed = sweep()) && !deadline_passed(until); backoff_sleep(&pause, until))
		;
	assert_int_equal(removed, 1);
	assert_int_equal(entries(at("home/run/mcp-tmp")), 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* The leader is gone, another of its group is not. */
static int leader_that_leaves_a_child(void *to)
{
	(void)setpgid(0, 0);
	struct scratch scratch = make();
	pid_t other = fork();
	if (other == 0)
		for (;;)
			(void)pause();
	(void)scratch;
	return write(*(int *)to, &other, sizeof other) == (ssize_t)sizeof other ? 0 : 1;
}
static void kept_while_anybody_of_the_group_lives(void **state)
{
	(void)state;
	int ends[2];
	pid_t other = 0;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(in_child(leader_that_leaves_a_child, &ends[1]), 0);
	assert_int_equal(read(ends[0], &other, sizeof other), sizeof other);
	assert_int_equal(sweep(), 0);
	assert_int_equal(kill(other, SIGKILL), 0);
	size_t removed = 0;
	struct backoff pause = {0};
	for (struct deadline until = FAR; !(removed = sweep()) && !deadline_passed(until); backoff_sleep(&pause, until))
		;
	assert_int_equal(removed, 1);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void a_reused_pid_is_not_the_owner(void **state)
{
	(void)state;
	struct scratch scratch = make();
	char text[64];
	(void)snprintf(text, sizeof text, "%d 1\n", (int)getpid());
	make_file(at("home/run/mcp-tmp/%s/.owner", scratch.name), text);
	assert_int_equal(sweep(), 1);
	scratch_leave(&scratch);
}

static void odd_remains_are_swept(void **state)
{
	(void)state;
	make_dir(at("home/run/mcp-tmp/probe-00000001")); /* killed between mkdir and its owner */
	make_dir(at("home/run/mcp-tmp/probe-00000002"));
	make_file(at("home/run/mcp-tmp/probe-00000002/.owner"), "garbage\n\n-1 2\n");
	make_file(at("home/run/mcp-tmp/probe-00000003"), "a file");
	make_dir(at("outside"));
	make_file(at("outside/canary"), "x");
	make_link(at("outside"), at("home/run/mcp-tmp/probe-00000004"));
	make_dir(at("home/run/mcp-tmp/probe-00000005"));
	assert_int_equal(mkfifo(at("home/run/mcp-tmp/probe-00000005/.owner"), 0600), 0);
	make_dir(at("home/run/mcp-tmp/other"));
	assert_int_equal(sweep(), 5);
	assert_true(exists(at("outside/canary")));
	assert_true(exists(at("home/run/mcp-tmp/other")));
	assert_int_equal(rmdir(at("home/run/mcp-tmp/other")), 0);
}

static void X07_a_link_in_the_way_is_refused(void **state)
{
	(void)state;
	struct scratch scratch = SCRATCH_NONE;
	struct err err = {0};
	assert_int_equal(rename(at("home/run/mcp-tmp"), at("home/run/aside")), 0);
	make_dir(at("elsewhere"));
	make_link(at("elsewhere"), at("home/run/mcp-tmp"));
	assert_true(scratch_make(&home, at("home/run"), FAR, &scratch, &err) < 0);
	assert_int_equal(scratch.parent.fd, -1);
	assert_int_equal(entries(at("elsewhere")), 0);
	assert_true(scratch_sweep(&home, FAR, NULL, &err) < 0);
	assert_int_equal(unlink(at("home/run/mcp-tmp")), 0);
	assert_int_equal(rename(at("home/run/aside"), at("home/run/mcp-tmp")), 0);
}

static void a_lock_that_is_held_is_bounded(void **state)
{
	(void)state;
	struct scratch scratch = SCRATCH_NONE;
	struct err err = {0};
	int fd = open(at("home/run/mcp-tmp"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(scratch_make(&home, at("home/run"), deadline_in_ms(50), &scratch, &err), -EWOULDBLOCK);
	(void)close(fd);
	assert_int_equal(entries(at("home/run/mcp-tmp")), 0);
}

static void a_path_too_long_leaves_nothing(void **state)
{
	(void)state;
	char long_path[PLANE_PATH_MAX];
	struct scratch scratch = SCRATCH_NONE;
	struct err err = {0};
	memset(long_path, 'x', sizeof long_path - 1);
	long_path[0] = '/';
	long_path[sizeof long_path - 1] = '\0';
	assert_int_equal(scratch_make(&home, long_path, FAR, &scratch, &err), -ENAMETOOLONG);
	assert_int_equal(entries(at("home/run/mcp-tmp")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_sweep_makes_nothing),
		cmocka_unit_test(made_owned_and_removed),
		cmocka_unit_test(M14_fifty_leave_nothing),
		cmocka_unit_test(M14_kept_while_a_server_lives),
		cmocka_unit_test(kept_while_anybody_of_the_group_lives),
		cmocka_unit_test(a_reused_pid_is_not_the_owner),
		cmocka_unit_test(odd_remains_are_swept),
		cmocka_unit_test(X07_a_link_in_the_way_is_refused),
		cmocka_unit_test(a_lock_that_is_held_is_bounded),
		cmocka_unit_test(a_path_too_long_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
