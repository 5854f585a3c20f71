/* Whatever the payload does, a stop ends with nothing of it left; stage_close proves that from /proc. */
#include <time.h>

#include "keeper_stage.h"

/* A process with a shadow memory is ten times as heavy. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif
#define MANY(count) (SANITIZED ? (count) / 10 : (count))

static int64_t stop_takes_ms(struct stage *stage, int64_t grace_ms)
{
	int64_t before = monotonic_ns();
	stage_stop(stage, grace_ms);
	return (monotonic_ns() - before) / 1000000;
}

static int64_t start_and_stop(const char *payload, int64_t grace_ms, unsigned at_least);

static int64_t start_and_stop_many(const char *kind, unsigned count, int64_t grace_ms, unsigned at_least)
{
	char payload[32];
	(void)snprintf(payload, sizeof payload, "%s:%u", kind, MANY(count));
	return start_and_stop(payload, grace_ms, at_least > 1 ? MANY(at_least) : at_least);
}

/* Starts the payload, waits until it is set up, stops it. */
static int64_t start_and_stop(const char *payload, int64_t grace_ms, unsigned at_least)
{
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, payload);
	stage_wait_file(stage, "ready");
	struct deadline until = deadline_in_ms(20000);
	struct backoff backoff = {0};
	while (stage_processes(stage, NULL) < at_least + 1) { /* and the keeper */
		assert_false(deadline_passed(until));
		backoff_sleep(&backoff, until);
	}
	int64_t ms = stop_takes_ms(stage, grace_ms);
	stage_close(stage);
	return ms;
}

static void L01_a_writer_that_ignores_TERM_does_not_come_back(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	char home[512];
	stage_open(stage);
	stage_path(stage, "home", home);
	(void)setenv("TEST_HOME", home, 1);
	stage_start(stage, "writer");
	stage_wait_file(stage, "ready");
	stage_wait_file(stage, "home/log");
	stage_stop(stage, 300);
	assert_int_equal(stage_processes(stage, NULL), 0);
	AUTO_PIN struct pin dir = PIN_NONE;
	struct tree_left left;
	must(pin_open(stage->dir, &dir, &stage->err));
	must(tree_remove(&dir, "home", deadline_in_ms(5000), &left, &stage->err));
	struct timespec later = {.tv_nsec = 300000000}; /* six of its periods */
	(void)nanosleep(&later, NULL);
	assert_int_equal(access(home, F_OK), -1);
	stage_close(stage);
}

static void L06_escalation_follows_the_group_not_the_leader(void **unused)
{
	(void)unused;
	int64_t ms = start_and_stop("leader", 1000, 2);
	if (ms < 950 || ms > 8000)
		fail_msg("the stop took %d ms", (int)ms);
}

static void L06_nothing_is_escalated_when_all_obey(void **unused)
{
	(void)unused;
	int64_t ms = start_and_stop("sleep", 15000, 1);
	if (ms > 8000)
		fail_msg("the stop took %d ms", (int)ms);
}

static void L07_a_daemon_in_a_session_of_its_own_is_gone(void **unused)
{
	(void)unused;
	(void)start_and_stop("daemon", 300, 2);
}

static void X37_ignores_all_signals(void **unused)
{
	(void)unused;
	(void)start_and_stop("stubborn", 200, 1);
}

/* The grace is enough for it: it is continued so that it can end. */
static void X37_stops_itself(void **unused)
{
	(void)unused;
	assert_true(start_and_stop("stops-itself", 10000, 1) < 8000);
}

static void X37_tree_of_500(void **unused)
{
	(void)unused;
	(void)start_and_stop_many("tree", 500, 300, 500);
}

static void X37_fork_bomb_with_a_limit_of_2000(void **unused)
{
	(void)unused;
	(void)start_and_stop_many("bomb", 2000, 100, 500);
}

static void X37_respawner(void **unused)
{
	(void)unused;
	(void)start_and_stop("respawner", 100, 2);
}

