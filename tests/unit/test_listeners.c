#include "tests/unit/process_help.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "pod/system/network.h"

struct shared {
	int port;
	pid_t pid;
	char cgroup[600];
	int fd;
};
static struct shared *shared;

static int make_shared(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? -1 : 0;
}

static struct listener owner_of(int port, const struct unit_group *group)
{
	AUTO_LISTENERS struct listeners *listeners = NULL;
	struct listener listener = {0};
	struct err err = {0};
	assert_int_equal(listeners_read(0, &listeners, &err), 0);
	assert_int_equal(listener_of(listeners, port, group, &listener, &err), 0);
	return listener;
}

static bool listed(const struct listening *v, size_t n, int port)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].port == port)
			return true;
	return false;
}

static void who_would_answer_on_loopback(void **state)
{
	(void)state;
	const struct {
		int family;
		const char *address;
		bool v6_only, answers, proc_says;
	} cases[] = {
	    {AF_INET, "127.0.0.1", false, true, true},
	    {AF_INET, "0.0.0.0", false, true, true},
	    {AF_INET, "127.0.0.2", false, false, false},
	    {AF_INET6, "::", false, true, true},
	    {AF_INET6, "::", true, false, true},
	    {AF_INET6, "::1", false, false, false},
	    {AF_INET6, "::ffff:127.0.0.1", false, true, true},
	    {AF_INET6, "::ffff:127.0.0.2", false, false, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int port = 0;
		AUTO_CLOSE int fd = listen_on(cases[i].family, cases[i].address, &port, false, cases[i].v6_only);
		if (fd < 0 && cases[i].family == AF_INET6) {
			print_message("no IPv6 here: %s is not asked\n", cases[i].address);
			continue;
		}
		assert_true(fd >= 0);
		AUTO_LISTENERS struct listeners *listeners = NULL;
		assert_int_equal(listeners_read(0, &listeners, NULL), 0);
		AUTO_LISTENERS struct listeners *here = NULL, *elsewhere = NULL;
		assert_int_equal(listeners_read(port, &here, NULL), 0);
		assert_int_equal(listeners_read(port == 65535 ? 1 : port + 1, &elsewhere, NULL), 0);
		if (listeners_any(listeners, port) != cases[i].answers || listeners_any(here, port) != cases[i].answers)
			fail_msg("%s: %d", cases[i].address, !cases[i].answers);
		assert_int_equal(listeners_count(here), cases[i].answers);
		assert_false(listeners_any(elsewhere, port));
		AUTO_FREE struct listening *from_proc = NULL;
		size_t count = 0;
		assert_int_equal(listening_from_proc(&from_proc, &count, NULL), 0);
		if (listed(from_proc, count, port) != cases[i].proc_says)
			fail_msg("/proc/net, %s: %d", cases[i].address, !cases[i].proc_says);
		close_quietly(take_fd(&fd));
		struct unit_group nobody = {0};
		assert_int_equal(owner_of(port, &nobody).owner, PORT_NOBODY);
	}
}

static void port_is_free_when_nobody_listens(void **state)
{
	(void)state;
	bool is_free = true;
	int port = 0;
	AUTO_CLOSE int fd = listen_on(AF_INET, "0.0.0.0", &port, true, false);
	assert_int_equal(port_is_free(port, &is_free, NULL), 0);
	assert_false(is_free);
	close_quietly(take_fd(&fd));
	assert_int_equal(port_is_free(port, &is_free, NULL), 0);
	assert_true(is_free);
	struct err err = {0};
	assert_int_equal(port_is_free(0, &is_free, NULL), -EINVAL);
	assert_int_equal(port_is_free(65536, &is_free, &err), -EINVAL);
	assert_string_equal(err.subject, "65536");
}

static void listen_here(void *argument)
{
	(void)argument;
	shared->pid = getpid();
	CHILD_CHECK(listen_on(AF_INET, "127.0.0.1", &shared->port, true, false) >= 0);
	ready();
	wait_for_ever();
}
static void listen_in_cgroup(void *cgroup)
{
	enter_cgroup(cgroup);
	listen_here(NULL);
}
/* A keeper whose child listens. */
static void keep_listener(void *argument)
{
	if (fork() == 0)
		listen_here(argument);
	wait_for_ever();
}
static void inherit_in_cgroup(void *cgroup)
{
	enter_cgroup(cgroup);
	ready();
	wait_for_ever();
}

static void L31_squatter_is_foreign_and_named(void **state)
{
	(void)state;
	shared->port = 0;
	pid_t squatter = start_child(listen_here, NULL), other = start_child(just_wait, NULL);
	const struct unit_group groups[] = {{.tree = 0}, {.tree = other}, {.pod_id = "11111111-2222-3333-4444-555555555555"}};
	for (size_t i = 0; i < 3; i++) {
		struct listener listener = owner_of(shared->port, &groups[i]);
		assert_int_equal(listener.owner, PORT_FOREIGN);
		assert_int_equal(listener.pid, squatter);
		assert_string_equal(listener.program, "unit_test_liste");
	}
	end_child(squatter);
	end_child(other);
}

static void L31_squatter_against_a_cgroup(void **state)
{
	(void)state;
	struct unit_group group = {0};
	NEED(make_cgroup(group.cgroup), "no cgroup2 in which we may make a group");
	shared->port = 0;
	pid_t squatter = start_child(listen_here, NULL), pod = start_child(inherit_in_cgroup, group.cgroup);
	struct listener listener = owner_of(shared->port, &group);
	assert_int_equal(listener.owner, PORT_FOREIGN);
	assert_int_equal(listener.pid, squatter);
	end_child(squatter);
	assert_int_equal(owner_of(shared->port, &group).owner, PORT_NOBODY);
	end_child(pod);
	remove_cgroup(group.cgroup);
}

static void X34_two_listeners_by_reuseport(void **state)
{
	(void)state;
	struct unit_group group = {0};
	NEED(make_cgroup(group.cgroup), "no cgroup2 in which we may make a group");
	shared->port = 0;
	pid_t pod = start_child(listen_in_cgroup, group.cgroup);
	struct listener listener = owner_of(shared->port, &group);
	assert_int_equal(listener.owner, PORT_OURS);
	assert_int_equal(listener.pid, pod);
	pid_t thief = start_child(listen_here, NULL);
	listener = owner_of(shared->port, &group);
	assert_int_equal(listener.owner, PORT_FOREIGN);
	assert_int_equal(listener.pid, thief);
	end_child(pod);
	end_child(thief);
	remove_cgroup(group.cgroup);
}

static void X34_two_listeners_by_reuseport_in_a_tree(void **state)
{
	(void)state;
	shared->port = 0;
	pid_t keeper = start_child(keep_listener, NULL), pod = shared->pid;
	struct unit_group group = {.tree = keeper};
	struct listener listener = owner_of(shared->port, &group);
	assert_int_equal(listener.owner, PORT_OURS);
	assert_int_equal(listener.pid, pod);
	pid_t thief = start_child(listen_here, NULL);
	listener = owner_of(shared->port, &group);
	assert_int_equal(listener.owner, PORT_FOREIGN);
	assert_int_equal(listener.pid, thief);
	end_child(thief);
	(void)kill(pod, SIGKILL);
	end_child(keeper);
}

static void X34_made_outside_and_inherited(void **state)
{
	(void)state;
	struct unit_group group = {0};
	NEED(make_cgroup(group.cgroup), "no cgroup2 in which we may make a group");
	int port = 0;
	AUTO_CLOSE int fd = listen_on(AF_INET, "127.0.0.1", &port, false, false);
	assert_true(fd >= 0);
	pid_t pod = start_child(inherit_in_cgroup, group.cgroup);
	close_quietly(take_fd(&fd)); /* only the pod's process holds it now */
	struct listener listener = owner_of(port, &group);
	assert_int_equal(listener.owner, PORT_FOREIGN);
	assert_int_equal(listener.pid, pod);
	end_child(pod);
	remove_cgroup(group.cgroup);
}

static void X34_made_in_a_sub_group(void **state)
{
	(void)state;
	struct unit_group group = {0};
	NEED(make_cgroup(group.cgroup), "no cgroup2 in which we may make a group");
	(void)snprintf(shared->cgroup, sizeof shared->cgroup, "%s/below", group.cgroup);
	assert_int_equal(mkdir(shared->cgroup, 0755), 0);
	shared->port = 0;
	pid_t pod = start_child(listen_in_cgroup, shared->cgroup);
	struct listener listener = owner_of(shared->port, &group);
	assert_int_equal(listener.owner, PORT_OURS);
	assert_int_equal(listener.pid, pod);
	struct unit_group only_below = {0};
	(void)snprintf(only_below.cgroup, sizeof only_below.cgroup, "%s", shared->cgroup);
	assert_int_equal(owner_of(shared->port, &only_below).owner, PORT_OURS);
	end_child(pod);
	remove_cgroup(shared->cgroup);
	remove_cgroup(group.cgroup);
}

static void shared_with_a_stranger_is_foreign_in_a_tree(void **state)
{
	(void)state;
	int port = 0;
	int fd = listen_on(AF_INET, "127.0.0.1", &port, false, false);
	pid_t keeper = start_child(keep_listener, NULL);
	struct unit_group group = {.tree = keeper};
	/* The keeper itself and its child have inherited it, and we hold it, too. */
	struct listener listener = owner_of(port, &group);
	assert_int_equal(listener.owner, PORT_FOREIGN);
	assert_true(listener.pid == getpid() || listener.pid == keeper);
	close_quietly(fd);
	(void)kill(shared->pid, SIGKILL);
	end_child(keeper);
}

static void fork_while_listening(void *argument)
{
	(void)argument;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)signal(SIGCHLD, SIG_IGN);
	if (fork() == 0) {
		shared->pid = getpid();
		CHILD_CHECK(listen_on(AF_INET, "127.0.0.1", &shared->port, false, false) >= 0);
		ready();
		for (;;) { /* workers that inherit the listener come and go */
			if (fork() == 0) {
				nap_ms(3);
				_exit(0);
			}
			nap_ms(1);
		}
	}
	wait_for_ever();
}

