/* Trees that are large enough for two threads. */
#include "fs_fixture.h"

#define WIDE 300
#define NESTED "home/d5/nested"

static void put_files(int at, const char *directory, int count)
{
	char name[128];
	put_dir(at, directory);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof name, "%s/f%d", directory, i);
		put_file(at, name, "x");
	}
}

/* Many directories beside each other, and one of them holds as many again. */
static void put_wide(int at)
{
	char name[64];
	put_dir(at, "home");
	for (int i = 0; i < WIDE; i++) {
		snprintf(name, sizeof name, "home/d%d", i);
		put_files(at, name, 10);
	}
	put_dir(at, NESTED);
	for (int i = 0; i < WIDE; i++) {
		snprintf(name, sizeof name, NESTED "/d%d", i);
		put_files(at, name, 5);
	}
}

static void all_of_it_goes(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	put_wide(f->base.fd);
	assert_int_equal(symlinkat("../../victim", f->base.fd, "home/d250/link"), 0);
	struct tree_left left = {.count = 99};
	assert_int_equal(tree_remove(&f->base, "home", deadline_in_ms(5000), &left, NULL), 0);
	assert_int_equal(left.count, 0);
	assert_false(exists(f->base.fd, "home"));
	assert_true(victim_is_whole(f->base.fd));
}

static void remove_without_a_thread(struct fixture *f)
{
	CHECK(deny_calls(SYS_clone, SYS_clone3, EAGAIN));
	CHECK(tree_remove(&f->base, "home", deadline_in_ms(5000), NULL, NULL) == 0);
}

static void one_does_it_alone_where_no_thread_can_be_had(void **state)
{
	struct fixture *f = *state;
	put_wide(f->base.fd);
	assert_int_equal(in_child(remove_without_a_thread, f), 0);
	assert_false(exists(f->base.fd, "home"));
}

static bool is_named(const struct tree_left *left, const char *path)
{
	for (size_t i = 0; i < left->count && i < TREE_LEFT_NAMED; i++)
		if (strcmp(left->named[i].path, path) == 0)
			return left->named[i].code == -EXDEV || left->named[i].code == -EBUSY;
	return false;
}

static unsigned entries_below(int at, const char *path)
{
	char command[256], line[32] = "0";
	(void)snprintf(command, sizeof command, "find /proc/%d/fd/%d/%s -mindepth 1 | wc -l", (int)getpid(), at, path);
	FILE *found = popen(command, "re");
	CHECK(found && fgets(line, sizeof line, found));
	CHECK(pclose(found) == 0);
	return (unsigned)atoi(line);
}

static void leave_mounts_once(struct fixture *f)
{
	static const char *const mounts[] = {"home/d17/m", "home/d160/m", NESTED "/d3/m", NESTED "/d290/m"};
	put_wide(f->base.fd);
	char path[PATH_MAX + 64];
	for (size_t i = 0; i < COUNT(mounts); i++) {
		put_dir(f->base.fd, mounts[i]);
		snprintf(path, sizeof path, "%s/%s", f->path, mounts[i]);
		CHECK(mount("none", path, "tmpfs", 0, NULL) == 0);
		put_file(f->base.fd, strcat(strcpy(path, mounts[i]), "/precious"), "precious");
	}
	struct tree_left left = {0};
	CHECK(tree_remove(&f->base, "home", deadline_in_ms(5000), &left, NULL) == -ENOTEMPTY);
	CHECK(left.count == COUNT(mounts));
	for (size_t i = 0; i < COUNT(mounts); i++) {
		CHECK(is_named(&left, mounts[i]));
		CHECK(holds(f->base.fd, strcat(strcpy(path, mounts[i]), "/precious"), "precious"));
	}
	/* d17, d160, d5, nested, d3, d290, the four mounts and a file in each */
	CHECK(entries_below(f->base.fd, "home") == 14);
	for (size_t i = 0; i < COUNT(mounts); i++) {
		snprintf(path, sizeof path, "%s/%s", f->path, mounts[i]);
		CHECK(umount2(path, MNT_DETACH) == 0);
	}
	CHECK(tree_remove(&f->base, "home", deadline_in_ms(5000), &left, NULL) == 0);
	CHECK(!exists(f->base.fd, "home"));
}

/* Who meets which mount, and through whose hands it went, is another every time. */
static void leave_mounts(struct fixture *f)
{
	CHECK(own_mounts(f));
	for (int i = 0; i < 3; i++)
		leave_mounts_once(f);
}

static void what_either_has_to_leave_is_named_and_all_else_goes(void **state)
{
	struct fixture *f = *state;
	NEED_MOUNTS(f);
	assert_int_equal(in_child(leave_mounts, f), 0);
}

/* Somebody moves directories about inside of the tree while two remove it. */
static void a_way_back_that_is_lost_is_found_again(void **state)
{
	struct fixture *f = *state;
	put_wide(f->base.fd);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char from[64], to[64];
		for (unsigned i = 0;; i++) {
			snprintf(from, sizeof from, NESTED "/d%u", i % WIDE);
			snprintf(to, sizeof to, "home/d%u/moved%u", (i * 7) % WIDE, i);
			(void)renameat(f->base.fd, from, f->base.fd, to);
			(void)renameat(f->base.fd, NESTED, f->base.fd, "home/d9/nested");
			(void)renameat(f->base.fd, "home/d9/nested", f->base.fd, NESTED);
		}
	}
	struct tree_left left = {0};
	int r = tree_remove(&f->base, "home", deadline_in_ms(10000), &left, NULL);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(exit_status(pid), 128 + SIGKILL);
	assert_int_equal(r, 0);
	assert_false(exists(f->base.fd, "home"));
}

static int run(const char *title)
{
	const struct CMUnitTest tests[] = {
		FS_BIG_TEST(all_of_it_goes), FS_BIG_TEST(one_does_it_alone_where_no_thread_can_be_had),
		FS_BIG_TEST(what_either_has_to_leave_is_named_and_all_else_goes),
		FS_BIG_TEST(a_way_back_that_is_lost_is_found_again),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

int main(void)
{
	return run_on_every_host(run);
}
