/* Keepers that were killed or hang, callers in an odd state, and a system that runs out of something. */
#include <linux/sched.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "keeper_stage.h"
#include "tests/unit/as_root.h"

static void X43_a_killed_keeper_is_shown_and_its_remnants_are_ended(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "daemon");
	stage_wait_file(stage, "ready");
	struct unit_state state = stage_query(stage);
	assert_true(state.group.tree > 1);
	assert_int_equal(kill(state.group.tree, SIGKILL), 0);
	struct deadline until = deadline_in_ms(10000);
	struct backoff backoff = {0};
	while (stage_processes(stage, NULL) != 1 && !deadline_passed(until)) /* the main process is tied to the keeper, its daemon is not */
		backoff_sleep(&backoff, until);
	assert_int_equal(stage_processes(stage, NULL), 1);
	state = stage_wait_for(stage, UNIT_FAILED);
	assert_int_equal(state.end, UNIT_END_OTHER);
	assert_non_null(strstr(state.detail, "its keeper was killed; 1 of its processes live on"));
	struct process_list members = {0};
	must(group_members(&state.group, &members, &stage->err));
	assert_int_equal(members.n, 1);
	process_list_free(&members);
	assert_int_equal(service_embedded.forget(stage->service, &stage->name, &stage->err), -EBUSY);
	stage_stop(stage, 200);
	assert_int_equal(stage_processes(stage, NULL), 0);
	stage_close(stage);
}

static void X43_without_its_socket_the_remnants_are_found_too(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "daemon");
	stage_wait_file(stage, "ready");
	assert_int_equal(kill(stage_query(stage).group.tree, SIGKILL), 0);
	(void)stage_wait_for(stage, UNIT_FAILED);
	must(unlinkat(stage->pods_dir.fd, "demo.sock", 0));
	struct unit_state state = stage_query(stage);
	assert_int_equal(state.active, UNIT_ABSENT);
	assert_string_equal(state.group.pod_id, stage->id);
	stage_stop(stage, 100);
	assert_int_equal(stage_processes(stage, NULL), 0);
	stage_close(stage);
}

static void X43_a_start_ends_the_remnants_first(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "daemon");
	stage_wait_file(stage, "ready");
	assert_int_equal(kill(stage_query(stage).group.tree, SIGKILL), 0);
	(void)stage_wait_for(stage, UNIT_FAILED);
	stage_start(stage, "sleep");
	assert_int_equal(stage_query(stage).active, UNIT_ACTIVE);
	assert_int_equal(stage_processes(stage, NULL), 2);
	stage_stop(stage, 5000);
	stage_close(stage);
}

static void a_stopped_keeper_is_continued_and_stops(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "tree:5");
	stage_wait_file(stage, "ready");
	assert_int_equal(kill(stage_query(stage).group.tree, SIGSTOP), 0);
	struct unit_state state = stage_query(stage);
	assert_int_equal(state.active, UNIT_UNKNOWN);
	assert_string_equal(state.detail, "the keeper does not answer");
	assert_int_equal(service_embedded.forget(stage->service, &stage->name, &stage->err), -EBUSY);
	stage_stop(stage, 300);
	stage_close(stage);
}

/* Stopped again as soon as it is continued: the pod is ended over its head. */
static void a_keeper_that_hangs_is_ended_with_its_tree(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "tree:30");
	stage_wait_file(stage, "ready");
	pid_t keeper = stage_query(stage).group.tree, again = keeper;
	assert_int_equal(kill(keeper, SIGSTOP), 0);
	pid_t holder = fork();
	if (holder == 0) { /* stops it again, as often as it is continued */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (struct timespec nap = {.tv_nsec = 200000}; kill(again, SIGSTOP) == 0;)
			(void)nanosleep(&nap, NULL);
		_exit(0);
	}
	stage_stop(stage, 100);
	(void)kill(holder, SIGKILL);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	stage_close(stage);
}

