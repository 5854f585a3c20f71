#include "tests/unit/process_help.h"

#include <sys/mman.h>

static pid_t *pids; /* shared with children */

static int make_shared(void **state)
{
	(void)state;
	pids = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return pids == MAP_FAILED ? -1 : 0;
}

static void assert_members(const struct unit_group *group, const pid_t *expected, size_t count)
{
	AUTO_PROCESSES struct process_list list = {0};
	assert_int_equal(group_members(group, &list, NULL), 0);
	assert_int_equal(list.n, count);
	for (size_t i = 0; i < count; i++)
		assert_non_null(process_list_find(&list, expected[i]));
}

static void assert_killed(const struct unit_group *group, int64_t ms)
{
	AUTO_PROCESSES struct process_list survivors = {0};
	struct err err = {0};
	assert_int_equal(group_kill(group, deadline_in_ms(ms), &survivors, &err), 0);
	assert_int_equal(survivors.n, 0);
	AUTO_PROCESSES struct process_list list = {0};
	assert_int_equal(group_members(group, &list, NULL), 0);
	assert_int_equal(list.n, 0);
}

/* keeper → B → C (own session), and a zombie of the keeper */
static void small_tree(void *argument)
{
	(void)argument;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t zombie = fork();
	if (zombie == 0)
		_exit(0);
	siginfo_t info;
	(void)waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT);
	pids[0] = zombie;
	if (fork() == 0) {
		pids[1] = getpid();
		if (fork() == 0) {
			(void)setsid();
			pids[2] = getpid();
			ready();
			wait_for_ever();
		}
		wait_for_ever();
	}
	wait_for_ever();
}

static void members_of_a_tree(void **state)
{
	(void)state;
	pid_t keeper = start_child(small_tree, NULL), innocent = start_child(just_wait, NULL);
	struct process process;
	assert_int_equal(process_read(keeper, &process, NULL), 0);
	struct unit_group group = {.tree = keeper, .tree_start = process.start};
	assert_members(&group, pids + 1, 2);
	assert_killed(&group, 5000);
	assert_true(child_lives(keeper));
	assert_true(child_lives(innocent));
	end_child(innocent);
	end_child(keeper);
	assert_members(&group, NULL, 0);
}

static void X39_tree_number_given_to_an_innocent(void **state)
{
	(void)state;
	pid_t innocent = start_child(small_tree, NULL);
	struct process process;
	assert_int_equal(process_read(innocent, &process, NULL), 0);
	struct unit_group group = {.tree = innocent, .tree_start = process.start - 1};
	assert_members(&group, NULL, 0);
	assert_killed(&group, 1000);
	assert_int_equal(kill(pids[1], 0), 0);
	group.tree_start = process.start;
	assert_killed(&group, 5000);
	end_child(innocent);
}

static void L36_groups_that_are_nobody(void **state)
{
	(void)state;
	const pid_t numbers[] = {0, -1, 0x3fffffff};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		struct unit_group group = {.tree = numbers[i]};
		assert_members(&group, NULL, 0);
		assert_killed(&group, 1000);
	}
}

static void daemon_leaves(void *argument)
{
	(void)argument;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t middle = fork();
	if (middle == 0) {
		(void)setsid();
		if (fork() == 0) {
			pids[1] = getpid();
			for (int s = 1; s < 32; s++)
				(void)signal(s, SIG_IGN);
			ready();
			wait_for_ever();
		}
		_exit(0);
	}
	(void)waitpid(middle, NULL, 0);
	wait_for_ever();
}

static void L07_daemon_with_own_session_is_a_member(void **state)
{
	(void)state;
	pid_t keeper = start_child(daemon_leaves, NULL);
	struct unit_group group = {.tree = keeper};
	assert_members(&group, pids + 1, 1);
	assert_killed(&group, 5000);
	end_child(keeper);
}

/* A tree of 40; each keeps making short-lived children. */
static void forker(void)
{
	for (int depth = 3, i = 0; depth && i < 3; i++)
		if (fork() == 0) {
			depth--;
			i = -1;
		}
	ready();
	for (;;) {
		pid_t child = fork();
		if (child == 0) {
			nap_ms(30);
			_exit(0);
		}
		if (child > 0)
			(void)waitpid(child, NULL, 0);
		nap_ms(5);
	}
}

