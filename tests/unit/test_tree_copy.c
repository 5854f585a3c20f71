#include "fs_fixture.h"

#include <sys/resource.h>

static int copy(const struct fixture *f, const char *skip, struct err *err)
{
	AUTO_PIN struct pin from = PIN_NONE, to = PIN_NONE;
	int r = pin_child(&f->base, "from", &from, err);
	if (!r)
		r = pin_child(&f->base, "to", &to, err);
	return r < 0 ? r : tree_copy(&from, &to, skip, err);
}

static void put_both(const struct fixture *f)
{
	put_dir(f->base.fd, "from");
	put_dir(f->base.fd, "to");
	put_dir(f->base.fd, "from/sub");
	put_dir(f->base.fd, "from/sub/empty");
	put_file(f->base.fd, "from/file", "one");
	put_file(f->base.fd, "from/program", "two");
	put_file(f->base.fd, "from/sub/file", "three");
	assert_int_equal(fchmodat(f->base.fd, "from/program", 0755, 0), 0);
	assert_int_equal(fchmodat(f->base.fd, "from/sub", 0755, 0), 0);
}

static void a_tree_is_copied_with_modes_of_its_own(void **state)
{
	struct fixture *f = *state;
	put_both(f);
	mode_t before = umask(0777);
	int r = copy(f, NULL, NULL);
	(void)umask(before);
	assert_int_equal(r, 0);
	assert_true(holds(f->base.fd, "to/file", "one"));
	assert_true(holds(f->base.fd, "to/program", "two"));
	assert_true(holds(f->base.fd, "to/sub/file", "three"));
	assert_int_equal(mode_of(f->base.fd, "to/file"), 0600);
	assert_int_equal(mode_of(f->base.fd, "to/program"), 0700);
	assert_int_equal(mode_of(f->base.fd, "to/sub"), 0700);
	assert_int_equal(mode_of(f->base.fd, "to/sub/empty"), 0700);
}

/* More than two threads take at once, in more directories than are held open, one of them with more files than a batch. */
static void put_many(const struct fixture *f)
{
	char name[64];
	put_dir(f->base.fd, "from");
	put_dir(f->base.fd, "to");
	for (int d = 0; d < 70; d++) {
		snprintf(name, sizeof name, "from/d%02d", d);
		put_dir(f->base.fd, name);
		for (int i = 0; i < (d == 9 ? 1500 : 5); i++) {
			snprintf(name, sizeof name, "from/d%02d/f%d", d, i);
			put_file(f->base.fd, name, name);
		}
	}
}

static unsigned many_are_there(const struct fixture *f)
{
	char name[64], text[64];
	unsigned there = 0;
	for (int d = 0; d < 70; d++)
		for (int i = 0; i < (d == 9 ? 1500 : 5); i++) {
			snprintf(name, sizeof name, "to/d%02d/f%d", d, i);
			snprintf(text, sizeof text, "from/d%02d/f%d", d, i);
			there += exists(f->base.fd, name) && holds(f->base.fd, name, text);
		}
	return there;
}

static void many_files_are_copied_by_two_threads(void **state)
{
	struct fixture *f = *state;
	put_many(f);
	assert_int_equal(copy(f, NULL, NULL), 0);
	assert_int_equal(many_are_there(f), 69 * 5 + 1500);
}

static void copy_many_with_few_descriptors(struct fixture *f)
{
	struct rlimit files = {40, 40};
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(copy(f, NULL, NULL) == 0);
}

static void many_files_need_few_descriptors(void **state)
{
	struct fixture *f = *state;
	put_many(f);
	assert_int_equal(in_child(copy_many_with_few_descriptors, f), 0);
	assert_int_equal(many_are_there(f), 69 * 5 + 1500);
}

/* Whoever of the two meets it. */
static void one_of_many_that_is_there_already_is_told_and_kept(void **state)
{
	struct fixture *f = *state;
	struct err err = {0};
	put_many(f);
	put_dir(f->base.fd, "from/z");
	put_file(f->base.fd, "from/z/last", "new");
	put_file(f->base.fd, "to/single", "old");
	put_file(f->base.fd, "from/single", "new");
	assert_int_equal(copy(f, NULL, &err), -EEXIST);
	assert_string_equal(err.subject, "single");
	assert_true(holds(f->base.fd, "to/single", "old"));
}

