#include "fs_fixture.h"

#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "fsops/lock.h"

static int take(const struct fixture *f, enum lock_mode mode, int64_t ms, struct lock *ret_lock)
{
	return lock_take(&f->base, "x.lock", mode, deadline_in_ms(ms), ret_lock, NULL);
}

static bool held(const struct fixture *f)
{
	bool answer = false;
	assert_int_equal(lock_is_held(&f->base, "x.lock", &answer, NULL), 0);
	return answer;
}

static void a_lock_is_made_0600_and_excludes(void **state)
{
	struct fixture *f = *state;
	AUTO_LOCK struct lock first = LOCK_NONE, second = LOCK_NONE;
	mode_t before = umask(0);
	int r = take(f, LOCK_MODE_EXCLUSIVE, 0, &first);
	(void)umask(before);
	assert_int_equal(r, 0);
	assert_int_equal(mode_of(f->base.fd, "x.lock"), 0600);
	assert_int_equal(fcntl(first.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &second), -EWOULDBLOCK);
	assert_int_equal(take(f, LOCK_MODE_SHARED, 0, &second), -EWOULDBLOCK);
	assert_int_equal(second.fd, -1);
	lock_release(&first);
	assert_int_equal(first.fd, -1);
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &second), 0);
}

static void shared_locks_go_together(void **state)
{
	struct fixture *f = *state;
	AUTO_LOCK struct lock first = LOCK_NONE, second = LOCK_NONE, third = LOCK_NONE;
	assert_int_equal(take(f, LOCK_MODE_SHARED, 0, &first), 0);
	assert_int_equal(take(f, LOCK_MODE_SHARED, 0, &second), 0);
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &third), -EWOULDBLOCK);
	assert_true(held(f));
}

static void waiting_ends_at_the_deadline(void **state)
{
	struct fixture *f = *state;
	AUTO_LOCK struct lock first = LOCK_NONE, second = LOCK_NONE;
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &first), 0);
	int64_t start = monotonic_ns();
	struct err err = {0};
	assert_int_equal(lock_take(&f->base, "x.lock", LOCK_MODE_EXCLUSIVE, deadline_in_ms(100), &second, &err), -EWOULDBLOCK);
	int64_t ms = (monotonic_ns() - start) / 1000000;
	assert_true(ms >= 100 && ms < 2000);
	assert_string_equal(err.subject, "x.lock");
}

static void asking_makes_nothing_and_takes_nothing(void **state)
{
	struct fixture *f = *state;
	assert_false(held(f));
	assert_false(exists(f->base.fd, "x.lock"));
	AUTO_LOCK struct lock lock = LOCK_NONE;
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &lock), 0);
	assert_true(held(f));
	lock_release(&lock);
	assert_false(held(f));
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &lock), 0);
}

static void ask_for_ever(struct fixture *f)
{
	for (;;) {
		bool answer;
		CHECK(lock_is_held(&f->base, "x.lock", &answer, NULL) == 0);
	}
}

static void one_who_asks_is_in_nobodys_way(void **state)
{
	struct fixture *f = *state;
	put_file(f->base.fd, "x.lock", "");
	pid_t pid = fork();
	if (pid == 0)
		ask_for_ever(f);
	int refused = 0;
	for (int i = 0; i < 200; i++) {
		AUTO_LOCK struct lock lock = LOCK_NONE;
		refused += take(f, i % 2 ? LOCK_MODE_SHARED : LOCK_MODE_EXCLUSIVE, 2000, &lock) != 0;
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(exit_status(pid), 128 + SIGKILL);
	assert_int_equal(refused, 0);
}

static void X08_other_types_are_refused(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	put_dir(f->base.fd, "dir");
	assert_int_equal(mkfifoat(f->base.fd, "fifo", 0600), 0);
	assert_int_equal(symlinkat("victim/precious", f->base.fd, "link"), 0);
	assert_int_equal(symlinkat("nowhere", f->base.fd, "dangling"), 0);
	static const struct {
		const char *name;
		int code;
	} rows[] = {{"dir", -EINVAL}, {"fifo", -EINVAL}, {"link", -ELOOP}, {"dangling", -ELOOP}, {"a/b", -EINVAL}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct lock lock = LOCK_NONE;
		bool answer;
		assert_int_equal(lock_take(&f->base, rows[i].name, LOCK_MODE_EXCLUSIVE, deadline_in_ms(50), &lock, NULL), rows[i].code);
		assert_int_equal(lock_is_held(&f->base, rows[i].name, &answer, NULL), rows[i].code);
		assert_int_equal(lock.fd, -1);
	}
	assert_false(exists(f->base.fd, "nowhere"));
	assert_true(victim_is_whole(f->base.fd));
}

static void remake(const struct fixture *f)
{
	put_file(f->base.fd, "new", "");
	assert_int_equal(renameat(f->base.fd, "new", f->base.fd, "x.lock"), 0);
}

static void X55_a_lock_file_that_was_remade_while_held_makes_no_second_holder(void **state)
{
	struct fixture *f = *state;
	struct lock old = LOCK_NONE;
	AUTO_LOCK struct lock other = LOCK_NONE;
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &old), 0);
	remake(f);
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 20, &other), -EWOULDBLOCK);
	assert_int_equal(take(f, LOCK_MODE_SHARED, 20, &other), -EWOULDBLOCK);
	assert_int_equal(unlinkat(f->base.fd, "x.lock", 0), 0);
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 20, &other), -EWOULDBLOCK);
	/* Another name is another lock. */
	assert_int_equal(lock_take(&f->base, "y.lock", LOCK_MODE_EXCLUSIVE, deadline_in_ms(0), &other, NULL), 0);
	lock_release(&other);
	lock_release(&old);
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &other), 0);
}

