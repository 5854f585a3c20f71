#include "tests/unit/process_help.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>

static char top[PATH_MAX], home_path[PATH_MAX];
static struct pin home;

static int make_home(void **state)
{
	(void)state;
	make_directory(top);
	(void)chmod(top, 0755);
	(void)snprintf(home_path, sizeof home_path, "%s/home", top);
	return mkdir(home_path, 0777) == 0 && chmod(home_path, 0777) == 0 && pin_open(home_path, &home, NULL) == 0 ? 0 : -1;
}

static int remove_home(void **state)
{
	(void)state;
	pin_close(&home);
	remove_directory(top);
	return 0;
}

static const char *in_home(const char *name)
{
	static char path[2][PATH_MAX + 64];
	static int turn;
	turn = !turn;
	(void)snprintf(path[turn], sizeof path[turn], "%s/%s", home_path, name);
	return path[turn];
}

static int make_file(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static bool is_holder_by(const char *path, pid_t pid)
{
	AUTO_PROCESSES struct process_list list = {0};
	assert_int_equal(process_holders(&home, path, &list, NULL), 0);
	return process_list_find(&list, pid) != NULL;
}
static bool is_holder(pid_t pid)
{
	return is_holder_by(home_path, pid);
}

static void by_cwd(void *argument)
{
	(void)argument;
	CHILD_CHECK(chdir(home_path) == 0);
}
static void by_cwd_below(void *argument)
{
	(void)argument;
	(void)mkdir(in_home("sub"), 0700);
	CHILD_CHECK(chdir(in_home("sub")) == 0);
}
static void by_deleted_cwd(void *argument)
{
	(void)argument;
	CHILD_CHECK(mkdir(in_home("gone"), 0700) == 0 && chdir(in_home("gone")) == 0 && rmdir(in_home("gone")) == 0);
}
static void by_open_file(void *argument)
{
	(void)argument;
	CHILD_CHECK(make_file(in_home("file")) >= 0);
}
static void by_deleted_file(void *argument)
{
	(void)argument;
	CHILD_CHECK(make_file(in_home("deleted")) >= 0 && unlink(in_home("deleted")) == 0);
}
static void by_open_directory(void *argument)
{
	(void)argument;
	CHILD_CHECK(open(home_path, O_RDONLY | O_DIRECTORY) >= 0);
}
static void by_mapping(void *argument)
{
	(void)argument;
	int fd = make_file(in_home("mapped\n1"));
	CHILD_CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	CHILD_CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED && close(fd) == 0);
}
static void by_deep_cwd(void *argument)
{
	(void)argument;
	char name[201];
	memset(name, 'n', sizeof name - 1);
	name[200] = '\0';
	CHILD_CHECK(chdir(home_path) == 0);
	for (int i = 0; i < 30; i++)
		CHILD_CHECK((mkdir(name, 0700) == 0 || errno == EEXIST) && chdir(name) == 0);
}
static void by_deep_file(void *argument)
{
	by_deep_cwd(argument);
	CHILD_CHECK(make_file("file") >= 0 && chdir("/") == 0);
}

/* A child has inherited the pin, which would make it a holder whatever it does. */
static void hold(void *how)
{
	child_body *const *body = how;
	pin_close(&home);
	(*body)(NULL);
	ready();
	wait_for_ever();
}

static void L03_every_way_to_hold_a_home(void **state)
{
	(void)state;
	const struct {
		const char *name;
		child_body *body;
	} ways[] = {
	    {"cwd", by_cwd},	     {"cwd below", by_cwd_below},	{"deleted cwd", by_deleted_cwd},
	    {"file", by_open_file},  {"deleted file", by_deleted_file}, {"directory", by_open_directory},
	    {"mapping", by_mapping}, {"deep cwd", by_deep_cwd},		{"deep file", by_deep_file},
	};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		child_body *body = ways[i].body;
		pid_t pid = start_child(hold, &body);
		if (!is_holder(pid))
			fail_msg("not seen: %s", ways[i].name);
		end_child(pid);
		assert_false(is_holder(pid));
	}
}

static void L03_program_of_the_home(void **state)
{
	(void)state;
	char command[3 * PATH_MAX];
	(void)snprintf(command, sizeof command, "cp /bin/sleep '%s'", in_home("program"));
	assert_int_equal(system(command), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)execl(in_home("program"), "sleep", "1000", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 200 && !is_holder(pid); i++)
		nap_ms(5);
	assert_true(is_holder(pid));
	end_child(pid);
}