static void one_name_at_the_top_is_left_out(void **state)
{
	struct fixture *f = *state;
	put_both(f);
	put_dir(f->base.fd, "from/sub/file2");
	assert_int_equal(copy(f, "file", NULL), 0);
	assert_false(exists(f->base.fd, "to/file"));
	assert_true(exists(f->base.fd, "to/sub/file"));
}

static void an_existing_name_is_never_touched(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {"to/file", "to/sub"};
	for (size_t i = 0; i < COUNT(names); i++) {
		put_both(f);
		if (i == 0) {
			put_file(f->base.fd, names[i], "old");
		} else {
			put_dir(f->base.fd, names[i]);
			assert_int_equal(fchmodat(f->base.fd, names[i], 0711, 0), 0);
		}
		assert_int_equal(copy(f, NULL, NULL), -EEXIST);
		if (i == 0)
			assert_true(holds(f->base.fd, names[i], "old"));
		else
			assert_int_equal(mode_of(f->base.fd, names[i]), 0711);
		assert_int_equal(tree_remove(&f->base, "from", DEADLINE_NEVER, NULL, NULL), 0);
		assert_int_equal(tree_remove(&f->base, "to", DEADLINE_NEVER, NULL, NULL), 0);
	}
}

static void other_types_are_refused_by_name(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	for (int i = 0; i < 3; i++) {
		put_dir(f->base.fd, "from");
		put_dir(f->base.fd, "to");
		if (i < 2)
			assert_int_equal(symlinkat(i ? "../victim/precious" : "../victim", f->base.fd, "from/odd"), 0);
		else
			assert_int_equal(mkfifoat(f->base.fd, "from/odd", 0600), 0);
		struct err err = {0};
		assert_int_equal(copy(f, NULL, &err), -EINVAL);
		assert_string_equal(err.subject, "odd");
		assert_non_null(strstr(err.text, i < 2 ? "a link" : "a FIFO"));
		assert_false(exists(f->base.fd, "to/odd"));
		assert_int_equal(tree_remove(&f->base, "from", DEADLINE_NEVER, NULL, NULL), 0);
		assert_int_equal(tree_remove(&f->base, "to", DEADLINE_NEVER, NULL, NULL), 0);
	}
	assert_true(victim_is_whole(f->base.fd));
}

static void a_target_inside_of_the_source_is_refused(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "from");
	put_dir(f->base.fd, "from/sub");
	AUTO_PIN struct pin from = PIN_NONE, to = PIN_NONE;
	assert_int_equal(pin_child(&f->base, "from", &from, NULL), 0);
	assert_int_equal(pin_child(&from, "sub", &to, NULL), 0);
	assert_int_equal(tree_copy(&from, &to, NULL, NULL), -ELOOP);
	assert_int_equal(tree_copy(&from, &from, NULL, NULL), -ELOOP);
	assert_false(exists(to.fd, "sub"));
}