static void wait_for_the_lock(struct fixture *f)
{
	struct lock lock = LOCK_NONE;
	CHECK(lock_take(&f->base, "x.lock", LOCK_MODE_EXCLUSIVE, deadline_in_ms(20000), &lock, NULL) == 0);
	struct stat locked, there;
	CHECK(fstat(lock.fd, &locked) == 0 && fstatat(f->base.fd, "x.lock", &there, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(locked.st_ino == there.st_ino);
}

static void X55_one_who_waits_gets_the_file_that_is_there_then(void **state)
{
	struct fixture *f = *state;
	struct lock old = LOCK_NONE;
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &old), 0);
	pid_t pid = fork();
	if (pid == 0) {
		lock_release(&old); /* this process's copy of the descriptors */
		wait_for_the_lock(f);
		_exit(0);
	}
	struct timespec pause = {.tv_nsec = 20000000};
	(void)nanosleep(&pause, NULL);
	remake(f);
	(void)nanosleep(&pause, NULL);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	lock_release(&old);
	assert_int_equal(exit_status(pid), 0);
}

static void X55_the_lock_of_a_killed_holder_is_free(void **state)
{
	struct fixture *f = *state;
	int ready[2];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct lock lock = LOCK_NONE;
		CHECK(take(f, LOCK_MODE_EXCLUSIVE, 0, &lock) == 0);
		CHECK(write(ready[1], "x", 1) == 1);
		for (;;)
			(void)pause();
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(held(f));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(exit_status(pid), 128 + SIGKILL);
	AUTO_LOCK struct lock lock = LOCK_NONE;
	assert_int_equal(take(f, LOCK_MODE_EXCLUSIVE, 0, &lock), 0);
	close(ready[0]);
	close(ready[1]);
}

static void a_kept_lock_passes_over_exec(void **state)
{
	struct fixture *f = *state;
	struct lock lock = LOCK_NONE;
	int gate[2];
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(take(f, LOCK_MODE_SHARED, 0, &lock), 0);
	assert_int_equal(lock_keep_over_exec(&lock, NULL), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)dup2(gate[0], 0);
		execl("/bin/cat", "cat", (char *)NULL);
		_exit(127);
	}
	close(gate[0]);
	lock_release(&lock);
	assert_true(held(f));
	close(gate[1]);
	assert_int_equal(exit_status(pid), 0);
	assert_false(held(f));
	struct lock none = LOCK_NONE;
	assert_int_equal(lock_keep_over_exec(&none, NULL), -EBADF);
}

static void count_under_lock(struct fixture *f)
{
	for (int i = 0; i < 50; i++) {
		AUTO_LOCK struct lock lock = LOCK_NONE;
		CHECK(take(f, LOCK_MODE_EXCLUSIVE, 20000, &lock) == 0);
		int fd = openat(f->base.fd, "count", O_RDWR | O_CLOEXEC), value = 0;
		CHECK(pread(fd, &value, sizeof value, 0) == sizeof value);
		value++;
		CHECK(pwrite(fd, &value, sizeof value, 0) == sizeof value);
		close(fd);
	}
}

/* Also while somebody deletes and remakes the file all the time. */
static void two_holders_are_impossible(void **state)
{
	struct fixture *f = *state;
	int zero = 0, total = 0;
	pid_t pids[4];
	int fd = openat(f->base.fd, "count", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, &zero, sizeof zero), sizeof zero);
	for (size_t i = 0; i < COUNT(pids); i++)
		if ((pids[i] = fork()) == 0) {
			count_under_lock(f);
			_exit(0);
		}
	for (int i = 0; i < 200; i++) {
		struct timespec pause = {.tv_nsec = 200000};
		(void)nanosleep(&pause, NULL);
		if (i % 2)
			remake(f);
		else
			(void)unlinkat(f->base.fd, "x.lock", 0);
	}
	int failed = 0;
	for (size_t i = 0; i < COUNT(pids); i++)
		failed |= exit_status(pids[i]);
	assert_int_equal(failed, 0);
	assert_int_equal(pread(fd, &total, sizeof total, 0), sizeof total);
	close(fd);
	assert_int_equal(total, 50 * (int)COUNT(pids));
}

static int run(const char *title)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(a_lock_is_made_0600_and_excludes),
	    FS_TEST(shared_locks_go_together),
	    FS_TEST(waiting_ends_at_the_deadline),
	    FS_TEST(asking_makes_nothing_and_takes_nothing),
	    FS_TEST(one_who_asks_is_in_nobodys_way),
	    FS_TEST(X08_other_types_are_refused),
	    FS_TEST(X55_a_lock_file_that_was_remade_while_held_makes_no_second_holder),
	    FS_TEST(X55_one_who_waits_gets_the_file_that_is_there_then),
	    FS_TEST(X55_the_lock_of_a_killed_holder_is_free),
	    FS_TEST(a_kept_lock_passes_over_exec),
	    FS_TEST(two_holders_are_impossible),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

int main(void)
{
	return run_on_every_host(run);
}