static void X39_an_innocent_with_the_number_of_the_main_process(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	(void)setenv("TEST_RESTART_MS", "3600000", 1);
	stage_start(stage, "sleep");
	pid_t number = stage_query(stage).main_pid;
	assert_true(number > 1);
	assert_int_equal(kill(number, SIGKILL), 0);
	(void)stage_wait_for(stage, UNIT_RESTARTING);
	struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
	pid_t innocent = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
	if (innocent == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_int_equal(innocent, number);
	stage_stop(stage, 0);
	assert_int_equal(waitpid(innocent, NULL, WNOHANG), 0);
	assert_int_equal(kill(innocent, SIGKILL), 0);
	assert_int_equal(waitpid(innocent, NULL, 0), innocent);
	stage_close(stage);
}

static void read_shown(const struct stage *stage, char out[4096])
{
	char path[512];
	stage_path(stage, "shown", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	ssize_t n = read(fd, out, 4095);
	close(fd);
	assert_true(n > 0);
	out[n] = 0;
}

static void X42_X62_a_payload_inherits_a_clean_state(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	sigset_t all, before;
	char shown[4096], expected[600];
	stage_open(stage);
	stage_setenv_file(stage, "TEST_SHOW_FILE", "shown");
	(void)setenv("KIROCREW_POD_ROOT", "relative/elsewhere", 1);
	(void)setenv("KIROCREW_POD_ENV_DIR", "/nowhere", 1);
	(void)setenv(KEEPER_ENV_KEEPER, "1", 1); /* as if `up` ran inside another pod */
	(void)setenv(KEEPER_ENV_ID, "another", 1);
	int leak = open("/dev/null", O_RDONLY);
	(void)signal(SIGCHLD, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	int64_t begun = monotonic_ns();
	stage_start(stage, "show"); /* the payload keeps what it inherits for ever, and this returns all the same */
	assert_true(monotonic_ns() - begun < 15000000000);
	stage_wait_file(stage, "ready");
	read_shown(stage, shown);
	struct unit_state state = stage_query(stage);
	(void)snprintf(expected, sizeof expected, "fd 0\nfd 1\nfd 2\nsession 1\nkeeper %d\nid %s\ninvocation ", (int)state.group.tree, stage->id);
	if (strncmp(shown, expected, strlen(expected)) != 0)
		fail_msg("%s", shown);
	assert_non_null(strstr(shown, stage->plane.root));
	stage_stop(stage, 5000);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
	close(leak);
	(void)unsetenv("KIROCREW_POD_ROOT");
	(void)unsetenv("KIROCREW_POD_ENV_DIR");
	(void)unsetenv(KEEPER_ENV_KEEPER);
	(void)unsetenv(KEEPER_ENV_ID);
	stage_close(stage);
}

/* A caller of its own for each odd state; 0: the pod ran and was stopped, 10: the start was refused. */
static int start_and_stop(struct stage *stage)
{
	struct service *service = NULL;
	struct service_unit unit = {.name = &stage->name, .spec = &stage->spec};
	struct unit_state state;
	if (service_embedded.open(&stage->context, &service, NULL) < 0)
		return 1;
	int r = service_embedded.start(service, &unit, deadline_in_ms(20000), NULL);
	if (r < 0)
		return 10;
	struct rlimit enough;
	(void)getrlimit(RLIMIT_NOFILE, &enough);
	enough.rlim_cur = enough.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &enough);
	if (service_embedded.query(service, &stage->name, &state, NULL) < 0 || state.active != UNIT_ACTIVE)
		return 2;
	return service_embedded.stop(service, &stage->name, 5000, NULL, NULL) < 0 ? 3 : 0;
}

static void X61_callers_with_closed_descriptors(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	(void)setenv("TEST_PAYLOAD", "sleep", 1);
	for (int closed = 0; closed < 8; closed++) {
		(void)fflush(NULL);
		pid_t pid = fork();
		if (pid == 0) {
			for (int fd = 0; fd < 3; fd++)
				if (closed & (1 << fd))
					close(fd);
			_exit(start_and_stop(stage));
		}
		int status = -1;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		stage_assert_nothing_left(stage);
	}
	stage_close(stage);
}

/* The keeper inherits the limit: it makes its start with what it has, or says what it lacks and leaves nothing. */
static void X44_few_descriptors(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	unsigned refused = 0, ran = 0;
	stage_open(stage);
	(void)setenv("TEST_PAYLOAD", "sleep", 1);
	for (unsigned limit = 4; limit < 24; limit++) {
		(void)fflush(NULL);
		pid_t pid = fork();
		if (pid == 0) {
			struct rlimit few = {.rlim_cur = limit, .rlim_max = limit % 4 ? 64 : 40}; /* of 40 no keeper can live */
			(void)setrlimit(RLIMIT_NOFILE, &few);
			_exit(start_and_stop(stage));
		}
		int status = -1;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 10)
			fail_msg("limit %u: %d", limit, WEXITSTATUS(status));
		refused += WEXITSTATUS(status) == 10;
		ran += WEXITSTATUS(status) == 0;
		stage_assert_nothing_left(stage);
		assert_false(stage_has_socket(stage));
	}
	assert_true(refused > 0 && ran > 0);
	stage_close(stage);
}

static void a_keeper_that_dies_at_once_is_an_error(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	(void)setenv("TEST_KEEPER_DIES", "1", 1);
	int r = stage_try_start(stage, "sleep");
	(void)unsetenv("TEST_KEEPER_DIES");
	assert_int_equal(r, -ECHILD);
	assert_non_null(strstr(stage->err.text, "the keeper ended before it had made a start"));
	stage_close(stage);
}

static void a_program_that_is_missing_is_an_error(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	(void)snprintf(stage->program, sizeof stage->program, "/nowhere/kirocrew-pod");
	assert_int_equal(stage_try_start(stage, "sleep"), -ENOENT);
	assert_non_null(strstr(stage->err.text, "there is no such file"));
	stage_close(stage);
}

static void two_keepers_of_one_pod_are_not_to_be_had(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	char *argv[] = {(char *)"keeper_host", (char *)"_keep", (char *)"demo", NULL};
	stage_open(stage);
	stage_start(stage, "sleep");
	struct unit_state before = stage_query(stage);
	pid_t second = fork();
	if (second == 0) {
		(void)setenv("KIROCREW_POD_ENV_DIR", stage->plane.pods_dir, 1);
		(void)setenv("KIROCREW_POD_ROOT", stage->plane.root, 1);
		(void)close(2); /* what it says goes nowhere */
		(void)execv(stage->program, argv);
		_exit(99);
	}
	int status = -1;
	assert_int_equal(waitpid(second, &status, 0), second);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	struct unit_state after = stage_query(stage);
	assert_int_equal(after.group.tree, before.group.tree);
	assert_int_equal(after.main_pid, before.main_pid);
	assert_int_equal(after.active, UNIT_ACTIVE);
	stage_stop(stage, 5000);
	stage_close(stage);
}

/* Its name was taken away: it can still be stopped by signal, but it never brings a pod back that nobody can ask about. */
static void a_keeper_without_its_socket_does_not_restart(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "sleep");
	stage_wait_file(stage, "ready");
	struct unit_state state = stage_query(stage);
	must(unlinkat(stage->pods_dir.fd, "demo.sock", 0));
	assert_true(state.main_pid > 1);
	assert_int_equal(kill(state.main_pid, SIGKILL), 0);
	stage_assert_nothing_left(stage);
	assert_int_equal(stage_starts(stage), 1);
	stage_close(stage);
}