static void put_levels(const struct fixture *f, unsigned levels, bool with_files)
{
	put_dir(f->base.fd, "from");
	put_dir(f->base.fd, "to");
	int fd = openat(f->base.fd, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < levels; i++) {
		if (with_files)
			put_file(fd, "before", "x");
		put_dir(fd, "d");
		if (with_files)
			put_file(fd, "e", "x");
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	assert_true(fd >= 0);
	close(fd);
}

static void copy_deep(struct fixture *f)
{
	struct rlimit files = {32, 32};
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(copy(f, NULL, NULL) == 0);
}

static void depth_needs_no_descriptors(void **state)
{
	struct fixture *f = *state;
	put_levels(f, 300, true);
	assert_int_equal(in_child(copy_deep, f), 0);
	AUTO_PIN struct pin at = PIN_NONE;
	assert_int_equal(pin_child(&f->base, "to", &at, NULL), 0);
	for (int i = 0; i < 300; i++) {
		struct pin next = PIN_NONE;
		assert_true(holds(at.fd, "before", "x") && holds(at.fd, "e", "x"));
		assert_int_equal(pin_child(&at, "d", &next, NULL), 0);
		pin_close(&at);
		at = next;
	}
}

static void more_than_4095_levels_are_refused(void **state)
{
	struct fixture *f = *state;
	put_levels(f, 4100, false);
	struct err err = {0};
	assert_int_equal(copy(f, NULL, &err), -ELOOP);
	assert_non_null(strstr(err.text, "4095 levels"));
}

static void large_and_sparse_files_are_exact(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "from");
	put_dir(f->base.fd, "to");
	enum { SIZE = 3 * 1024 * 1024 + 7 };
	AUTO_FREE char *bytes = malloc(SIZE), *got = malloc(SIZE + 1);
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = i > 100000 && i < 2000000 ? '\0' : (char)(i * 31 >> 3);
	AUTO_CLOSE int fd = openat(f->base.fd, "from/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, bytes, SIZE), SIZE);
	assert_int_equal(copy(f, NULL, NULL), 0);
	AUTO_CLOSE int copied = openat(f->base.fd, "to/big", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(copied, got, SIZE + 1), SIZE);
	assert_memory_equal(got, bytes, SIZE);
}

static void copy_without_help(struct fixture *f)
{
	CHECK(deny_calls(SYS_copy_file_range, SYS_ioctl, EXDEV));
	CHECK(copy(f, NULL, NULL) == 0);
}

static void reading_and_writing_is_the_last_resort(void **state)
{
	struct fixture *f = *state;
	put_both(f);
	assert_int_equal(in_child(copy_without_help, f), 0);
	assert_true(holds(f->base.fd, "to/file", "one"));
	assert_true(holds(f->base.fd, "to/sub/file", "three"));
}

static void copy_past_the_size_limit(struct fixture *f)
{
	struct rlimit limit = {1024, 1024};
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK(copy(f, NULL, NULL) == -EFBIG);
}

static void a_failed_copy_takes_its_name_away(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "from");
	put_dir(f->base.fd, "to");
	AUTO_CLOSE int fd = openat(f->base.fd, "from/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 100000), 0);
	assert_int_equal(in_child(copy_past_the_size_limit, f), 0);
	assert_false(exists(f->base.fd, "to/big"));
}

static void a_single_file_is_copied_under_another_name(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	put_dir(f->base.fd, "to");
	put_file(f->base.fd, "program", "x");
	assert_int_equal(fchmodat(f->base.fd, "program", 0755, 0), 0);
	assert_int_equal(symlinkat("victim/precious", f->base.fd, "link"), 0);
	AUTO_PIN struct pin to = PIN_NONE;
	assert_int_equal(pin_child(&f->base, "to", &to, NULL), 0);
	assert_int_equal(tree_copy_file(&f->base, "program", &to, "other", NULL), 0);
	assert_true(holds(to.fd, "other", "x"));
	assert_int_equal(mode_of(to.fd, "other"), 0600);
	assert_int_equal(tree_copy_file(&f->base, "program", &to, "other", NULL), -EEXIST);
	assert_int_equal(tree_copy_file(&f->base, "link", &to, "new", NULL), -ELOOP);
	assert_int_equal(tree_copy_file(&f->base, "victim", &to, "new", NULL), -EINVAL);
	assert_int_equal(tree_copy_file(&f->base, "missing", &to, "new", NULL), -ENOENT);
	assert_false(exists(to.fd, "new"));
}

static int run(const char *title)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(a_tree_is_copied_with_modes_of_its_own),   FS_TEST(one_name_at_the_top_is_left_out),
	    FS_TEST(an_existing_name_is_never_touched),	       FS_TEST(other_types_are_refused_by_name),
	    FS_TEST(a_target_inside_of_the_source_is_refused), FS_BIG_TEST(depth_needs_no_descriptors),
	    FS_TEST(large_and_sparse_files_are_exact),	       FS_TEST(reading_and_writing_is_the_last_resort),
	    FS_TEST(many_files_are_copied_by_two_threads),
	    FS_TEST(many_files_need_few_descriptors),
	    FS_TEST(one_of_many_that_is_there_already_is_told_and_kept),
	    FS_TEST(a_failed_copy_takes_its_name_away),	       FS_TEST(a_single_file_is_copied_under_another_name),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest once[] = {FS_BIG_TEST(more_than_4095_levels_are_refused)};
	int failed = run_on_every_host(run);
	return failed | cmocka_run_group_tests_name("deep trees", once, NULL, NULL);
}
