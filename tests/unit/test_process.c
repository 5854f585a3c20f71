#include "tests/unit/process_help.h"

#include <linux/sched.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static void odd_name(void *name)
{
	(void)prctl(PR_SET_NAME, name);
	ready();
	wait_for_ever();
}

static void X40_name_with_parenthesis_and_newline(void **state)
{
	(void)state;
	char name[] = "a) R 1 1\n0 0)";
	pid_t pid = start_child(odd_name, name);
	struct process process = {0};
	assert_int_equal(process_read(pid, &process, NULL), 0);
	assert_int_equal(process.pid, pid);
	assert_int_equal(process.parent, getpid());
	assert_string_equal(process.comm, name);
	assert_int_equal(process.threads, 1);
	assert_true(process.start > 0);
	AUTO_PROCESSES struct process_list all = {0};
	assert_int_equal(process_scan(&all, NULL), 0);
	const struct process *found = process_list_find(&all, pid);
	assert_non_null(found);
	assert_true(found->start == process.start);
	assert_string_equal(found->comm, name);
	end_child(pid);
}

static void *thread_body(void *shared)
{
	*(pid_t *)shared = (pid_t)syscall(SYS_gettid);
	ready();
	wait_for_ever();
	return NULL;
}

static void with_thread(void *shared)
{
	pthread_t thread;
	(void)pthread_create(&thread, NULL, thread_body, shared);
	wait_for_ever();
}

static void L36_numbers_that_are_nobody(void **state)
{
	(void)state;
	const pid_t numbers[] = {0, -1, INT32_MIN, 0x3fffffff};
	struct process process = {.pid = 42};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		struct err err = {0};
		assert_int_equal(process_read(numbers[i], &process, &err), -ESRCH);
		assert_int_equal(err.code, -ESRCH);
		assert_int_equal(process.pid, 42);
		struct process nobody = {.pid = numbers[i], .start = 1};
		assert_int_equal(process_signal(&nobody, SIGKILL, NULL), -ESRCH);
	}
	struct process init = {.pid = 1};
	(void)process_read(1, &init, NULL);
	assert_int_equal(process_signal(&init, SIGKILL, NULL), -ESRCH);
	struct process unknown_start = {.pid = getpid()};
	assert_int_equal(process_signal(&unknown_start, SIGKILL, NULL), -ESRCH);
}

static void L36_thread_id_is_no_process(void **state)
{
	(void)state;
	pid_t *tid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(tid != MAP_FAILED);
	pid_t pid = start_child(with_thread, tid);
	struct process process = {0}, leader = {0};
	assert_int_not_equal(*tid, pid);
	assert_int_equal(process_read(*tid, &process, NULL), -ESRCH);
	assert_int_equal(process_read(pid, &leader, NULL), 0);
	assert_int_equal(leader.threads, 2);
	leader.pid = *tid;
	assert_int_equal(process_signal(&leader, SIGKILL, NULL), -ESRCH);
	assert_true(child_lives(pid));
	end_child(pid);
	(void)munmap(tid, 4096);
}

static void zombie_is_read_and_not_scanned(void **state)
{
	(void)state;
	siginfo_t info;
	pid_t pid = start_children(just_wait, NULL, 1);
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	struct process process = {0};
	assert_int_equal(process_read(pid, &process, NULL), 0);
	assert_int_equal(process.state, 'Z');
	assert_false(process_is_live(&process));
	AUTO_PROCESSES struct process_list all = {0};
	assert_int_equal(process_scan(&all, NULL), 0);
	assert_null(process_list_find(&all, pid));
	assert_non_null(process_list_find(&all, getpid()));
	end_child(pid);
	assert_int_equal(process_read(pid, &process, NULL), -ESRCH);
}

static void leader_leaves(void *shared)
{
	pthread_t thread;
	(void)pthread_create(&thread, NULL, thread_body, shared);
	pthread_exit(NULL);
}

static void ended_leader_with_threads_is_live(void **state)
{
	(void)state;
	pid_t *tid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = start_child(leader_leaves, tid);
	struct process process = {0};
	for (int i = 0; i < 200 && process.state != 'Z'; i++) {
		nap_ms(5);
		assert_int_equal(process_read(pid, &process, NULL), 0);
	}
	assert_int_equal(process.state, 'Z');
	assert_true(process_is_live(&process));
	AUTO_PROCESSES struct process_list all = {0};
	assert_int_equal(process_scan(&all, NULL), 0);
	assert_non_null(process_list_find(&all, pid));
	assert_int_equal(process_signal(&process, SIGKILL, NULL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)munmap(tid, 4096);
}

static pid_t clone_with_pid(pid_t pid)
{
	pid_t wanted[1] = {pid};
	struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)wanted, .set_tid_size = 1};
	return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

