/* The systemd backend against a real user manager: install, start, query, wait, stop, list, logs, forget. */
#include "tests/real/systemd_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pod/system/journal.h"
#include "pod/system/process.h"

static const struct service_ops *ops;

static int begin(void **state)
{
	int r = fixture_begin(state);
	ops = fixture.service ? fixture.service->ops : NULL;
	return r;
}

static struct unit_state queried(const char *name)
{
	struct pod_name parsed = pod(name);
	struct unit_state state;
	MUST(ops->query(fixture.service, &parsed, &state, &err));
	return state;
}

static void unknown_is_absent_and_stopping_it_is_success(void **unused)
{
	(void)unused;
	struct pod_name name = pod("nobody");
	assert_int_equal(queried("nobody").active, UNIT_ABSENT);
	MUST(ops->stop(fixture.service, &name, 1000, NULL, &err));
	MUST(ops->forget(fixture.service, &name, &err));
	assert_int_equal(queried("nobody").active, UNIT_ABSENT);
}

static void start_query_stop(void **unused)
{
	(void)unused;
	pod_up("stay");
	struct unit_state state = queried("stay");
	assert_int_equal(state.active, UNIT_ACTIVE);
	assert_true(state.main_pid > 0);
	assert_int_equal(kill(state.main_pid, 0), 0);
	assert_true(state.since_usec > 0);
	assert_int_equal(state.restarts, 0);
	struct stat st;
	assert_int_equal(stat(state.group.cgroup, &st), 0);
	struct process_list members = {0};
	MUST(group_members(&state.group, &members, &err));
	assert_int_equal(members.n, 1);
	assert_int_equal(members.v[0].pid, state.main_pid);
	process_list_free(&members);
	pod_down("stay");
	assert_int_equal(queried("stay").active, UNIT_INACTIVE);
	assert_int_equal(stat(state.group.cgroup, &st), -1);
}

static void install_again_writes_and_reloads_nothing(void **unused)
{
	(void)unused;
	struct pod_name name = pod("again");
	struct service_unit unit = {.name = &name, .spec = &fixture.spec};
	char path[9000];
	struct stat before, after;
	snprintf(path, sizeof path, "%s/%s@.service", fixture.unit_directory, fixture.plane.prefix);
	MUST(ops->install(fixture.service, &unit, &err));
	assert_int_equal(stat(path, &before), 0);
	MUST(ops->install(fixture.service, &unit, &err));
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	/* A file that was written and not loaded, as after a kill between the two, is loaded by the next install. */
	snprintf(path, sizeof path, "rm '%s/%s@.service' && systemctl --user daemon-reload", fixture.unit_directory, fixture.plane.prefix);
	run(path);
	pod_up("again");
	assert_int_equal(queried("again").active, UNIT_ACTIVE);
	pod_down("again");
}

static void V01_terminal_statuses_start_once(void **unused)
{
	(void)unused;
	static const struct {
		const char *name;
		int status;
	} rows[] = {{"exit-3", 3}, {"exit-70", 70}, {"exit-78", 78}};
	for (size_t i = 0; i < 3; i++)
		pod_up(rows[i].name);
	for (size_t i = 0; i < 3; i++) {
		struct unit_state state = pod_await(rows[i].name, UNIT_FAILED, 5000);
		assert_int_equal(state.end, UNIT_END_EXITED);
		assert_int_equal(state.status, rows[i].status);
		assert_int_equal(state.restarts, 0);
	}
	struct timespec more_than_restart_secs = {.tv_sec = 6};
	nanosleep(&more_than_restart_secs, NULL);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(queried(rows[i].name).active, UNIT_FAILED);
		assert_int_equal(pod_starts(rows[i].name), 1);
		pod_down(rows[i].name);
		assert_int_equal(queried(rows[i].name).active, UNIT_INACTIVE);
	}
}

static void other_statuses_are_restarted(void **unused)
{
	(void)unused;
	pod_up("exit-1");
	struct unit_state state = pod_await("exit-1", UNIT_RESTARTING, 5000);
	assert_int_equal(state.end, UNIT_END_EXITED);
	assert_int_equal(state.status, 1);
	pod_down("exit-1");
	assert_int_equal(queried("exit-1").active, UNIT_INACTIVE);
}

static void L26_starts_again_after_the_start_limit(void **unused)
{
	(void)unused;
	drop_in("toggle", "10-quick.conf", "[Service]\nRestartSec=20ms\n");
	pod_up("toggle");
	struct unit_state state = pod_await("toggle", UNIT_FAILED, 10000);
	assert_int_equal(state.status, 1);
	assert_true(pod_starts("toggle") >= 5);
	pods_file("toggle.good", "");
	pod_up("toggle");
	assert_int_equal(queried("toggle").active, UNIT_ACTIVE);
	pod_down("toggle");
}