static void a_young_worker_is_no_stranger(void **state)
{
	(void)state;
	shared->port = 0;
	pid_t keeper = start_child(fork_while_listening, NULL);
	struct unit_group group = {.tree = keeper};
	for (int i = 0; i < 40; i++)
		assert_int_equal(owner_of(shared->port, &group).owner, PORT_OURS);
	(void)kill(shared->pid, SIGKILL);
	end_child(keeper);
}

static void closed_to_us(void *cgroup)
{
	enter_cgroup(cgroup);
	become_plain_user();
	CHILD_CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
	listen_here(NULL);
}
static void look_as_plain_user(void *cgroup)
{
	become_plain_user();
	struct unit_group group = {0}, none = {0};
	(void)snprintf(group.cgroup, sizeof group.cgroup, "%s", (const char *)cgroup);
	AUTO_LISTENERS struct listeners *listeners = NULL;
	struct listener listener = {0};
	CHILD_CHECK(listeners_read(0, &listeners, NULL) == 0);
	CHILD_CHECK(listener_of(listeners, shared->port, &group, &listener, NULL) == 0);
	CHILD_CHECK(listener.owner == PORT_OURS && listener.pid == 0);
	CHILD_CHECK(listener_of(listeners, shared->port, &none, &listener, NULL) == 0);
	CHILD_CHECK(listener.owner == PORT_UNKNOWN);
}
static void member_that_is_not_dumpable(void **state)
{
	(void)state;
	char cgroup[512];
	NEED(make_cgroup(cgroup), "no cgroup2 in which we may make a group");
	shared->port = 0;
	pid_t pod = start_child(closed_to_us, cgroup);
	assert_int_equal(run_child(look_as_plain_user, cgroup), 0);
	end_child(pod);
	remove_cgroup(cgroup);
}

