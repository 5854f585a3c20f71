/* A plane of its own for each test of the embedded backend, the stand-in program as its payload, and the proof that nothing is left. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsops/deadline.h"
#include "fsops/file.h"
#include "fsops/tree.h"
#include "pod/system/keeper.h"
#include "pod/system/process.h"
#include "pod/system/records.h"
#include "pod/system/service.h"

#define UNUSED __attribute__((unused))

struct stage {
	char dir[256];
	struct plane plane;
	struct pin pods_dir;
	char program[4096];
	struct service_context context;
	struct service *service;
	struct pod_name name;
	struct spec spec;
	struct err err;
	char id[37]; /* of its own: processes are found by it */
};

#define must(call)                                                                                   \
	do {                                                                                         \
		int must_ = (call);                                                                  \
		if (must_ < 0)                                                                       \
			fail_msg("%s: %d, %s: %s", #call, must_, stage->err.subject, stage->err.text); \
	} while (0)

UNUSED static struct pod_name stage_name(const char *text)
{
	struct pod_name name;
	assert_int_equal(pod_name_parse(text, strlen(text), &name, NULL), 0);
	return name;
}

UNUSED static void stage_path(const struct stage *stage, const char *leaf, char out[512])
{
	(void)snprintf(out, 512, "%s/%s", stage->dir, leaf);
}

UNUSED static void stage_setenv_file(const struct stage *stage, const char *variable, const char *leaf)
{
	char path[512];
	stage_path(stage, leaf, path);
	(void)setenv(variable, path, 1);
}

static void stage_plane(struct stage *stage)
{
	struct plane *plane = &stage->plane;
	(void)snprintf(plane->home, sizeof plane->home, "%s/operator", stage->dir);
	(void)snprintf(plane->root, sizeof plane->root, "%s/root", stage->dir);
	(void)snprintf(plane->pods_dir, sizeof plane->pods_dir, "%s/pods", stage->dir);
	(void)snprintf(plane->artifacts, sizeof plane->artifacts, "%s/artifacts", stage->dir);
	(void)snprintf(plane->prefix, sizeof plane->prefix, "stage%d", (int)getpid());
	(void)snprintf(plane->path, sizeof plane->path, "/usr/bin:/bin");
	(void)snprintf(plane->repo, sizeof plane->repo, "%s", stage->dir);
	plane->base_port = 7810;
	plane->port_span = 199;
	plane->live_port = 5476;
	plane->health_secs = 90;
	plane->backend = BACKEND_EMBEDDED;
}

static void stage_environment(const struct stage *stage)
{
	(void)setenv("TEST_RESTART_MS", "40", 1);
	(void)setenv("TEST_SWEEP_MS", "100", 1);
	(void)setenv("TEST_STARTS", "5", 1);
	stage_setenv_file(stage, "TEST_STARTS_FILE", "starts");
	stage_setenv_file(stage, "TEST_READY_FILE", "ready");
	(void)setenv("HOME", stage->plane.home, 1);
}

/* Of the name that it has now. */
UNUSED static void stage_record(struct stage *stage)
{
	struct record record = {0};
	must(record_set(&record, "ID", stage->id, &stage->err));
	must(record_store(&stage->pods_dir, &stage->name, &record, &stage->err));
	record_free(&record);
}

/* The base directory may be longer than any socket address (L22). */
UNUSED static void stage_open_below(struct stage *stage, const char *base)
{
	*stage = (struct stage){.pods_dir = PIN_NONE, .name = stage_name("demo")};
	(void)snprintf(stage->dir, sizeof stage->dir, "%s/keeper-XXXXXX", base);
	assert_non_null(mkdtemp(stage->dir));
	stage_plane(stage);
	must(pin_make_path(stage->plane.pods_dir, 0700, &stage->pods_dir, &stage->err));
	must(mkdir(stage->plane.home, 0700));
	const char *programs = getenv("TEST_PROGRAMS");
	assert_non_null(programs);
	(void)snprintf(stage->program, sizeof stage->program, "%s/keeper_host", programs);
	stage->context = (struct service_context){.plane = &stage->plane, .pods_dir = &stage->pods_dir, .program = stage->program};
	must(service_embedded.open(&stage->context, &stage->service, &stage->err));
	must(id_new(stage->id, &stage->err));
	stage_record(stage);
	stage_environment(stage);
}

UNUSED static void stage_open(struct stage *stage)
{
	stage_open_below(stage, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
}

static bool environ_has(pid_t pid, const char *text)
{
	static char bytes[1 << 17];
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
	if (fd >= 0)
		close(fd);
	return n > 0 && memmem(bytes, (size_t)n, text, strlen(text));
}

/* Live processes that were started with this stage's plane, the keeper included; asked of /proc and not of the code under test. */
UNUSED static unsigned stage_processes(const struct stage *stage, pid_t *ret_some)
{
	unsigned count = 0;
	DIR *proc = opendir("/proc");
	assert_non_null(proc);
	for (struct dirent *entry; (entry = readdir(proc));) {
		pid_t pid = atoi(entry->d_name);
		if (pid <= 0 || pid == getpid() || !environ_has(pid, stage->dir))
			continue;
		count++;
		if (ret_some)
			*ret_some = pid;
	}
	closedir(proc);
	return count;
}

static bool stage_cgroup(const struct stage *stage, char path[1200])
{
	char mount[512], own[512];
	if (cgroup2_mount(mount, sizeof mount, NULL) < 0 || cgroup2_of(getpid(), own, sizeof own, NULL) < 0)
		return false;
	(void)snprintf(path, 1200, "%s%s/%s-%s-%.8s", mount, strcmp(own, "/") ? own : "", stage->plane.prefix, stage->name.text, stage->id);
	return true;
}

UNUSED static void stage_assert_nothing_left(const struct stage *stage)
{
	struct deadline until = deadline_in_ms(5000);
	struct backoff backoff = {0};
	pid_t some = 0;
	unsigned left;
	while ((left = stage_processes(stage, &some)) > 0 && !deadline_passed(until))
		backoff_sleep(&backoff, until);
	if (left)
		fail_msg("%u processes are left, one of them is %d", left, (int)some);
	char path[1200];
	if (!stage_cgroup(stage, path))
		return;
	while (access(path, F_OK) == 0 && !deadline_passed(until))
		backoff_sleep(&backoff, until);
	assert_int_equal(access(path, F_OK), -1);
}

UNUSED static bool stage_has_socket(const struct stage *stage)
{
	return faccessat(stage->pods_dir.fd, pod_file_socket(&stage->name).text, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Ends with the proof. */
UNUSED static void stage_close(struct stage *stage)
{
	stage_assert_nothing_left(stage);
	assert_false(stage_has_socket(stage));
	service_embedded.close(stage->service);
	pin_close(&stage->pods_dir);
	AUTO_PIN struct pin parent = PIN_NONE;
	char *slash = strrchr(stage->dir, '/');
	*slash = 0;
	must(pin_open(stage->dir, &parent, &stage->err));
	*slash = '/';
	struct tree_left left;
	must(tree_remove(&parent, slash + 1, deadline_in_ms(5000), &left, &stage->err));
}

UNUSED static int stage_try_start(struct stage *stage, const char *payload)
{
	(void)setenv("TEST_PAYLOAD", payload, 1);
	struct service_unit unit = {.name = &stage->name, .spec = &stage->spec};
	return service_embedded.start(stage->service, &unit, deadline_in_ms(20000), &stage->err);
}

UNUSED static void stage_start(struct stage *stage, const char *payload)
{
	must(stage_try_start(stage, payload));
}

UNUSED static void stage_wait_file(const struct stage *stage, const char *leaf)
{
	char path[512];
	stage_path(stage, leaf, path);
	struct deadline until = deadline_in_ms(20000);
	struct backoff backoff = {0};
	while (access(path, F_OK) < 0) {
		if (deadline_passed(until))
			fail_msg("%s did not appear", path);
		backoff_sleep(&backoff, until);
	}
}

UNUSED static struct unit_state stage_query(struct stage *stage)
{
	struct unit_state state = {0};
	must(service_embedded.query(stage->service, &stage->name, &state, &stage->err));
	return state;
}

/* Through the backend's own wait, so that every use of it tests that too. */
UNUSED static struct unit_state stage_wait_for(struct stage *stage, enum unit_active active)
{
	struct deadline until = deadline_in_ms(20000);
	struct unit_state state = stage_query(stage);
	while (state.active != active) {
		if (deadline_passed(until))
			fail_msg("still in state %d (%s) and not in %d", (int)state.active, state.detail, (int)active);
		must(service_embedded.wait(stage->service, &stage->name, until, &state, &stage->err));
	}
	return state;
}

UNUSED static void stage_stop(struct stage *stage, int64_t grace_ms)
{
	must(service_embedded.stop(stage->service, &stage->name, grace_ms, NULL, &stage->err));
	assert_int_equal(stage_query(stage).active, UNIT_ABSENT);
}

UNUSED static unsigned stage_starts(const struct stage *stage)
{
	char path[512];
	unsigned lines = 0;
	stage_path(stage, "starts", path);
	FILE *file = fopen(path, "re");
	for (int c; file && (c = fgetc(file)) != EOF;)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

UNUSED static void stage_unlink(const struct stage *stage, const char *leaf)
{
	char path[512];
	stage_path(stage, leaf, path);
	(void)unlink(path);
}

/* A child that nobody has a reason to signal; it ends with the test all the same. */
UNUSED static pid_t stage_innocent(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* All tests as they are and then, for root, once more as a plain user, to whom no cgroup2 tree is writable. */
#define stage_main(tests)                                                                      \
	({                                                                                     \
		int failed_ = cmocka_run_group_tests(tests, NULL, NULL);                       \
		if (geteuid() == 0) {                                                          \
			(void)fflush(NULL);                                                    \
			pid_t plain_ = fork();                                                 \
			if (plain_ == 0) {                                                     \
				(void)unsetenv("TMPDIR");                                      \
				if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0) \
					_exit(99);                                             \
				int plain_failed_ = cmocka_run_group_tests(tests, NULL, NULL); \
				(void)fflush(NULL);                                            \
				_exit(plain_failed_ ? 1 : 0);                                  \
			}                                                                      \
			int status_ = 0;                                                       \
			failed_ += waitpid(plain_, &status_, 0) != plain_ || status_ != 0;     \
		}                                                                              \
		failed_;                                                                       \
	})