static void X39_innocent_with_the_same_number_lives(void **state)
{
	(void)state;
	assert_int_equal(geteuid(), 0);
	pid_t pid = start_child(just_wait, NULL);
	struct process process = {0};
	assert_int_equal(process_read(pid, &process, NULL), 0);
	AUTO_CLOSE int directory = process_open(&process);
	assert_true(directory >= 0);
	end_child(pid);
	assert_int_equal(process_signal(&process, SIGKILL, NULL), -ESRCH);
	nap_ms(30); /* start times have a resolution of 10 ms */
	pid_t innocent = clone_with_pid(pid);
	if (innocent == 0) {
		wait_for_ever();
	}
	NEED(innocent > 0, "clone3 with set_tid is refused here");
	assert_int_equal(innocent, pid);
	assert_int_equal(process_signal(&process, SIGKILL, NULL), -ESRCH);
	assert_int_equal(process_signal(&process, SIGTERM, NULL), -ESRCH);
	assert_int_equal(process_open(&process), -ESRCH);
	char *bytes;
	size_t len;
	assert_true(process_file(directory, "environ", 1 << 20, &bytes, &len) < 0);
	nap_ms(20);
	assert_true(child_lives(innocent));
	end_child(innocent);
}

static void enter_own_mounts(void)
{
	char map[64];
	uid_t uid = geteuid();
	if (uid != 0) {
		CHILD_CHECK(unshare(CLONE_NEWUSER) == 0);
		(void)snprintf(map, sizeof map, "0 %u 1", uid);
		write_word("/proc/self", "uid_map", map);
	}
	CHILD_CHECK(unshare(CLONE_NEWNS) == 0);
	CHILD_CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

static void try_own_mounts(void *argument)
{
	(void)argument;
	(void)close(2);
	enter_own_mounts();
}

static void no_proc(void *argument)
{
	(void)argument;
	pid_t member = fork();
	if (member == 0)
		wait_for_ever();
	struct unit_group group = {.tree = getpid()};
	enter_own_mounts();
	CHILD_CHECK(mount("none", "/proc", "tmpfs", 0, NULL) == 0);
	struct process process;
	struct process_list list = {0};
	struct err err = {0};
	AUTO_PIN struct pin home = PIN_NONE;
	CHILD_CHECK(pin_open("/tmp", &home, NULL) == 0);
	CHILD_CHECK(process_read(member, &process, &err) == -ENOSYS && strstr(err.text, "needs /proc"));
	CHILD_CHECK(process_scan(&list, NULL) == -ENOSYS);
	CHILD_CHECK(group_members(&group, &list, &err) == -ENOSYS && strstr(err.text, "needs /proc"));
	CHILD_CHECK(group_kill(&group, deadline_in_ms(100), &list, NULL) == -ENOSYS);
	CHILD_CHECK(process_holders(&home, "/tmp", &list, NULL) == -ENOSYS);
	CHILD_CHECK(process_gate_holders(&home, "gate", &list, NULL) == -ENOSYS);
	CHILD_CHECK(list.n == 0 && list.v == NULL);
	CHILD_CHECK(kill(member, 0) == 0);
	end_child(member);
}

static void X64_without_proc_it_says_so(void **state)
{
	(void)state;
	NEED(run_child(try_own_mounts, NULL) == 0, "no mount namespace of our own");
	assert_int_equal(run_child(no_proc, NULL), 0);
}

static void hidden_looker(pid_t shown, pid_t hidden)
{
	become_plain_user();
	struct process process;
	struct err err = {0};
	CHILD_CHECK(process_read(hidden, &process, &err) == -EACCES && strstr(err.text, "hidepid"));
	CHILD_CHECK(process_read(shown, &process, NULL) == 0);
	struct unit_group group = {.tree = shown};
	AUTO_PROCESSES struct process_list list = {0}, survivors = {0};
	CHILD_CHECK(group_members(&group, &list, NULL) == 0);
	CHILD_CHECK(list.n == 1 && list.v[0].pid == hidden && list.v[0].start == 0);
	CHILD_CHECK(group_kill(&group, deadline_in_ms(50), &survivors, NULL) == 0);
	CHILD_CHECK(survivors.n == 1 && survivors.v[0].pid == hidden);
}

static void hidden_setup(void *option)
{
	int ends[2];
	char byte;
	enter_own_mounts();
	CHILD_CHECK(mount("proc", "/proc", "proc", 0, option) == 0);
	CHILD_CHECK(pipe(ends) == 0);
	pid_t shown = fork();
	if (shown == 0) {
		pid_t hidden = fork();
		if (hidden == 0)
			wait_for_ever();
		become_plain_user();
		CHILD_CHECK(write(ends[1], &hidden, sizeof hidden) == sizeof hidden);
		wait_for_ever();
	}
	pid_t hidden;
	CHILD_CHECK(read(ends[0], &hidden, sizeof hidden) == sizeof hidden);
	(void)byte;
	pid_t looker = fork();
	if (looker == 0) {
		hidden_looker(shown, hidden);
		_exit(0);
	}
	int status;
	CHILD_CHECK(waitpid(looker, &status, 0) == looker);
	(void)kill(hidden, SIGKILL);
	end_child(shown);
	CHILD_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void X64_hidden_member_is_never_nothing(void **state)
{
	(void)state;
	assert_int_equal(geteuid(), 0);
	char invisible[] = "hidepid=2", noaccess[] = "hidepid=1";
	assert_int_equal(run_child(hidden_setup, invisible), 0);
	assert_int_equal(run_child(hidden_setup, noaccess), 0);
}

static void list_is_sorted_once_and_grows_on(void **state)
{
	(void)state;
	AUTO_PROCESSES struct process_list list = {0};
	for (int i = 0; i < 40; i++) {
		struct process process = {.pid = 1 + (i * 7) % 11};
		assert_int_equal(process_list_add(&list, &process), 0);
	}
	process_list_sort(&list);
	assert_int_equal(list.n, 11);
	for (int i = 0; i < 40; i++) {
		struct process process = {.pid = 100 + i};
		assert_int_equal(process_list_add(&list, &process), 0);
	}
	assert_int_equal(list.n, 51);
	for (pid_t pid = 1; pid <= 11; pid++)
		assert_int_equal(process_list_find(&list, pid)->pid, pid);
	assert_null(process_list_find(&list, 99));
}

static void file_is_bounded(void **state)
{
	(void)state;
	char *bytes = NULL;
	size_t len = 0;
	AUTO_CLOSE int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(process_file(self, "maps", 10, &bytes, &len), -EFBIG);
	assert_null(bytes);
	assert_int_equal(process_file(self, "maps", 1 << 24, &bytes, &len), 0);
	assert_true(len > 0 && bytes[len] == '\0');
	free(bytes);
}

static void escapes_of_mountinfo(void **state)
{
	(void)state;
	char text[] = "/a\\040b\\011c\\134d\\012\\9x\\04";
	unescape_octal(text);
	assert_string_equal(text, "/a b\tc\\d\n\\9x\\04");
}

static void mount_with_spaces_body(void *directory)
{
	enter_own_mounts();
	char point[PATH_MAX], other[PATH_MAX];
	(void)snprintf(point, sizeof point, "%s/a b\n\\c", (const char *)directory);
	(void)snprintf(other, sizeof other, "%s/covered", (const char *)directory);
	CHILD_CHECK(mkdir(point, 0700) == 0 && mkdir(other, 0700) == 0);
	CHILD_CHECK(mount("none", point, "tmpfs", 0, NULL) == 0);
	AUTO_MOUNTS struct mount_list mounts = {0};
	AUTO_CLOSE int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHILD_CHECK(mounts_read(self, &mounts) == 0);
	bool found = false;
	for (size_t i = 0; i < mounts.n; i++)
		found |= !strcmp(mounts.v[i].point, point) && !strcmp(mounts.v[i].type, "tmpfs") && !strcmp(mounts.v[i].root, "/");
	CHILD_CHECK(found);
}

static void mount_point_with_odd_bytes(void **state)
{
	(void)state;
	NEED(run_child(try_own_mounts, NULL) == 0, "no mount namespace of our own");
	char directory[PATH_MAX];
	make_directory(directory);
	int status = run_child(mount_with_spaces_body, directory);
	remove_directory(directory);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest as_root[] = {
	    cmocka_unit_test(X39_innocent_with_the_same_number_lives),
	    cmocka_unit_test(X64_hidden_member_is_never_nothing),
	};
	if (asked_for(argc, argv, "as-root"))
		return cmocka_run_group_tests(as_root, NULL, NULL);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(X40_name_with_parenthesis_and_newline),
	    cmocka_unit_test(L36_numbers_that_are_nobody),
	    cmocka_unit_test(L36_thread_id_is_no_process),
	    cmocka_unit_test(zombie_is_read_and_not_scanned),
	    cmocka_unit_test(ended_leader_with_threads_is_live),
	    cmocka_unit_test(X64_without_proc_it_says_so),
	    cmocka_unit_test(list_is_sorted_once_and_grows_on),
	    cmocka_unit_test(file_is_bounded),
	    cmocka_unit_test(escapes_of_mountinfo),
	    cmocka_unit_test(mount_point_with_odd_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
