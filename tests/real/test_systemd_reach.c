/* Reaching the user manager, and what stands in the way: environment unset, foreign directories, silent and dead managers, masks, foreign files. */
#include "tests/real/systemd_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fsops/cleanup.h"

/* The environment as it was. */
static char runtime[256], bus_address[512];

static int begin(void **state)
{
	snprintf(runtime, sizeof runtime, "%s", getenv("XDG_RUNTIME_DIR") ? getenv("XDG_RUNTIME_DIR") : "");
	snprintf(bus_address, sizeof bus_address, "%s", getenv("DBUS_SESSION_BUS_ADDRESS") ? getenv("DBUS_SESSION_BUS_ADDRESS") : "");
	return fixture_begin(state);
}

static int restore(void **unused)
{
	(void)unused;
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	setenv("DBUS_SESSION_BUS_ADDRESS", bus_address, 1);
	return 0;
}

static void opens(void)
{
	struct service *service = NULL;
	MUST(service_systemd.open(&fixture.context, &service, &err));
	struct service_listing listing = {0};
	MUST(service->ops->list(service, &listing, &err));
	service_listing_free(&listing);
	service_close(&service);
	assert_null(service);
}

static void does_not_open(const char *text, int64_t within_ms)
{
	struct service *service = NULL;
	int64_t before = monotonic_ns();
	REFUSED(service_systemd.open(&fixture.context, &service, &err), REFUSAL_NO_MANAGER, text);
	assert_null(service);
	assert_true((monotonic_ns() - before) / 1000000 < within_ms);
}

static void L28_found_by_uid_without_environment(void **unused)
{
	(void)unused;
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	opens();
	setenv("XDG_RUNTIME_DIR", "", 1);
	opens();
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	opens();
	setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere", 1);
	opens();
}