static void roots_listener_seen_by_a_plain_user(void *argument)
{
	(void)argument;
	become_plain_user();
	struct unit_group none = {0};
	AUTO_LISTENERS struct listeners *listeners = NULL;
	struct listener listener = {0};
	CHILD_CHECK(listeners_read(0, &listeners, NULL) == 0);
	CHILD_CHECK(listener_of(listeners, shared->port, &none, &listener, NULL) == 0);
	CHILD_CHECK(listener.owner == PORT_FOREIGN && listener.pid == 0 && !*listener.program);
}
static void another_users_listener_is_foreign(void **state)
{
	(void)state;
	assert_int_equal(geteuid(), 0);
	shared->port = 0;
	pid_t squatter = start_child(listen_here, NULL);
	assert_int_equal(run_child(roots_listener_seen_by_a_plain_user, NULL), 0);
	end_child(squatter);
}

static void without_netlink(void *argument)
{
	(void)argument;
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHILD_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	struct listening *v;
	size_t n;
	CHILD_CHECK(listening_from_sock_diag(0, &v, &n, NULL) == -EACCES);
	struct unit_group group = {0}, none = {0};
	(void)snprintf(group.cgroup, sizeof group.cgroup, "%s", shared->cgroup);
	AUTO_LISTENERS struct listeners *listeners = NULL;
	struct listener listener = {0};
	CHILD_CHECK(listeners_read(0, &listeners, NULL) == 0);
	CHILD_CHECK(listener_of(listeners, shared->port, &none, &listener, NULL) == 0);
	CHILD_CHECK(listener.owner == PORT_FOREIGN && listener.pid == shared->pid);
	if (!*group.cgroup)
		return;
	CHILD_CHECK(listener_of(listeners, shared->port, &group, &listener, NULL) == 0);
	CHILD_CHECK(listener.owner == PORT_OURS && listener.pid == shared->pid);
}