static void a_killed_payload_is_restarted(void **unused)
{
	(void)unused;
	drop_in("killed", "10-quick.conf", "[Service]\nRestartSec=300ms\n");
	pod_up("killed");
	struct unit_state first = queried("killed");
	assert_int_equal(kill(first.main_pid, SIGKILL), 0);
	struct unit_state state = pod_await("killed", UNIT_RESTARTING, 5000);
	assert_int_equal(state.end, UNIT_END_SIGNALED);
	assert_int_equal(state.status, SIGKILL);
	state = pod_await("killed", UNIT_ACTIVE, 5000);
	assert_int_equal(state.restarts, 1);
	assert_int_not_equal(state.main_pid, first.main_pid);
	pod_down("killed");
}

static void wait_ends_at_the_deadline_and_at_a_change(void **unused)
{
	(void)unused;
	struct pod_name name = pod("wait");
	struct unit_state state;
	pod_up("wait");
	state = queried("wait");
	int64_t before = monotonic_ns();
	MUST(ops->wait(fixture.service, &name, deadline_in_ms(300), &state, &err));
	assert_int_equal(state.active, UNIT_ACTIVE);
	assert_in_range((monotonic_ns() - before) / 1000000, 299, 2000);
	/* A change between the last answer and the wait is not slept over. */
	assert_int_equal(kill(state.main_pid, SIGKILL), 0);
	struct timespec moment = {.tv_nsec = 200000000};
	nanosleep(&moment, NULL);
	before = monotonic_ns();
	MUST(ops->wait(fixture.service, &name, deadline_in_ms(4000), &state, &err));
	assert_int_equal(state.active, UNIT_RESTARTING);
	assert_true((monotonic_ns() - before) / 1000000 < 1000);
	pod_down("wait");
}

static void a_deaf_payload_is_killed_after_the_grace(void **unused)
{
	(void)unused;
	struct pod_name name = pod("deaf");
	pod_up("deaf");
	starts_await("deaf", 1);
	int64_t before = monotonic_ns();
	MUST(ops->stop(fixture.service, &name, 500, NULL, &err));
	assert_in_range((monotonic_ns() - before) / 1000000, 499, 5000);
	pod_down("deaf");
	assert_int_equal(queried("deaf").active, UNIT_INACTIVE);
}

static void a_daemon_goes_with_the_unit(void **unused)
{
	(void)unused;
	pod_up("daemon");
	struct unit_state state = queried("daemon");
	struct process_list members = {0};
	starts_await("daemon", 1);
	MUST(group_members(&state.group, &members, &err));
	assert_int_equal(members.n, 2);
	process_list_free(&members);
	pod_down("daemon");
	MUST(group_members(&state.group, &members, &err));
	assert_int_equal(members.n, 0);
	process_list_free(&members);
}

static void shown(const char *unit, const char *property, const char *expected)
{
	char command[512];
	snprintf(command, sizeof command, "test \"$(systemctl --user show --value -p %s %s@%s.service)\" = '%s'", property, fixture.plane.prefix, unit,
		 expected);
	run(command);
}

static void limits_are_the_units(void **unused)
{
	(void)unused;
	char path[9000];
	struct stat st;
	strcpy(fixture.spec.memory_max, "64M");
	strcpy(fixture.spec.cpu_quota, "50%");
	pod_up("limits");
	shown("limits", "MemoryMax", "67108864");
	shown("limits", "CPUQuotaPerSecUSec", "500ms");
	*fixture.spec.memory_max = *fixture.spec.cpu_quota = 0;
	/* Limits that are gone from the record are gone from the unit. */
	pod_up("limits");
	shown("limits", "MemoryMax", "4294967296");
	pod_up("other");
	shown("other", "MemoryMax", "4294967296");
	pod_down("other");
	pod_down("limits");
	snprintf(path, sizeof path, "%s/%s@limits.service.d", fixture.unit_directory, fixture.plane.prefix);
	assert_int_equal(stat(path, &st), -1);
	snprintf(path, sizeof path, "%s/%s@.service", fixture.unit_directory, fixture.plane.prefix);
	assert_int_equal(stat(path, &st), 0);
}

static const struct service_listed *listed(const struct service_listing *listing, const char *name)
{
	for (size_t i = 0; i < listing->count; i++)
		if (strcmp(listing->units[i].name.text, name) == 0)
			return &listing->units[i];
	return NULL;
}