static void forking_tree(void *argument)
{
	(void)argument;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)signal(SIGCHLD, SIG_IGN);
	if (fork() == 0)
		forker();
	wait_for_ever();
}

static void X37_forking_tree_is_killed_without_a_cgroup(void **state)
{
	(void)state;
	pid_t keeper = start_children(forking_tree, NULL, 40);
	struct unit_group group = {.tree = keeper};
	int64_t began = monotonic_ns();
	assert_killed(&group, 20000);
	print_message("40 forking processes, by pidfd: %d ms\n", (int)((monotonic_ns() - began) / 1000000));
	end_child(keeper);
}

static void stopped_one(void *argument)
{
	(void)argument;
	if (fork() == 0) {
		pids[1] = getpid();
		ready();
		(void)raise(SIGSTOP);
		wait_for_ever();
	}
	wait_for_ever();
}

static void X37_stopped_process_is_killed(void **state)
{
	(void)state;
	pid_t keeper = start_child(stopped_one, NULL);
	struct process process = {0};
	for (int i = 0; i < 200 && process.state != 'T'; i++) {
		nap_ms(5);
		assert_int_equal(process_read(pids[1], &process, NULL), 0);
	}
	assert_int_equal(process.state, 'T');
	struct unit_group group = {.tree = keeper};
	assert_killed(&group, 5000);
	end_child(keeper);
}

static void many_zombies(void *argument)
{
	(void)argument;
	for (int i = 0; i < 1000; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		siginfo_t info;
		(void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	}
	ready();
	wait_for_ever();
}

static void X37_thousand_zombies_are_nothing(void **state)
{
	(void)state;
	pid_t keeper = start_child(many_zombies, NULL);
	struct unit_group group = {.tree = keeper};
	assert_members(&group, NULL, 0);
	assert_killed(&group, 1000);
	end_child(keeper);
}

/* A remnant is what carries both; its children may have thrown their environment away. */
static pid_t start_program(char *const environ_[], const char *script)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)execle("/bin/sh", "sh", "-c", script, (char *)NULL, environ_);
		_exit(127);
	}
	return pid;
}

static size_t count_members(const struct unit_group *group)
{
	AUTO_PROCESSES struct process_list list = {0};
	assert_int_equal(group_members(group, &list, NULL), 0);
	return list.n;
}

static void remnants_of_a_dead_keeper(void **state)
{
	(void)state;
	char path[] = "PATH=/usr/bin:/bin", id[] = "KIROCREW_POD_ID=11111111-2222-3333-4444-555555555555",
	     longer[] = "KIROCREW_POD_ID=11111111-2222-3333-4444-5555555555556",
	     hidden[] = "X=KIROCREW_POD_ID=11111111-2222-3333-4444-555555555555", keeper[] = "KIROCREW_POD_KEEPER=123";
	char *remnant[] = {path, id, keeper, NULL}, *only_id[] = {path, id, NULL}, *other_id[] = {path, longer, keeper, NULL},
	     *in_value[] = {path, hidden, keeper, NULL};
	const char *loop = "exec sleep 1000";
	pid_t member = start_program(remnant, "env -i /bin/sleep 1000 & wait");
	pid_t innocents[] = {start_program(only_id, loop), start_program(other_id, loop), start_program(in_value, loop)};
	struct unit_group group = {.pod_id = "11111111-2222-3333-4444-555555555555"};
	for (int i = 0; i < 400 && count_members(&group) != 2; i++)
		nap_ms(5);
	nap_ms(50);
	assert_int_equal(count_members(&group), 2);
	AUTO_PROCESSES struct process_list list = {0};
	assert_int_equal(group_members(&group, &list, NULL), 0);
	assert_non_null(process_list_find(&list, member));
	assert_killed(&group, 5000);
	for (size_t i = 0; i < 3; i++) {
		assert_true(child_lives(innocents[i]));
		end_child(innocents[i]);
	}
	end_child(member);
}

static void in_cgroup(void *cgroup)
{
	enter_cgroup(cgroup);
	for (int s = 1; s < 32; s++)
		(void)signal(s, SIG_IGN);
	ready();
	wait_for_ever();
}

#define NEED_CGROUP(cgroup) NEED(make_cgroup(cgroup), "no cgroup2 in which we may make a group")