static void X37_a_thousand_zombies(void **unused)
{
	(void)unused;
	(void)start_and_stop_many("zombies", 1000, 5000, 1);
}

static void X37_frozen_group(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "stubborn");
	stage_wait_file(stage, "ready");
	struct unit_state state = stage_query(stage);
	if (*state.group.cgroup)
		must(cgroup_write(state.group.cgroup, "cgroup.freeze", "1"));
	else
		assert_int_equal(kill(state.main_pid, SIGSTOP), 0); /* without a group this is as near as it gets */
	stage_stop(stage, 100);
	stage_close(stage);
}

/* kill -9 of the main process of a tree that ignores TERM: swept, restarted, stopped. */
static void X37_the_rest_of_a_killed_tree_is_swept(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "tree:40");
	stage_wait_file(stage, "ready");
	struct unit_state state = stage_query(stage);
	assert_true(state.main_pid > 1);
	stage_unlink(stage, "ready");
	assert_int_equal(kill(state.main_pid, SIGKILL), 0);
	stage_wait_file(stage, "ready");
	struct process_list members = {0};
	state = stage_wait_for(stage, UNIT_ACTIVE);
	must(group_members(&state.group, &members, &stage->err));
	if (members.n < 40 || members.n > 48) /* 40 and the grandchildren: one tree, not two */
		fail_msg("%zu members", members.n);
	process_list_free(&members);
	stage_stop(stage, 100);
	stage_close(stage);
}

static void SIGTERM_to_the_keeper_ends_the_pod(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "tree:4");
	stage_wait_file(stage, "ready");
	assert_int_equal(kill(stage_query(stage).group.tree, SIGTERM), 0);
	(void)stage_wait_for(stage, UNIT_ABSENT);
	stage_close(stage);
}

static void two_stops_and_the_shorter_grace_wins(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "stubborn");
	stage_wait_file(stage, "ready");
	pid_t other = fork();
	if (other == 0) {
		struct service *service;
		if (service_embedded.open(&stage->context, &service, NULL) < 0)
			_exit(1);
		_exit(service_embedded.stop(service, &stage->name, 60000, NULL, NULL) == 0 ? 0 : 2);
	}
	(void)stage_wait_for(stage, UNIT_STOPPING);
	assert_true(stop_takes_ms(stage, 100) < 20000);
	int status = -1;
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	stage_close(stage);
}

static void a_pod_that_is_not_there_is_stopped(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_stop(stage, 1000);
	must(service_embedded.forget(stage->service, &stage->name, &stage->err));
	stage_close(stage);
}

static void a_pod_that_runs_is_not_forgotten(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "sleep");
	assert_int_equal(service_embedded.forget(stage->service, &stage->name, &stage->err), -EBUSY);
	assert_int_equal(stage_query(stage).active, UNIT_ACTIVE);
	stage_stop(stage, 5000);
	stage_close(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L01_a_writer_that_ignores_TERM_does_not_come_back),
		cmocka_unit_test(L06_escalation_follows_the_group_not_the_leader),
		cmocka_unit_test(L06_nothing_is_escalated_when_all_obey),
		cmocka_unit_test(L07_a_daemon_in_a_session_of_its_own_is_gone),
		cmocka_unit_test(X37_ignores_all_signals),
		cmocka_unit_test(X37_stops_itself),
		cmocka_unit_test(X37_tree_of_500),
		cmocka_unit_test(X37_fork_bomb_with_a_limit_of_2000),
		cmocka_unit_test(X37_respawner),
		cmocka_unit_test(X37_a_thousand_zombies),
		cmocka_unit_test(X37_frozen_group),
		cmocka_unit_test(X37_the_rest_of_a_killed_tree_is_swept),
		cmocka_unit_test(SIGTERM_to_the_keeper_ends_the_pod),
		cmocka_unit_test(two_stops_and_the_shorter_grace_wins),
		cmocka_unit_test(a_pod_that_is_not_there_is_stopped),
		cmocka_unit_test(a_pod_that_runs_is_not_forgotten),
	};
	return stage_main(tests);
}
