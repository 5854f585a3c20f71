#include "keeper_stage.h"

static void starts_answers_and_stops(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	assert_int_equal(stage_query(stage).active, UNIT_ABSENT);
	stage_start(stage, "sleep");
	struct unit_state state = stage_query(stage);
	assert_int_equal(state.active, UNIT_ACTIVE);
	assert_true(state.main_pid > 1);
	assert_true(state.group.tree > 1);
	assert_int_not_equal(state.group.tree, state.main_pid);
	assert_string_equal(state.group.pod_id, stage->id);
	assert_true(state.since_usec > 0);
	struct process_list members = {0};
	must(group_members(&state.group, &members, &stage->err));
	assert_int_equal(members.n, 1);
	assert_int_equal(members.v[0].pid, state.main_pid);
	process_list_free(&members);
	stage_stop(stage, 5000);
	stage_close(stage);
}

static void uses_a_control_group_where_it_can(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	char expected[1200], mount[512];
	stage_open(stage);
	stage_start(stage, "sleep");
	struct unit_state state = stage_query(stage);
	bool writable = cgroup2_mount(mount, sizeof mount, NULL) == 0 && access(mount, W_OK) == 0;
	if (writable) {
		char of[600] = "", leaf[600];
		assert_true(stage_cgroup(stage, expected));
		assert_string_equal(state.group.cgroup, expected);
		assert_int_equal(access(expected, F_OK), 0);
		must(cgroup2_of(state.main_pid, of, sizeof of, &stage->err));
		(void)snprintf(leaf, sizeof leaf, "%s", strrchr(expected, '/'));
		assert_string_equal(strrchr(of, '/'), leaf);
		must(cgroup2_of(state.group.tree, of, sizeof of, &stage->err));
		assert_string_not_equal(strrchr(of, '/'), leaf); /* the keeper stays outside */
	} else {
		assert_string_equal(state.group.cgroup, "");
	}
	stage_stop(stage, 5000);
	stage_close(stage);
}

struct ending {
	const char *payload;
	enum unit_active active;
	enum unit_end end;
	int status;
	unsigned starts;
};

static void check_ending(const struct ending *ending)
{
	struct stage storage, *stage = &storage;
	stage_open(stage);
	(void)setenv("TEST_STARTS", "3", 1);
	(void)setenv("TEST_RESTART_MS", "5", 1);
	stage_start(stage, ending->payload);
	struct unit_state state = stage_wait_for(stage, ending->active);
	if (state.end != ending->end || state.status != ending->status || stage_starts(stage) != ending->starts)
		fail_msg("%s: end %d status %d after %u starts (%s)", ending->payload, (int)state.end, state.status, stage_starts(stage),
			 state.detail);
	assert_int_equal(state.main_pid, 0);
	must(service_embedded.forget(stage->service, &stage->name, &stage->err));
	assert_int_equal(stage_query(stage).active, UNIT_ABSENT);
	stage_close(stage);
}

static void X38_ends_without_restart(void **unused)
{
	(void)unused;
	static const struct ending endings[] = {
		{"exit:0", UNIT_INACTIVE, UNIT_END_EXITED, 0, 1},    {"exit:3", UNIT_FAILED, UNIT_END_EXITED, 3, 1},
		{"exit:70", UNIT_FAILED, UNIT_END_EXITED, 70, 1},    {"exit:78", UNIT_FAILED, UNIT_END_EXITED, 78, 1},
		{"signal:15", UNIT_INACTIVE, UNIT_END_SIGNALED, 15, 1},
	};
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		check_ending(&endings[i]);
}

static void X38_ends_with_restart_until_the_limit(void **unused)
{
	(void)unused;
	static const char *const payloads[] = {"exit:1",  "exit:64", "exit:69", "exit:71",  "exit:75",  "exit:77", "exit:126",
					       "exit:127", "exit:200", "exit:203", "exit:243", "signal:6", "signal:9", "signal:11"};
	for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
		bool signaled = strncmp(payloads[i], "signal", 6) == 0;
		struct ending ending = {payloads[i], UNIT_FAILED, UNIT_END_START_LIMIT, atoi(payloads[i] + (signaled ? 7 : 5)), 3};
		check_ending(&ending);
	}
}

