#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/process.h"

static bool same(const struct process *a, const struct process *b)
{
	return a && a->pid == b->pid && a->start == b->start;
}

/* A stopped process does not fork: signals those that were not there the last time, and tells whether there were any. */
static bool stop_new_ones(const struct process_list *members, const struct process_list *stopped)
{
	bool any = false;
	for (size_t i = 0; i < members->n; i++) {
		if (same(process_list_find(stopped, members->v[i].pid), &members->v[i]) || members->v[i].pid == getpid())
			continue;
		any |= process_signal(&members->v[i], SIGSTOP, NULL) == 0;
	}
	return any;
}

static void kill_all(const struct process_list *members)
{
	for (size_t i = 0; i < members->n; i++)
		if (members->v[i].pid != getpid())
			(void)process_signal(&members->v[i], SIGKILL, NULL);
}

/* cgroup.kill reaches what is frozen and what forks faster than it is listed; it would reach us, too. */
static void kill_cgroup(const struct unit_group *group, const struct process_list *members)
{
	if (*group->cgroup && !process_list_find(members, getpid()))
		(void)cgroup_write(group->cgroup, "cgroup.kill", "1");
}

int group_kill(const struct unit_group *group, struct deadline until, struct process_list *ret_survivors, struct err *err)
{
	AUTO_PROCESSES struct process_list members = {0}, stopped = {0};
	struct backoff pause = {0};
	int r = group_members(group, &members, err);
	while (r == 0 && members.n) {
		bool last = deadline_passed(until);
		kill_cgroup(group, &members);
		if (last || !stop_new_ones(&members, &stopped)) {
			kill_all(&members);
			backoff_sleep(&pause, until);
		}
		process_list_free(&stopped);
		stopped = members;
		members = (struct process_list){0};
		r = group_members(group, &members, err);
		if (last)
			break;
	}
	/* The next start in this group must not find it frozen. */
	if (*group->cgroup)
		(void)cgroup_write(group->cgroup, "cgroup.freeze", "0");
	if (r < 0)
		return r;
	*ret_survivors = members;
	members = (struct process_list){0};
	return 0;
}