static void X64_without_netlink_by_proc_net(void **state)
{
	(void)state;
	char cgroup[512] = "";
	bool grouped = make_cgroup(cgroup);
	(void)snprintf(shared->cgroup, sizeof shared->cgroup, "%s", grouped ? cgroup : "");
	shared->port = 0;
	pid_t pod = grouped ? start_child(listen_in_cgroup, cgroup) : start_child(listen_here, NULL);
	assert_int_equal(run_child(without_netlink, NULL), 0);
	end_child(pod);
	if (grouped)
		remove_cgroup(cgroup);
}

static void listen_often(void *argument)
{
	(void)argument;
	struct rlimit limit = {2048, 2048};
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	int made = 0;
	for (int port = 0; made < 1000; port = 0, made++)
		if (listen_on(AF_INET, "127.0.0.1", &port, false, false) < 0)
			break;
	shared->port = made;
	ready();
	wait_for_ever();
}

static void a_thousand_listeners(void **state)
{
	(void)state;
	pid_t pid = start_child(listen_often, NULL);
	int made = shared->port;
	NEED(made >= 900, "not enough descriptors or ports");
	int64_t began = monotonic_ns();
	AUTO_LISTENERS struct listeners *listeners = NULL;
	assert_int_equal(listeners_read(0, &listeners, NULL), 0);
	int64_t read_ns = monotonic_ns() - began;
	assert_true(listeners_count(listeners) >= (size_t)made);
	began = monotonic_ns();
	int found = 0;
	for (int port = 1; port <= 65535; port++)
		found += listeners_any(listeners, port);
	assert_true(found >= made);
	int64_t lookup_ns = monotonic_ns() - began;
	began = monotonic_ns();
	const struct socket_holder *holders;
	size_t count;
	assert_int_equal(listeners_holders(listeners, 1, &holders, &count, NULL), 0);
	assert_int_equal(count, 0);
	print_message("%d listeners: dump %d us, 65,535 lookups %d us, holders of all %d us\n", made, (int)(read_ns / 1000),
		      (int)(lookup_ns / 1000), (int)((monotonic_ns() - began) / 1000));
	end_child(pid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest as_root[] = {cmocka_unit_test(another_users_listener_is_foreign)};
	if (asked_for(argc, argv, "as-root"))
		return cmocka_run_group_tests(as_root, make_shared, NULL);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_would_answer_on_loopback),
	    cmocka_unit_test(port_is_free_when_nobody_listens),
	    cmocka_unit_test(L31_squatter_is_foreign_and_named),
	    cmocka_unit_test(L31_squatter_against_a_cgroup),
	    cmocka_unit_test(X34_two_listeners_by_reuseport),
	    cmocka_unit_test(X34_two_listeners_by_reuseport_in_a_tree),
	    cmocka_unit_test(X34_made_outside_and_inherited),
	    cmocka_unit_test(X34_made_in_a_sub_group),
	    cmocka_unit_test(shared_with_a_stranger_is_foreign_in_a_tree),
	    cmocka_unit_test(a_young_worker_is_no_stranger),
	    cmocka_unit_test(member_that_is_not_dumpable),
	    cmocka_unit_test(X64_without_netlink_by_proc_net),
	    cmocka_unit_test(a_thousand_listeners),
	};
	return cmocka_run_group_tests(tests, make_shared, NULL);
}
