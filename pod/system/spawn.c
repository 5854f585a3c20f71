#include "pod/system/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/deadline.h"
#include "pod/system/spawn_child.h"

#define DEAF_MS 1000

static const char *const stages[] = {
	[SPAWN_STAGE_FORK] = "fork",
	[SPAWN_STAGE_SESSION] = "session",
	[SPAWN_STAGE_PARENT] = "parent",
	[SPAWN_STAGE_DESCRIPTORS] = "descriptors",
	[SPAWN_STAGE_DIRECTORY] = "directory",
	[SPAWN_STAGE_EXEC] = "exec",
};
_Static_assert(sizeof stages / sizeof *stages == SPAWN_STAGES, "one name for each stage");

/* A copy that cannot be overwritten when 0, 1 and 2 are placed. */
static int above_stdio(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return copy < 0 ? -errno : copy;
}

static int lift(int *fd)
{
	if (*fd > 2)
		return 0;
	int copy = above_stdio(*fd);
	if (copy < 0)
		return copy;
	close_quietly(*fd);
	*fd = copy;
	return 0;
}

static int open_stdio(const struct spawn *request, int stdio[3], struct err *err)
{
	for (int i = 0; i < 3; i++) {
		int r = 0;
		if (request->stdio[i] == SPAWN_NULL) {
			stdio[i] = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
			r = stdio[i] < 0 ? -errno : lift(&stdio[i]);
		} else {
			r = stdio[i] = above_stdio(request->stdio[i]);
		}
		if (r < 0)
			return err_code(err, r, "descriptors", request->stdio[i] == SPAWN_NULL ? "/dev/null" : "standard descriptor");
	}
	return 0;
}

static int open_report(int ends[2], struct err *err)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_code(err, -errno, "pipe", NULL);
	int r = lift(&ends[0]);
	if (r == 0)
		r = lift(&ends[1]);
	return r < 0 ? err_code(err, r, "pipe", NULL) : 0;
}

int spawn_reap(pid_t pid)
{
	int status = 0;
	pid_t r;
	while ((r = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	return r == pid ? status : -ECHILD;
}

/* What cannot be heard and cannot be killed either has begun at least, when this returns. */
static ssize_t read_word(int fd, const struct spawn *request, struct spawn_report *report)
{
	struct deadline until = deadline_in_ms(DEAF_MS);
	struct backoff pause = {0};
	for (;;) {
		ssize_t n = read(fd, report, sizeof *report);
		if (n >= 0 || (errno != EINTR && (!request->daemon || deadline_passed(until))))
			return n;
		if (errno != EINTR)
			backoff_sleep(&pause, until);
	}
}

/* End of file after the word before the exec is success: exec closed the pipe. */
static int read_report(int fd, const struct spawn *request, struct err *err)
{
	struct spawn_report report;
	ssize_t n;
	bool reached_exec = false;
	for (;;) {
		n = read_word(fd, request, &report);
		if (n != (ssize_t)sizeof report || report.stage != SPAWN_STAGE_EXEC || report.code != 0)
			break;
		reached_exec = true;
	}
	if (n == 0 && reached_exec)
		return 0;
	if (n == 0)
		return err_set(err, -ECHILD, "spawn", request->program, "the new process was killed before it could begin");
	if (n != (ssize_t)sizeof report || report.stage < 0 || report.stage >= SPAWN_STAGES || report.code >= 0)
		return err_set(err, -EIO, "spawn", request->program, "the new process did not tell what happened");
	if (report.stage == SPAWN_STAGE_EXEC)
		return exec_cause(request->program, report.code, err);
	return err_code(err, report.code, stages[report.stage], report.stage == SPAWN_STAGE_DIRECTORY ? request->cwd : request->program);
}

static int spawn_with(struct spawn_plan *plan, int report_in, struct spawned *ret_spawned, struct err *err)
{
	struct spawned spawned = {.pidfd = -1};
	sigset_t all, before;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before); /* no handler of the caller may run in the child */
	pid_t pid = spawn_fork(plan, &spawned);
	int failed = pid < 0 ? -errno : 0;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	close_quietly(plan->report);
	plan->report = -1;
	if (failed)
		return err_code(err, failed, "fork", plan->request->program);
	if (plan->request->daemon)
		(void)spawn_reap(pid);
	int r = read_report(report_in, plan->request, err);
	if (r < 0 || plan->request->daemon) {
		close_quietly(spawned.pidfd);
		if (!plan->request->daemon) {
			(void)kill(pid, SIGKILL); /* where its report was not heard it may run well */
			if (!plan->request->sibling)
				(void)spawn_reap(pid);
		}
		spawned = (struct spawned){.pidfd = -1};
	} else {
		spawned.pid = pid;
		spawned.in_cgroup = spawned.in_cgroup || spawn_moved_itself(plan, pid);
	}
	if (r == 0)
		*ret_spawned = spawned;
	return r;
}

int spawn(const struct spawn *request, struct spawned *ret_spawned, struct err *err)
{
	for (size_t i = 0; i < request->keep_count; i++)
		if (request->keep[i] < 3)
			return err_set(err, -EINVAL, "descriptors", request->program, "descriptors 0 to 2 are the standard ones");
	struct spawn_plan plan = {.request = request, .envp = request->envp ? request->envp : environ, .stdio = {-1, -1, -1}, .parent = getpid()};
	plan.cgroup_procs = -1;
	int ends[2] = {-1, -1};
	int r = open_report(ends, err);
	AUTO_CLOSE int report_in = ends[0];
	plan.report = ends[1];
	if (r == 0)
		r = open_stdio(request, plan.stdio, err);
	if (r == 0)
		r = spawn_with(&plan, report_in, ret_spawned, err);
	close_quietly(plan.report);
	for (int i = 0; i < 3; i++)
		close_quietly(plan.stdio[i]);
	close_quietly(plan.cgroup_procs);
	return r;
}
