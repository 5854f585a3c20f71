/* Every allocation of fsops fails: it is said, and the next try succeeds. */
#include "fs_fixture.h"

#include "alloc_fail.h"
#include "fsops/bytes.h"
#include "fsops/contain.h"
#include "fsops/file.h"

static int said(int r, const struct err *err)
{
	return r < 0 && err->code != r ? -1 : r;
}

static int read_file(void *context)
{
	AUTO_FREE char *bytes = NULL;
	size_t len;
	struct err err = {0};
	(void)context;
	return said(file_read_path("/proc/self/smaps", 1 << 20, &bytes, &len, &err), &err);
}

static int copy_tree(void *context)
{
	struct fixture *f = context;
	AUTO_PIN struct pin from = PIN_NONE, to = PIN_NONE;
	struct err err = {0};
	if (pin_child(&f->base, "from", &from, NULL) < 0 || pin_make_child(&f->base, "to", 0700, NULL, &to, NULL) < 0)
		return -1;
	int r = said(tree_copy(&from, &to, NULL, &err), &err);
	if ((r == 0) != exists(to.fd, "file")) /* what was begun is taken back */
		return -1;
	(void)unlinkat(to.fd, "file", 0);
	return r;
}

static int copy_bytes(void *context)
{
	struct fixture *f = context;
	struct err err = {0};
	AUTO_CLOSE int from = openat(f->base.fd, "from/file", O_RDONLY | O_CLOEXEC), to = openat(f->base.fd, "copy", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return said(bytes_copy(from, to, 4, DEADLINE_NEVER, &err), &err);
}

static int last_change(void *context)
{
	struct fixture *f = context;
	int64_t ns;
	struct err err = {0};
	return said(tree_last_change(&f->base, "from", 100, &ns, &err), &err);
}

static int remove_tree(void *context)
{
	struct fixture *f = context;
	struct err err = {0};
	put_dir(f->base.fd, "gone");
	int r = said(tree_remove(&f->base, "gone", DEADLINE_NEVER, NULL, &err), &err);
	if (r < 0 && unlinkat(f->base.fd, "gone", AT_REMOVEDIR) < 0)
		return -1;
	return r;
}

/* Never clear: the question stays open. */
static int ask(void *context)
{
	struct contain_seal seal = {.path = "/nowhere"};
	(void)context;
	struct contain_answer answer = contain_check("/tmp", &seal, deadline_in_ms(5000));
	return answer.cause == CONTAIN_CLEAR ? 0 : strstr(answer.detail, "memory") ? -ENOMEM : -1;
}

static void X52_every_allocation_fails(void **state)
{
	struct fixture *f = *state;
	static int (*const steps[])(void *) = {read_file, copy_tree, copy_bytes, last_change, remove_tree, ask};
	put_dir(f->base.fd, "from");
	put_file(f->base.fd, "from/file", "four");
	for (size_t i = 0; i < COUNT(steps); i++) {
		long failures = alloc_walk(steps[i], f, -ENOMEM);
		if (failures < 1)
			fail_msg("step %zu: %ld failures", i, failures);
	}
}

/* A tree that two would share: one does it where there is no memory for the other. */
static void X52_a_large_tree_goes_without_help(void **state)
{
	struct fixture *f = *state;
	char name[32];
	int failed = 0;
	for (long n = 0; n < 4; n++) {
		put_dir(f->base.fd, "wide");
		for (int i = 0; i < 1100; i++) {
			(void)snprintf(name, sizeof name, "wide/d%d", i);
			put_dir(f->base.fd, name);
		}
		alloc_plan.failed = false;
		alloc_plan.for_ever = true;
		alloc_plan.left = n;
		int r = tree_remove(&f->base, "wide", DEADLINE_NEVER, NULL, NULL);
		alloc_plan.left = -1;
		failed += alloc_plan.failed;
		assert_true(r == 0 || r == -ENOMEM);
		assert_int_equal(exists(f->base.fd, "wide"), r < 0);
		assert_int_equal(tree_remove(&f->base, "wide", DEADLINE_NEVER, NULL, NULL), 0);
	}
	assert_true(failed > 1);
}

int main(void)
{
	if (!deny_calls(SYS_copy_file_range, -1, ENOSYS)) /* the kernel needs no buffer of ours */
		return 1;
	const struct CMUnitTest tests[] = {FS_TEST(X52_every_allocation_fails), FS_BIG_TEST(X52_a_large_tree_goes_without_help)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
