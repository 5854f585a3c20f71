/* Things that two threads share. */
#include "fs_fixture.h"

#include <stdatomic.h>

#include "fsops/crew.h"

#define MANY 1000

struct shared {
	atomic_int done[MANY];
	size_t fails_from;
};

static int do_one(void *context, size_t i, struct err *err)
{
	struct shared *shared = context;
	atomic_fetch_add(&shared->done[i], 1);
	return i >= shared->fails_from ? err_set(err, -EIO, "crew", NULL, "number %zu", i) : 0;
}

static int do_all(struct shared *shared, size_t count, struct err *err)
{
	struct crew crew;
	crew_begin(&crew, count, do_one, shared);
	return crew_end(&crew, err);
}

static bool each_once(const struct shared *shared, size_t count)
{
	for (size_t i = 0; i < MANY; i++)
		if (atomic_load(&shared->done[i]) != (i < count))
			return false;
	return true;
}

static void each_is_done_once(void **state)
{
	(void)state;
	static const size_t counts[] = {0, 1, 7, 31, 32, 33, MANY};
	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
		struct shared shared = {.fails_from = MANY};
		assert_int_equal(do_all(&shared, counts[k], NULL), 0);
		assert_true(each_once(&shared, counts[k]));
	}
}

static void the_first_failure_is_told_and_all_before_it_are_done(void **state)
{
	(void)state;
	for (int turn = 0; turn < 50; turn++) {
		struct shared shared = {.fails_from = 500};
		struct err err = {0};
		assert_int_equal(do_all(&shared, MANY, &err), -EIO);
		assert_string_equal(err.text, "number 500");
		for (size_t i = 0; i <= 500; i++)
			assert_int_equal(atomic_load(&shared.done[i]), 1);
	}
}

static void without_a_thread(struct fixture *f)
{
	(void)f;
	struct shared shared = {.fails_from = MANY};
	CHECK(deny_calls(SYS_clone, SYS_clone3, EAGAIN));
	CHECK(do_all(&shared, MANY, NULL) == 0);
	CHECK(each_once(&shared, MANY));
}

static void one_does_it_alone_where_no_thread_can_be_had(void **state)
{
	assert_int_equal(in_child(without_a_thread, *state), 0);
}

static int run(const char *title)
{
	const struct CMUnitTest tests[] = {
		FS_TEST(each_is_done_once),
		FS_TEST(the_first_failure_is_told_and_all_before_it_are_done),
		FS_TEST(one_does_it_alone_where_no_thread_can_be_had),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

int main(void)
{
	return run_on_every_host(run);
}
