#include <errno.h>
#include <unistd.h>

#include "pod/system/spawn_child.h"

pid_t spawn_fork(struct spawn_plan *plan, struct spawned *spawned)
{
	spawned->pidfd = -1;
	if (plan->request->sibling) {
		errno = ENOSYS;
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0)
		spawn_child(plan);
	return pid;
}

pid_t spawn_fork_again(void)
{
	return fork();
}

bool spawn_moved_itself(const struct spawn_plan *plan, pid_t pid)
{
	(void)plan, (void)pid;
	return false;
}

int spawn_tie(int signal)
{
	(void)signal;
	errno = ENOSYS;
	return -1;
}

bool spawn_seal_all(void)
{
	return false;
}