static void members_of_a_cgroup_and_its_descendants(void **state)
{
	(void)state;
	struct unit_group group = {0};
	NEED_CGROUP(group.cgroup);
	char below[600], deeper[700];
	(void)snprintf(below, sizeof below, "%s/below", group.cgroup);
	(void)snprintf(deeper, sizeof deeper, "%s/deeper", below);
	assert_int_equal(mkdir(below, 0755), 0);
	assert_int_equal(mkdir(deeper, 0755), 0);
	pid_t members[] = {start_child(in_cgroup, group.cgroup), start_child(in_cgroup, below), start_child(in_cgroup, deeper)};
	assert_members(&group, members, 3);
	struct cgroup_view view = {0};
	assert_int_equal(group_view(&group, &view, NULL), 0);
	assert_int_equal(view.id_count, 3);
	assert_int_equal(view.pid_count, 3);
	assert_int_equal(view.closed, 0);
	struct stat st;
	assert_int_equal(stat(deeper, &st), 0);
	assert_true(view.ids[0] == st.st_ino || view.ids[1] == st.st_ino || view.ids[2] == st.st_ino);
	char of[512], mount[256];
	assert_int_equal(cgroup2_of(members[2], of, sizeof of, NULL), 0);
	assert_int_equal(cgroup2_mount(mount, sizeof mount, NULL), 0);
	assert_string_equal(of, deeper + strlen(mount));
	char again[700];
	assert_int_equal(cgroup_directory(of, again, sizeof again, NULL), 0);
	assert_string_equal(again, deeper);
	assert_killed(&group, 5000);
	for (size_t i = 0; i < 3; i++)
		end_child(members[i]);
	remove_cgroup(deeper);
	remove_cgroup(below);
	remove_cgroup(group.cgroup);
	assert_members(&group, NULL, 0);
	assert_killed(&group, 100);
	cgroup_view_free(&view);
	assert_int_equal(group_view(&group, &view, NULL), 0);
	assert_int_equal(view.id_count, 0);
	assert_int_equal(view.pid_count, 0);
}