static void L28_a_runtime_directory_of_another_user_is_refused(void **unused)
{
	(void)unused;
	char path[300] = "/proc";
	if (geteuid() == 0) {
		snprintf(path, sizeof path, "%s/foreign", fixture.directory);
		assert_int_equal(mkdir(path, 0755), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
	}
	setenv("XDG_RUNTIME_DIR", path, 1);
	does_not_open(geteuid() == 0 ? "belongs to uid 65534" : "belongs to uid 0", 1000);
}

static void L28_an_empty_runtime_directory_gets_a_remedy_that_can_work(void **unused)
{
	(void)unused;
	char path[300];
	snprintf(path, sizeof path, "%s/empty", fixture.directory);
	assert_int_equal(mkdir(path, 0700), 0);
	setenv("XDG_RUNTIME_DIR", path, 1);
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	does_not_open(path, 1000);
	struct stat st;
	struct service *service = NULL;
	struct err err = {0};
	assert_true(service_systemd.open(&fixture.context, &service, &err) < 0);
	if (stat("/run/systemd/users", &st) < 0)
		assert_null(strstr(err.text, "loginctl"));
	/* The bus beside it that the environment names is as good. */
	setenv("DBUS_SESSION_BUS_ADDRESS", bus_address, 1);
	opens();
}

/* A runtime directory with a private socket that nobody (listening false) or somebody silent holds. */
static int make_socket(const char *name, bool listening)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[300];
	snprintf(path, sizeof path, "%s/%s", fixture.directory, name);
	assert_int_equal(mkdir(path, 0700), 0);
	setenv("XDG_RUNTIME_DIR", path, 1);
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	strcat(path, "/systemd");
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%.90s/private", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	if (listening)
		assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static void a_dead_socket_is_told(void **unused)
{
	(void)unused;
	AUTO_CLOSE int fd = make_socket("dead", false);
	assert_true(fd >= 0);
	does_not_open("Connection refused", 1000);
}

static void X58_a_silent_peer_is_waited_for_in_bounds(void **unused)
{
	(void)unused;
	AUTO_CLOSE int fd = make_socket("silent", true);
	assert_true(fd >= 0);
	does_not_open("does not answer", 8000);
}

static void X58_a_lost_answer_is_asked_for_again(void **unused)
{
	(void)unused;
	pod_up("lost");
	run("systemctl --user daemon-reexec");
	struct unit_state state = pod_await("lost", UNIT_ACTIVE, 20000);
	assert_true(state.main_pid > 0);
	run("systemctl --user daemon-reexec");
	pod_down("lost");
}

/* Without the manager's own socket all goes through the broker, signals included. */
static void the_bus_alone_is_enough(void **unused)
{
	(void)unused;
	char path[300];
	snprintf(path, sizeof path, "%s/bus-only", fixture.directory);
	assert_int_equal(mkdir(path, 0700), 0);
	setenv("XDG_RUNTIME_DIR", path, 1);
	setenv("DBUS_SESSION_BUS_ADDRESS", bus_address, 1);
	struct service *direct = fixture.service;
	MUST(service_systemd.open(&fixture.context, &fixture.service, &err));
	pod_up("exit-70");
	struct unit_state state = pod_await("exit-70", UNIT_FAILED, 5000);
	assert_int_equal(state.status, 70);
	pod_down("exit-70");
	pod_up("via-bus");
	state = pod_await("via-bus", UNIT_ACTIVE, 5000);
	assert_int_equal(kill(state.main_pid, SIGKILL), 0);
	(void)pod_await("via-bus", UNIT_RESTARTING, 5000);
	pod_down("via-bus");
	service_close(&fixture.service);
	fixture.service = direct;
}

/* ---- X07, X26 ---- */

static struct service_unit unit_for(struct pod_name *name, const char *text)
{
	*name = pod(text);
	return (struct service_unit){.name = name, .spec = &fixture.spec};
}

#define INSTALL(name)                               \
	({                                          \
		struct pod_name parsed;             \
		struct service_unit unit = unit_for(&parsed, name); \
		fixture.service->ops->install(fixture.service, &unit, &err); \
	})

static void in_unit_directory(const char *command)
{
	char text[9000];
	snprintf(text, sizeof text, "set -e; cd '%s'; P='%s'; %s", fixture.unit_directory, fixture.plane.prefix, command);
	run(text);
}

static void X26_a_masked_unit_stays_masked(void **unused)
{
	(void)unused;
	MUST(INSTALL("masked"));
	in_unit_directory("ln -s /dev/null $P@masked.service; systemctl --user daemon-reload");
	REFUSED(INSTALL("masked"), REFUSAL_BAD_CONFIG, "masked");
	in_unit_directory("test -L $P@masked.service; rm $P@masked.service; systemctl --user daemon-reload");
	MUST(INSTALL("masked"));
	in_unit_directory("mv $P@.service keep.$P; ln -s /dev/null $P@.service; systemctl --user daemon-reload");
	REFUSED(INSTALL("masked"), REFUSAL_UNSAFE_PATH, "perhaps a mask");
	in_unit_directory("test -L $P@.service; mv keep.$P $P@.service; systemctl --user daemon-reload");
}

static void X26_foreign_drop_ins_that_matter_are_named(void **unused)
{
	(void)unused;
	drop_in("foreign", "99-evil.conf", "[Service]\nRestart=always\n");
	run("systemctl --user daemon-reload");
	REFUSED(INSTALL("foreign"), REFUSAL_BAD_CONFIG, "Restart= is overridden by");
	REFUSED(INSTALL("foreign"), REFUSAL_BAD_CONFIG, "99-evil.conf");
	drop_in("foreign", "99-evil.conf", "[Service]\nExecStart=\nExecStart=/bin/true\n");
	/* Not told to systemd: seen because NeedDaemonReload says so. */
	REFUSED(INSTALL("foreign"), REFUSAL_BAD_CONFIG, "ExecStart= is overridden by");
	drop_in("foreign", "99-evil.conf", "[Service]\nRestartPreventExitStatus=\n");
	REFUSED(INSTALL("foreign"), REFUSAL_BAD_CONFIG, "RestartPreventExitStatus= is overridden by");
	drop_in("foreign", "99-evil.conf", "[Service]\nNice=5\n");
	MUST(INSTALL("foreign"));
	struct pod_name name = pod("foreign");
	MUST(fixture.service->ops->forget(fixture.service, &name, &err));
}

static void X26_what_was_told_ahead_counts_for_the_files_of_then(void **unused)
{
	(void)unused;
	struct pod_name name = pod("ahead");
	MUST(INSTALL("ahead"));
	fixture.service->ops->prepare(fixture.service, &name);
	MUST(INSTALL("ahead"));
	fixture.service->ops->prepare(fixture.service, &name);
	drop_in("ahead", "99-evil.conf", "[Service]\nRestart=always\n");
	REFUSED(INSTALL("ahead"), REFUSAL_BAD_CONFIG, "Restart= is overridden by");
	MUST(fixture.service->ops->forget(fixture.service, &name, &err));
}

static void X07_links_in_place_of_unit_directories_are_refused(void **unused)
{
	(void)unused;
	strcpy(fixture.spec.memory_max, "64M");
	in_unit_directory("mkdir /tmp/elsewhere.$P; ln -s /tmp/elsewhere.$P $P@linked.service.d");
	REFUSED(INSTALL("linked"), REFUSAL_UNSAFE_PATH, "a link stands");
	in_unit_directory("test -z \"$(ls -A /tmp/elsewhere.$P)\"; rm $P@linked.service.d; ln -s /nowhere $P@linked.service.d");
	REFUSED(INSTALL("linked"), REFUSAL_UNSAFE_PATH, "a link stands");
	/* Forgetting follows it as little, and it is not ours to delete. */
	in_unit_directory("rm $P@linked.service.d; touch /tmp/elsewhere.$P/kept; ln -s /tmp/elsewhere.$P $P@linked.service.d");
	struct pod_name name = pod("linked");
	MUST(fixture.service->ops->forget(fixture.service, &name, &err));
	in_unit_directory("test -e /tmp/elsewhere.$P/kept; test -L $P@linked.service.d; rm -r /tmp/elsewhere.$P $P@linked.service.d");
	*fixture.spec.memory_max = 0;

	struct plane kept = fixture.plane;
	snprintf(fixture.plane.config_home, sizeof fixture.plane.config_home, "%s/config", fixture.directory);
	char command[9000];
	snprintf(command, sizeof command, "mkdir -p '%s/systemd' '%s/elsewhere'; ln -s '%s/elsewhere' '%s/systemd/user'", fixture.plane.config_home,
		 fixture.directory, fixture.directory, fixture.plane.config_home);
	run(command);
	struct err err = {0};
	int r = INSTALL("linked");
	fixture.plane = kept;
	refused_with(r, &err, REFUSAL_UNSAFE_PATH, "a link stands");
}

static void a_template_of_another_plane_in_use_is_refused(void **unused)
{
	(void)unused;
	pod_up("mine");
	char root[sizeof fixture.plane.root];
	strcpy(root, fixture.plane.root);
	strcat(fixture.plane.root, "-other");
	REFUSED(INSTALL("theirs"), REFUSAL_BAD_CONFIG, "KIROCREW_POD_UNIT_PREFIX");
	pod_down("mine");
	MUST(INSTALL("theirs"));
	strcpy(fixture.plane.root, root);
	MUST(INSTALL("mine"));
}

static void what_systemd_cannot_load_is_not_left_as_loaded(void **unused)
{
	(void)unused;
	/* Outside the manager's search path nothing that is written is ever loaded. */
	char kept[sizeof fixture.plane.config_home];
	strcpy(kept, fixture.plane.config_home);
	in_unit_directory("rm -f $P@.service; systemctl --user daemon-reload");
	snprintf(fixture.plane.config_home, sizeof fixture.plane.config_home, "%s/unsearched", fixture.directory);
	struct err err = {0};
	int r = INSTALL("unsearched");
	strcpy(fixture.plane.config_home, kept);
	refused_with(r, &err, REFUSAL_BAD_CONFIG, "cannot load the unit (not-found)");
	char command[600];
	snprintf(command, sizeof command, "test -z \"$(find '%s/unsearched' -type f)\"", fixture.directory);
	run(command);
}

/* ---- last: the manager does not come back ---- */

static void X58_X43_a_killed_manager_is_told_in_bounds(void **unused)
{
	(void)unused;
	const char *pid = getenv("USER_MANAGER_PID");
	if (!pid) {
		if (must_work())
			fail_msg("not run under a manager of its own");
		print_message("the host's own user manager is not stopped for a test\n");
		skip();
	}
	pod_up("orphan");
	struct pod_name name = pod("orphan");
	struct unit_state state;
	MUST(fixture.service->ops->query(fixture.service, &name, &state, &err));
	assert_int_equal(kill((pid_t)atoi(pid), SIGSTOP), 0);
	does_not_open("does not answer", 20000);
	assert_int_equal(kill((pid_t)atoi(pid), SIGCONT), 0);
	opens();
	assert_int_equal(kill((pid_t)atoi(pid), SIGKILL), 0);
	int64_t before = monotonic_ns();
	REFUSED(fixture.service->ops->wait(fixture.service, &name, deadline_in_ms(10000), &state, &err), REFUSAL_NO_MANAGER, "");
	REFUSED(fixture.service->ops->stop(fixture.service, &name, 1000, NULL, &err), REFUSAL_NO_MANAGER, "");
	assert_true((monotonic_ns() - before) / 1000000 < 20000);
	assert_int_equal(kill(state.main_pid, 0), 0);
	does_not_open("", 10000);
	assert_int_equal(kill(state.main_pid, SIGKILL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(L28_found_by_uid_without_environment, restore),
		cmocka_unit_test_teardown(L28_a_runtime_directory_of_another_user_is_refused, restore),
		cmocka_unit_test_teardown(L28_an_empty_runtime_directory_gets_a_remedy_that_can_work, restore),
		cmocka_unit_test_teardown(a_dead_socket_is_told, restore),
		cmocka_unit_test_teardown(X58_a_silent_peer_is_waited_for_in_bounds, restore),
		cmocka_unit_test(X58_a_lost_answer_is_asked_for_again),
		cmocka_unit_test_teardown(the_bus_alone_is_enough, restore),
		cmocka_unit_test(X26_a_masked_unit_stays_masked),
		cmocka_unit_test(X26_foreign_drop_ins_that_matter_are_named),
		cmocka_unit_test(X26_what_was_told_ahead_counts_for_the_files_of_then),
		cmocka_unit_test(X07_links_in_place_of_unit_directories_are_refused),
		cmocka_unit_test(a_template_of_another_plane_in_use_is_refused),
		cmocka_unit_test(what_systemd_cannot_load_is_not_left_as_loaded),
		cmocka_unit_test(X58_X43_a_killed_manager_is_told_in_bounds),
	};
	return cmocka_run_group_tests(tests, begin, fixture_end);
}