static void the_payload_writes_to_the_log(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	int ends[2];
	char text[200] = "";
	stage_open(stage);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(service_embedded.logs(stage->service, &stage->name, 10, false, ends[1], &stage->err), -ENOENT);
	stage_start(stage, "says");
	stage_wait_file(stage, "ready");
	must(service_embedded.logs(stage->service, &stage->name, 10, false, ends[1], &stage->err));
	close(ends[1]);
	assert_int_equal(read(ends[0], text, sizeof text - 1), 23);
	assert_string_equal(text, "hello from the payload\n");
	close(ends[0]);
	stage_stop(stage, 5000);
	stage_close(stage);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest as_root[] = {cmocka_unit_test(X39_an_innocent_with_the_number_of_the_main_process)};
	if (asked_for(argc, argv, "as-root"))
		return cmocka_run_group_tests(as_root, NULL, NULL);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X43_a_killed_keeper_is_shown_and_its_remnants_are_ended),
		cmocka_unit_test(X43_without_its_socket_the_remnants_are_found_too),
		cmocka_unit_test(X43_a_start_ends_the_remnants_first),
		cmocka_unit_test(a_stopped_keeper_is_continued_and_stops),
		cmocka_unit_test(a_keeper_that_hangs_is_ended_with_its_tree),
		cmocka_unit_test(X42_X62_a_payload_inherits_a_clean_state),
		cmocka_unit_test(X61_callers_with_closed_descriptors),
		cmocka_unit_test(X44_few_descriptors),
		cmocka_unit_test(a_keeper_that_dies_at_once_is_an_error),
		cmocka_unit_test(a_program_that_is_missing_is_an_error),
		cmocka_unit_test(two_keepers_of_one_pod_are_not_to_be_had),
		cmocka_unit_test(a_keeper_without_its_socket_does_not_restart),
		cmocka_unit_test(the_payload_writes_to_the_log),
	};
	return stage_main(tests);
}