static void kill_9_of_the_main_process_restarts_it(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "tree:6");
	stage_wait_file(stage, "ready");
	struct unit_state before = stage_query(stage), after = before;
	stage_unlink(stage, "ready");
	assert_int_equal(kill(before.main_pid, SIGKILL), 0);
	stage_wait_file(stage, "ready");
	while (after.active != UNIT_ACTIVE || after.main_pid == before.main_pid)
		must(service_embedded.wait(stage->service, &stage->name, deadline_in_ms(10000), &after, &stage->err));
	assert_int_equal(after.restarts, 1);
	assert_int_equal(after.end, UNIT_END_SIGNALED);
	assert_int_equal(after.status, SIGKILL);
	assert_int_equal(after.group.tree, before.group.tree);
	assert_true(after.since_usec > before.since_usec);
	assert_int_equal(stage_starts(stage), 2);
	stage_stop(stage, 500);
	stage_close(stage);
}

/* Rest of a dead main process is ended before the next start, TERM or no TERM. */
static void a_restart_finds_nothing_of_the_one_before(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	(void)setenv("TEST_STARTS", "2", 1);
	stage_start(stage, "left:1");
	struct unit_state state = stage_wait_for(stage, UNIT_FAILED);
	assert_int_equal(state.end, UNIT_END_START_LIMIT);
	assert_int_equal(stage_starts(stage), 2);
	struct process_list members = {0};
	must(group_members(&state.group, &members, &stage->err));
	assert_int_equal(members.n, 0);
	stage_stop(stage, 0);
	stage_close(stage);
}

static void a_start_after_the_limit_begins_anew(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	(void)setenv("TEST_STARTS", "2", 1);
	(void)setenv("TEST_RESTART_MS", "5", 1);
	stage_start(stage, "exit:1");
	struct unit_state failed = stage_wait_for(stage, UNIT_FAILED);
	assert_int_equal(stage_starts(stage), 2);
	stage_start(stage, "ignored: the keeper has its environment already");
	assert_int_equal(stage_wait_for(stage, UNIT_FAILED).end, UNIT_END_START_LIMIT);
	while (stage_starts(stage) < 4) {
		struct unit_state state;
		must(service_embedded.wait(stage->service, &stage->name, deadline_in_ms(500), &state, &stage->err));
	}
	assert_int_equal(stage_wait_for(stage, UNIT_FAILED).group.tree, failed.group.tree);
	assert_int_equal(stage_starts(stage), 4);
	stage_stop(stage, 0);
	stage_close(stage);
}

static void a_start_of_a_running_pod_changes_nothing(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "sleep");
	pid_t main_pid = stage_query(stage).main_pid;
	stage_start(stage, "sleep");
	assert_int_equal(stage_query(stage).main_pid, main_pid);
	assert_int_equal(stage_query(stage).restarts, 0);
	stage_stop(stage, 5000);
	stage_close(stage);
}

/* A change between the start and the first wait is not lost. */
static void wait_tells_what_happened_since_the_caller_knew(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	struct unit_state state;
	stage_open(stage);
	stage_start(stage, "exit:78");
	must(service_embedded.wait(stage->service, &stage->name, deadline_in_ms(10000), &state, &stage->err));
	assert_int_not_equal(state.active, UNIT_ACTIVE);
	state = stage_wait_for(stage, UNIT_FAILED);
	int64_t before = monotonic_ns();
	must(service_embedded.wait(stage->service, &stage->name, deadline_in_ms(120), &state, &stage->err));
	assert_int_equal(state.active, UNIT_FAILED);
	assert_true(monotonic_ns() - before >= 119000000);
	stage_stop(stage, 0);
	must(service_embedded.wait(stage->service, &stage->name, deadline_in_ms(50), &state, &stage->err));
	assert_int_equal(state.active, UNIT_ABSENT);
	stage_close(stage);
}

static void waiting_for_a_restart_can_be_stopped(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	(void)setenv("TEST_RESTART_MS", "3600000", 1);
	stage_start(stage, "exit:1");
	struct unit_state state = stage_wait_for(stage, UNIT_RESTARTING);
	assert_int_equal(state.status, 1);
	int64_t before = monotonic_ns();
	stage_stop(stage, 15000);
	assert_true(monotonic_ns() - before < 3000000000);
	assert_int_equal(stage_starts(stage), 1);
	stage_close(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_answers_and_stops),
		cmocka_unit_test(uses_a_control_group_where_it_can),
		cmocka_unit_test(X38_ends_without_restart),
		cmocka_unit_test(X38_ends_with_restart_until_the_limit),
		cmocka_unit_test(kill_9_of_the_main_process_restarts_it),
		cmocka_unit_test(a_restart_finds_nothing_of_the_one_before),
		cmocka_unit_test(a_start_after_the_limit_begins_anew),
		cmocka_unit_test(a_start_of_a_running_pod_changes_nothing),
		cmocka_unit_test(wait_tells_what_happened_since_the_caller_knew),
		cmocka_unit_test(waiting_for_a_restart_can_be_stopped),
	};
	return stage_main(tests);
}