static void list_tells_every_loaded_unit(void **unused)
{
	(void)unused;
	struct service_listing listing = {0};
	pod_up("list-a");
	pod_up("list.b");
	pod_up("exit-78");
	(void)pod_await("exit-78", UNIT_FAILED, 5000);
	MUST(ops->list(fixture.service, &listing, &err));
	assert_int_equal(listing.count, 3);
	assert_int_equal(listed(&listing, "list-a")->state.active, UNIT_ACTIVE);
	assert_int_equal(listed(&listing, "list-a")->state.main_pid, queried("list-a").main_pid);
	assert_string_equal(listed(&listing, "list.b")->state.group.cgroup, queried("list.b").group.cgroup);
	assert_int_equal(listed(&listing, "exit-78")->state.active, UNIT_FAILED);
	assert_int_equal(listed(&listing, "exit-78")->state.status, 78);
	service_listing_free(&listing);
	pod_down("list-a");
	pod_down("list.b");
	pod_down("exit-78");
	MUST(ops->list(fixture.service, &listing, &err));
	assert_int_equal(listing.count, 0);
	service_listing_free(&listing);
}

/* The journal takes lines in some time after they were written. */
static void logs_await(const char *name, unsigned lines, const char *expected, char *out, size_t size)
{
	struct deadline until = deadline_in_ms(5000);
	struct backoff backoff = {0};
	do {
		(void)pod_logs(name, lines, out, size);
		if (strstr(out, expected))
			return;
		backoff_sleep(&backoff, until);
	} while (!deadline_passed(until));
	fail_msg("no \"%s\" in the log: %s", expected, out);
}

static unsigned line_count(const char *text)
{
	unsigned count = 0;
	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void logs_are_the_last_lines(void **unused)
{
	(void)unused;
	char out[16384];
	pod_up("say");
	logs_await("say", 5, "line 300\n", out, sizeof out);
	assert_int_equal(line_count(out), 5);
	assert_non_null(strstr(out, "line 296\nline 297\nline 298\nline 299\nline 300\n"));
	assert_int_equal(pod_logs("say", 1000, out, sizeof out), 0);
	assert_non_null(strstr(out, "line 1\nline 2\n"));
	pod_down("say");
	assert_int_equal(pod_logs("never-was", 5, out, sizeof out), -ENOENT);
}

static void logs_follow_until_the_reader_is_gone(void **unused)
{
	(void)unused;
	struct pod_name name = pod("say-on");
	int pipe_ends[2];
	char out[16384];
	pod_up("say-on");
	logs_await("say-on", 1, "line 300\n", out, sizeof out);
	assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(pipe_ends[0]);
		signal(SIGPIPE, SIG_IGN);
		_exit(ops->logs(fixture.service, &name, 1, true, pipe_ends[1], NULL) == 0 ? 0 : 1);
	}
	close(pipe_ends[1]);
	MUST(ops->stop(fixture.service, &name, 5000, NULL, &err));
	pod_up("say-on");
	size_t used = 0;
	const char *second;
	do {
		struct pollfd readable = {.fd = pipe_ends[0], .events = POLLIN};
		assert_int_equal(poll(&readable, 1, 30000), 1);
		ssize_t n = read(pipe_ends[0], out + used, sizeof out - 1 - used);
		assert_true(n > 0);
		used += (size_t)n;
		out[used] = 0;
		second = strstr(out, "line 1\n");
	} while (!second || !strstr(second, "line 300\n"));
	close(pipe_ends[0]);
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pod_down("say-on");
}

static void a_log_file_stands_in_for_an_unreadable_journal(void **unused)
{
	(void)unused;
	char path[8300];
	struct stat st;
	snprintf(path, sizeof path, "%s/say/pod.log", fixture.plane.artifacts);
	pod_up("say");
	assert_int_equal(stat(path, &st), journal_readable() ? -1 : 0);
	if (!journal_readable())
		assert_int_equal(st.st_mode & 07777, 0600);
	pod_down("say");
	assert_int_equal(stat(path, &st), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_is_absent_and_stopping_it_is_success),
		cmocka_unit_test(start_query_stop),
		cmocka_unit_test(install_again_writes_and_reloads_nothing),
		cmocka_unit_test(V01_terminal_statuses_start_once),
		cmocka_unit_test(other_statuses_are_restarted),
		cmocka_unit_test(L26_starts_again_after_the_start_limit),
		cmocka_unit_test(a_killed_payload_is_restarted),
		cmocka_unit_test(wait_ends_at_the_deadline_and_at_a_change),
		cmocka_unit_test(a_deaf_payload_is_killed_after_the_grace),
		cmocka_unit_test(a_daemon_goes_with_the_unit),
		cmocka_unit_test(limits_are_the_units),
		cmocka_unit_test(list_tells_every_loaded_unit),
		cmocka_unit_test(logs_are_the_last_lines),
		cmocka_unit_test(logs_follow_until_the_reader_is_gone),
		cmocka_unit_test(a_log_file_stands_in_for_an_unreadable_journal),
	};
	return cmocka_run_group_tests(tests, begin, fixture_end);
}
