#include <time.h>

#include "fs_fixture.h"

static int64_t ns(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* As the file system stamps: what this returns is not later than the stamp of what is changed from now on. */
static int64_t now_on(const struct fixture *f)
{
	struct stat st = {0};
	put_file(f->base.fd, "clock", "x");
	assert_int_equal(fstatat(f->base.fd, "clock", &st, 0), 0);
	return ns(st.st_ctim);
}

static void let_the_clock_tick(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static void put_tree(const struct fixture *f)
{
	put_dir(f->base.fd, "home");
	put_dir(f->base.fd, "home/a");
	put_dir(f->base.fd, "home/a/b");
	put_file(f->base.fd, "home/a/b/file", "old");
	put_victim(f->base.fd);
	assert_int_equal(symlinkat("../../victim", f->base.fd, "home/a/link"), 0);
	let_the_clock_tick();
}

static int64_t last(const struct fixture *f)
{
	int64_t changed = -1;
	assert_int_equal(tree_last_change(&f->base, "home", 1000, &changed, NULL), 0);
	return changed;
}

static void what_is_written_in_place_is_seen(void **state)
{
	struct fixture *f = *state;
	put_tree(f);
	int64_t before = now_on(f);
	assert_true(last(f) < before);
	put_file(f->base.fd, "home/a/b/file", "new");
	assert_true(last(f) >= before);
}

static void a_name_that_came_and_went_is_seen(void **state)
{
	struct fixture *f = *state;
	put_tree(f);
	int64_t before = now_on(f);
	put_file(f->base.fd, "home/a/b/brief", "x");
	assert_int_equal(unlinkat(f->base.fd, "home/a/b/brief", 0), 0);
	assert_true(last(f) >= before);
}

static void moving_the_whole_is_no_change(void **state)
{
	struct fixture *f = *state;
	put_tree(f);
	int64_t before = now_on(f), changed = -1;
	assert_int_equal(renameat(f->base.fd, "home", f->base.fd, "away"), 0);
	assert_int_equal(tree_last_change(&f->base, "away", 1000, &changed, NULL), 0);
	assert_true(changed < before);
}

static void links_are_not_followed(void **state)
{
	struct fixture *f = *state;
	put_tree(f);
	int64_t before = now_on(f);
	put_file(f->base.fd, "victim/precious", "precious");
	assert_true(last(f) < before);
}

static void more_than_asked_for_is_refused(void **state)
{
	struct fixture *f = *state;
	put_tree(f);
	int64_t changed = -1;
	assert_int_equal(tree_last_change(&f->base, "home", 5, &changed, NULL), 0);
	changed = -1;
	assert_int_equal(tree_last_change(&f->base, "home", 4, &changed, NULL), -E2BIG);
	assert_int_equal(changed, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FS_TEST(what_is_written_in_place_is_seen), FS_TEST(a_name_that_came_and_went_is_seen), FS_TEST(moving_the_whole_is_no_change),
		FS_TEST(links_are_not_followed),	   FS_TEST(more_than_asked_for_is_refused),
	};
	return cmocka_run_group_tests_name("the last change of a tree", tests, NULL, NULL);
}
