/* A keeper that is made before it is needed: nobody sees it, and without its maker's word it ends and leaves nothing. */
#include "keeper_stage.h"

static void prepare(struct stage *stage)
{
	service_embedded.prepare(stage->service, &stage->name);
	assert_int_equal(stage_processes(stage, NULL), 1);
}

static pid_t open_with_one_that_waits(struct stage *stage)
{
	pid_t waiting = 0;
	stage_open(stage);
	prepare(stage);
	assert_int_equal(stage_processes(stage, &waiting), 1);
	return waiting;
}

static void close_when_another_runs(struct stage *stage, pid_t waiting)
{
	assert_int_equal(stage_query(stage).active, UNIT_ACTIVE);
	assert_int_not_equal(stage_query(stage).group.tree, waiting);
	stage_stop(stage, 5000);
	stage_close(stage);
}

static void assert_unseen(struct stage *stage)
{
	char artifacts[512];
	stage_path(stage, "artifacts", artifacts);
	assert_false(stage_has_socket(stage));
	assert_int_equal(access(artifacts, F_OK), -1);
	assert_int_equal(stage_query(stage).active, UNIT_ABSENT);
}

static void the_start_takes_the_one_that_waits(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	pid_t waiting = open_with_one_that_waits(stage);
	stage_start(stage, "sleep");
	assert_int_equal(stage_query(stage).group.tree, waiting);
	stage_stop(stage, 5000);
	stage_close(stage);
}

static void it_is_unseen_and_ends_with_the_handle(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	prepare(stage);
	assert_unseen(stage);
	service_embedded.close(stage->service);
	assert_int_equal(stage_processes(stage, NULL), 0);
	must(service_embedded.open(&stage->context, &stage->service, &stage->err));
	assert_unseen(stage);
	stage_close(stage);
}

static void it_ends_with_a_maker_that_is_killed(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	pid_t maker = fork();
	if (maker == 0) {
		service_embedded.prepare(stage->service, &stage->name);
		(void)raise(SIGKILL);
	}
	int status = 0;
	assert_int_equal(waitpid(maker, &status, 0), maker);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	stage_assert_nothing_left(stage);
	assert_unseen(stage);
	stage_close(stage);
}

static void another_is_made_where_it_was_killed(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	pid_t waiting = open_with_one_that_waits(stage);
	assert_int_equal(kill(waiting, SIGKILL), 0);
	stage_assert_nothing_left(stage);
	stage_start(stage, "sleep");
	close_when_another_runs(stage, waiting);
}

/* It has the word and cannot hear it. */
static void another_is_made_where_it_was_stopped_and_then_killed(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	pid_t waiting = open_with_one_that_waits(stage);
	assert_int_equal(kill(waiting, SIGSTOP), 0);
	pid_t killer = fork();
	if (killer == 0) {
		struct backoff backoff = {.ms = 50};
		for (int i = 0; i < 4; i++)
			backoff_sleep(&backoff, DEADLINE_NEVER);
		(void)kill(waiting, SIGKILL);
		_exit(0);
	}
	stage_start(stage, "sleep");
	assert_int_equal(waitpid(killer, NULL, 0), killer);
	close_when_another_runs(stage, waiting);
}

static void without_a_record_it_makes_no_log(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	prepare(stage);
	must(record_delete(&stage->pods_dir, &stage->name, &stage->err));
	assert_int_equal(stage_try_start(stage, "sleep"), -ENOENT);
	assert_non_null(strstr(stage->err.text, "it has no record"));
	stage_assert_nothing_left(stage);
	assert_unseen(stage);
	stage_close(stage);
}

static void one_that_was_not_needed_ends_with_the_start(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	stage_start(stage, "sleep");
	stage_wait_file(stage, "ready");
	unsigned before = stage_processes(stage, NULL);
	service_embedded.prepare(stage->service, &stage->name);
	assert_int_equal(stage_processes(stage, NULL), before + 1);
	stage_start(stage, "sleep");
	assert_int_equal(stage_processes(stage, NULL), before);
	stage_stop(stage, 5000);
	stage_close(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_start_takes_the_one_that_waits),
		cmocka_unit_test(it_is_unseen_and_ends_with_the_handle),
		cmocka_unit_test(it_ends_with_a_maker_that_is_killed),
		cmocka_unit_test(another_is_made_where_it_was_killed),
		cmocka_unit_test(another_is_made_where_it_was_stopped_and_then_killed),
		cmocka_unit_test(without_a_record_it_makes_no_log),
		cmocka_unit_test(one_that_was_not_needed_ends_with_the_start),
	};
	return stage_main(tests);
}