static void X37_frozen_group_is_killed_and_thawed(void **state)
{
	(void)state;
	struct unit_group group = {0};
	NEED_CGROUP(group.cgroup);
	pid_t members[] = {start_child(in_cgroup, group.cgroup), start_child(in_cgroup, group.cgroup)};
	write_word(group.cgroup, "cgroup.freeze", "1");
	nap_ms(50);
	int64_t began = monotonic_ns();
	assert_killed(&group, 5000);
	print_message("frozen group: %d ms\n", (int)((monotonic_ns() - began) / 1000000));
	end_child(members[0]);
	end_child(members[1]);
	AUTO_CLOSE int directory = open(group.cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE char *word = NULL;
	size_t len;
	assert_int_equal(process_file(directory, "cgroup.freeze", 16, &word, &len), 0);
	assert_string_equal(word, "0\n");
	remove_cgroup(group.cgroup);
}

static void bomb(void *cgroup)
{
	enter_cgroup(cgroup);
	pids[0] = 0;
	if (fork() == 0) {
		(void)signal(SIGCHLD, SIG_IGN);
		for (;;) {
			if (__atomic_add_fetch(&pids[0], 1, __ATOMIC_SEQ_CST) > 400)
				wait_for_ever();
			(void)fork();
		}
	}
	ready();
	wait_for_ever();
}

static void X37_fork_bomb_in_a_cgroup(void **state)
{
	(void)state;
	struct unit_group group = {0};
	NEED_CGROUP(group.cgroup);
	pid_t member = start_child(bomb, group.cgroup);
	int64_t began = monotonic_ns();
	assert_killed(&group, 20000);
	print_message("fork bomb of 400: %d ms\n", (int)((monotonic_ns() - began) / 1000000));
	end_child(member);
	remove_cgroup(group.cgroup);
}

static void roots_and_directories_are_no_groups(void **state)
{
	(void)state;
	struct unit_group group = {0};
	struct process_list list = {0};
	struct err err = {0};
	(void)snprintf(group.cgroup, sizeof group.cgroup, "/tmp");
	assert_int_equal(group_members(&group, &list, &err), -EINVAL);
	assert_int_equal(group_kill(&group, deadline_in_ms(10), &list, NULL), -EINVAL);
	assert_null(list.v);
	NEED(cgroup2_mount(group.cgroup, sizeof group.cgroup, NULL) == 0, "no cgroup2 here");
	assert_int_equal(group_members(&group, &list, &err), -EINVAL);
	assert_int_equal(group_kill(&group, deadline_in_ms(10), &list, NULL), -EINVAL);
	char out[PATH_MAX];
	assert_int_equal(cgroup_directory("/", out, sizeof out, NULL), -EINVAL);
	assert_int_equal(cgroup_directory("/../..", out, sizeof out, NULL), -EINVAL);
	assert_int_equal(cgroup_directory("a", out, sizeof out, NULL), -EINVAL);
	assert_int_equal(cgroup_directory("/kirocrew-none", out, sizeof out, NULL), -ENOENT);
	assert_int_equal(cgroup2_mount(out, 3, NULL), -ENAMETOOLONG);
}

static void plain_in_cgroup(void *cgroup)
{
	enter_cgroup(cgroup);
	become_plain_user();
	ready();
	wait_for_ever();
}

static void kill_as_plain_user(void *cgroup)
{
	become_plain_user();
	struct unit_group group = {0};
	(void)snprintf(group.cgroup, sizeof group.cgroup, "%s", (const char *)cgroup);
	AUTO_PROCESSES struct process_list survivors = {0};
	CHILD_CHECK(group_kill(&group, deadline_in_ms(1000), &survivors, NULL) == 0);
	CHILD_CHECK(survivors.n == 1 && survivors.v[0].pid == pids[1]);
}

static void X64_no_writable_cgroup_and_a_survivor_is_named(void **state)
{
	(void)state;
	char cgroup[512];
	assert_int_equal(geteuid(), 0);
	NEED_CGROUP(cgroup);
	pid_t plain = start_child(plain_in_cgroup, cgroup);
	pids[1] = start_child(in_cgroup, cgroup);
	assert_int_equal(run_child(kill_as_plain_user, cgroup), 0);
	assert_false(child_lives(plain));
	assert_true(child_lives(pids[1]));
	end_child(plain);
	end_child(pids[1]);
	remove_cgroup(cgroup);
}

static void kill_from_inside(void *cgroup)
{
	enter_cgroup(cgroup);
	pid_t other = fork();
	if (other == 0)
		wait_for_ever();
	struct unit_group group = {0};
	(void)snprintf(group.cgroup, sizeof group.cgroup, "%s", (const char *)cgroup);
	AUTO_PROCESSES struct process_list survivors = {0};
	CHILD_CHECK(group_kill(&group, deadline_in_ms(300), &survivors, NULL) == 0);
	CHILD_CHECK(survivors.n == 1 && survivors.v[0].pid == getpid());
	CHILD_CHECK(!child_lives(other));
}

static void from_inside_only_ourselves_survive(void **state)
{
	(void)state;
	char cgroup[512];
	NEED_CGROUP(cgroup);
	assert_int_equal(run_child(kill_from_inside, cgroup), 0);
	remove_cgroup(cgroup);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest as_root[] = {cmocka_unit_test(X64_no_writable_cgroup_and_a_survivor_is_named)};
	if (asked_for(argc, argv, "as-root"))
		return cmocka_run_group_tests(as_root, make_shared, NULL);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(members_of_a_tree),
	    cmocka_unit_test(X39_tree_number_given_to_an_innocent),
	    cmocka_unit_test(L36_groups_that_are_nobody),
	    cmocka_unit_test(L07_daemon_with_own_session_is_a_member),
	    cmocka_unit_test(X37_forking_tree_is_killed_without_a_cgroup),
	    cmocka_unit_test(X37_stopped_process_is_killed),
	    cmocka_unit_test(X37_thousand_zombies_are_nothing),
	    cmocka_unit_test(remnants_of_a_dead_keeper),
	    cmocka_unit_test(members_of_a_cgroup_and_its_descendants),
	    cmocka_unit_test(X37_frozen_group_is_killed_and_thawed),
	    cmocka_unit_test(X37_fork_bomb_in_a_cgroup),
	    cmocka_unit_test(roots_and_directories_are_no_groups),
	    cmocka_unit_test(from_inside_only_ourselves_survive),
	};
	return cmocka_run_group_tests(tests, make_shared, NULL);
}
