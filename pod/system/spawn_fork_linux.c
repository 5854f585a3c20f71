#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/spawn_child.h"

/* Out of the way of 0, 1 and 2. */
static void lift(int *fd)
{
	int low = *fd;
	if (low < 0 || low > 2)
		return;
	*fd = fcntl(low, F_DUPFD_CLOEXEC, 3);
	close_quietly(low);
}

static pid_t clone_into(int cgroup_fd, bool sibling, int *pidfd)
{
	struct clone_args arguments = {
		.flags = CLONE_PIDFD | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0) | (sibling ? CLONE_PARENT : 0),
		.pidfd = (uint64_t)(uintptr_t)pidfd,
		.exit_signal = sibling ? 0 : SIGCHLD, /* a sibling has the caller's own */
		.cgroup = (unsigned)(cgroup_fd >= 0 ? cgroup_fd : 0),
	};
	return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

static void run_child(struct spawn_plan *plan, pid_t pid)
{
	if (pid == 0)
		spawn_child(plan);
}

/* Born in the group where the kernel can do that; else the child moves itself. */
pid_t spawn_fork(struct spawn_plan *plan, struct spawned *spawned)
{
	pid_t pid = -1;
	if (plan->request->cgroup_fd >= 0) {
		pid = clone_into(plan->request->cgroup_fd, plan->request->sibling, &spawned->pidfd);
		run_child(plan, pid);
		spawned->in_cgroup = pid > 0;
		if (pid < 0 && errno != EAGAIN && errno != ENOMEM) {
			plan->cgroup_procs = openat(plan->request->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
			lift(&plan->cgroup_procs);
		}
	}
	if (pid < 0) {
		pid = clone_into(-1, plan->request->sibling, &spawned->pidfd);
		run_child(plan, pid);
	}
	if (pid < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL)) {
		spawned->pidfd = -1;
		pid = plan->request->sibling ? (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) : fork();
		run_child(plan, pid);
		if (pid > 0)
			spawned->pidfd = (int)syscall(SYS_pidfd_open, pid, 0U);
	}
	return pid;
}

pid_t spawn_fork_again(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Was it moved? Only asked when it was not born there. */
bool spawn_moved_itself(const struct spawn_plan *plan, pid_t pid)
{
	if (plan->cgroup_procs < 0)
		return false;
	int fd = openat(plan->request->cgroup_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	AUTO_FCLOSE FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!file) {
		close_quietly(fd);
		return false;
	}
	int member = 0;
	while (fscanf(file, "%d", &member) == 1)
		if (member == pid)
			return true;
	return false;
}

int spawn_tie(int signal)
{
	return prctl(PR_SET_PDEATHSIG, signal);
}

bool spawn_seal_all(void)
{
	return syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}