static void by_sibling(void *argument)
{
	(void)argument;
	char path[PATH_MAX + 8];
	(void)snprintf(path, sizeof path, "%s2", home_path);
	CHILD_CHECK(mkdir(path, 0700) == 0 && chdir(path) == 0);
	CHILD_CHECK(open(top, O_RDONLY | O_DIRECTORY) >= 0);
}

static void neighbours_and_ourselves_are_no_holders(void **state)
{
	(void)state;
	child_body *body = by_sibling;
	pid_t pid = start_child(hold, &body);
	AUTO_CLOSE int own = open(home_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(own >= 0);
	AUTO_PROCESSES struct process_list list = {0};
	assert_int_equal(process_holders(&home, home_path, &list, NULL), 0);
	assert_int_equal(list.n, 0);
	end_child(pid);
}

static void L19_both_spellings_of_a_linked_root(void **state)
{
	(void)state;
	char link[PATH_MAX + 8];
	(void)snprintf(link, sizeof link, "%s/link", top);
	assert_int_equal(symlink(home_path, link), 0);
	child_body *body = by_open_file;
	pid_t pid = start_child(hold, &body);
	assert_true(is_holder_by(link, pid));
	assert_true(is_holder_by(home_path, pid));
	assert_true(is_holder_by("/somewhere/else", pid));
	end_child(pid);
}

static void own_users(void)
{
	if (geteuid() == 0)
		return;
	char map[64];
	(void)snprintf(map, sizeof map, "0 %u 1", geteuid());
	CHILD_CHECK(unshare(CLONE_NEWUSER) == 0);
	write_word("/proc/self", "uid_map", map);
}
static void own_mounts(void)
{
	own_users();
	CHILD_CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}
static void try_own_mounts(void *argument)
{
	(void)argument;
	(void)close(2);
	own_mounts();
}
static char elsewhere[PATH_MAX + 16];
static void by_bind_of_the_home(void *argument)
{
	(void)argument;
	own_mounts();
	CHILD_CHECK(mount(home_path, elsewhere, NULL, MS_BIND, NULL) == 0);
	char path[PATH_MAX + 32];
	(void)snprintf(path, sizeof path, "%s/in-sandbox", elsewhere);
	CHILD_CHECK(make_file(path) >= 0);
}
static void by_bind_of_a_part(void *argument)
{
	(void)argument;
	own_mounts();
	(void)mkdir(in_home("part"), 0700);
	CHILD_CHECK(mount(in_home("part"), elsewhere, NULL, MS_BIND, NULL) == 0 && chdir(elsewhere) == 0);
}
/* What was opened outside is still called as it is called outside. */
static void by_descriptor_from_outside(void *argument)
{
	by_open_file(argument);
	own_mounts();
	CHILD_CHECK(mount("none", top, "tmpfs", 0, NULL) == 0);
}

static void holders_in_other_mount_namespaces(void **state)
{
	(void)state;
	NEED(run_child(try_own_mounts, NULL) == 0, "no mount namespace of our own");
	(void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", top);
	assert_int_equal(mkdir(elsewhere, 0777), 0);
	child_body *bodies[] = {by_bind_of_the_home, by_bind_of_a_part, by_descriptor_from_outside};
	for (size_t i = 0; i < 3; i++) {
		pid_t pid = start_child(hold, &bodies[i]);
		assert_true(is_holder(pid));
		end_child(pid);
	}
}

static void by_root(void *argument)
{
	(void)argument;
	own_users();
	CHILD_CHECK(chroot(home_path) == 0);
}

static void holder_by_root_directory(void **state)
{
	(void)state;
	child_body *body = by_root;
	pid_t pid = start_child(hold, &body);
	assert_true(is_holder(pid));
	end_child(pid);
}

static void plain_holder(void *argument)
{
	(void)argument;
	pin_close(&home);
	become_plain_user();
	by_cwd(NULL);
	ready();
	wait_for_ever();
}

struct looker {
	pid_t plain, other;
};
static void plain_looks(void *argument)
{
	const struct looker *looker = argument;
	become_plain_user();
	AUTO_PROCESSES struct process_list list = {0};
	CHILD_CHECK(process_holders(&home, home_path, &list, NULL) == 0);
	CHILD_CHECK(process_list_find(&list, looker->plain) != NULL);
	CHILD_CHECK(process_list_find(&list, looker->other) == NULL);
}

static void another_users_holder(void **state)
{
	(void)state;
	assert_int_equal(geteuid(), 0);
	child_body *body = by_cwd;
	struct looker looker = {.plain = start_child(plain_holder, NULL), .other = start_child(hold, &body)};
	assert_true(is_holder(looker.plain));
	assert_true(is_holder(looker.other));
	assert_int_equal(run_child(plain_looks, &looker), 0);
	end_child(looker.plain);
	end_child(looker.other);
}

static void *sit(void *argument)
{
	(void)argument;
	ready();
	wait_for_ever();
	return NULL;
}
static void leader_leaves(void *argument)
{
	(void)argument;
	pin_close(&home);
	pthread_t thread;
	by_open_file(NULL);
	(void)pthread_create(&thread, NULL, sit, NULL);
	pthread_exit(NULL);
}

static void holder_whose_leader_has_ended(void **state)
{
	(void)state;
	pid_t pid = start_child(leader_leaves, NULL);
	struct process process = {0};
	for (int i = 0; i < 200 && process.state != 'Z'; i++) {
		nap_ms(5);
		assert_int_equal(process_read(pid, &process, NULL), 0);
	}
	assert_true(is_holder(pid));
	end_child(pid);
}

static void by_cwd_with_much_memory(void *argument)
{
	size_t size = (size_t)768 << 20;
	by_cwd(argument);
	CHILD_CHECK(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) != MAP_FAILED);
}

/* It still has its directory while its memory is given back, which takes a while; but it does nothing any more. */
static void who_has_been_killed_holds_nothing(void **state)
{
	(void)state;
	child_body *body = by_cwd_with_much_memory;
	pid_t pid = start_child(hold, &body);
	struct process process = {0};
	assert_true(is_holder(pid));
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (!process.ending)
		assert_int_equal(process_read(pid, &process, NULL), 0);
	assert_false(is_holder(pid));
	end_child(pid);
}

static void hold_gate(void *gate)
{
	pin_close(&home);
	int fd = open(gate, O_RDWR | O_CREAT, 0600);
	CHILD_CHECK(fd >= 0 && flock(fd, LOCK_SH) == 0);
	ready();
	wait_for_ever();
}

static void X40_gate_holders_by_identity_not_by_name(void **state)
{
	(void)state;
	AUTO_PROCESSES struct process_list none = {0}, list = {0};
	assert_int_equal(process_gate_holders(&home, "p@a@boot.lock", &none, NULL), 0);
	assert_int_equal(none.n, 0);
	char gate[PATH_MAX + 64], other[PATH_MAX + 64], link[PATH_MAX + 64];
	(void)snprintf(gate, sizeof gate, "%s/p@a@boot.lock", home_path);
	(void)snprintf(other, sizeof other, "%s/p@ab@boot.lock", home_path);
	(void)snprintf(link, sizeof link, "%s/p@c@boot.lock", home_path);
	pid_t holder = start_child(hold_gate, gate), innocent = start_child(hold_gate, other);
	AUTO_CLOSE int own = open(gate, O_RDONLY | O_CLOEXEC);
	assert_true(own >= 0);
	assert_int_equal(process_gate_holders(&home, "p@a@boot.lock", &list, NULL), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.v[0].pid, holder);
	assert_int_equal(symlink(gate, link), 0);
	process_list_free(&list);
	assert_int_equal(process_gate_holders(&home, "p@c@boot.lock", &list, NULL), 0);
	assert_int_equal(list.n, 0);
	end_child(holder);
	process_list_free(&list);
	assert_int_equal(process_gate_holders(&home, "p@a@boot.lock", &list, NULL), 0);
	assert_int_equal(list.n, 0);
	end_child(innocent);
}

static void recreate(void *argument)
{
	(void)argument;
	pin_close(&home);
	int directory = open(home_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHILD_CHECK(directory >= 0);
	ready();
	for (;;) {
		int fd = openat(directory, "again", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		close_quietly(fd);
		nap_ms(20);
	}
}

static void L15_writer_from_outside_is_named(void **state)
{
	(void)state;
	pid_t pid = start_child(recreate, NULL);
	AUTO_PROCESSES struct process_list list = {0};
	assert_int_equal(process_holders(&home, home_path, &list, NULL), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.v[0].pid, pid);
	assert_string_equal(list.v[0].comm, "unit_test_holde");
	end_child(pid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest as_root[] = {cmocka_unit_test_setup_teardown(another_users_holder, make_home, remove_home)};
	if (asked_for(argc, argv, "as-root"))
		return cmocka_run_group_tests(as_root, NULL, NULL);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(L03_every_way_to_hold_a_home, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(L03_program_of_the_home, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(neighbours_and_ourselves_are_no_holders, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(L19_both_spellings_of_a_linked_root, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(holders_in_other_mount_namespaces, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(holder_by_root_directory, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(holder_whose_leader_has_ended, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(who_has_been_killed_holds_nothing, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(X40_gate_holders_by_identity_not_by_name, make_home, remove_home),
	    cmocka_unit_test_setup_teardown(L15_writer_from_outside_is_named, make_home, remove_home),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
