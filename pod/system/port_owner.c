#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/network.h"
#include "pod/system/process.h"

struct question {
	const struct listeners *listeners;
	const struct unit_group *group;
	struct cgroup_view view;
};

struct verdict {
	enum port_owner owner;
	pid_t pid;
	char program[64]; /* "" not looked at yet */
};

static void question_free(struct question *question)
{
	cgroup_view_free(&question->view);
}

static bool made_in_group(const struct question *question, const struct listening *listening)
{
	for (size_t i = 0; i < question->view.id_count; i++)
		if (question->view.ids[i] == listening->cgroup)
			return true;
	return false;
}

static bool holds(const struct process_sockets *sockets, uint64_t inode)
{
	for (size_t i = 0; i < sockets->n; i++)
		if (sockets->v[i] == inode)
			return true;
	return false;
}

/* -EACCES when a process could not be looked into and no other one holds it. 0: *ret_pid is the holder, or 0. */
static int one_that_holds(const struct process_list *list, uint64_t inode, pid_t *ret_pid)
{
	int closed = 0;
	*ret_pid = 0;
	for (size_t i = 0; !*ret_pid && i < list->n; i++) {
		struct process_sockets sockets = {0};
		int r = list->v[i].start ? process_sockets_read(&list->v[i], &sockets) : -EACCES;
		if (r == -EACCES)
			closed = r;
		else if (r < 0 && r != -ESRCH)
			return r;
		if (holds(&sockets, inode))
			*ret_pid = list->v[i].pid;
		free(sockets.v);
	}
	return *ret_pid ? 0 : closed;
}

/* Who is in the cgroup itself is known at once, and it is nearly always one of them; who has left it is looked for among all processes. */
static int member_that_holds(const struct question *question, uint64_t inode, struct process *ret_holder, struct err *err)
{
	AUTO_PROCESSES struct process_list members = {0};
	int r = group_socket_holder(&question->view, inode, ret_holder);
	if (r == 0 && !ret_holder->pid) {
		r = group_members(question->group, &members, err);
		if (r < 0)
			return r;
		r = one_that_holds(&members, inode, &ret_holder->pid);
	}
	return r < 0 && r != -EACCES ? err_code(err, r, "listener", NULL) : r;
}

static int still_holds(const struct socket_holder *holder, bool *ret_holds)
{
	struct process process = {.pid = holder->pid, .start = holder->start};
	struct process_sockets sockets = {0};
	int r = process_sockets_read(&process, &sockets);
	*ret_holds = r == 0 && holds(&sockets, holder->inode);
	free(sockets.v);
	return process_unseen(r) ? 0 : r;
}

/* Holders in the group and outside. A stranger counts only while it still holds it. */
static int holders_of(struct question *question, uint64_t inode, pid_t *ret_member, pid_t *ret_stranger, struct err *err)
{
	const struct socket_holder *holders;
	size_t count;
	int r = listeners_holders(question->listeners, inode, &holders, &count, err);
	if (r < 0)
		return r;
	*ret_member = *ret_stranger = 0;
	for (size_t i = 0; i < count; i++) {
		bool member = false, still = true;
		r = group_has(question->group, holders[i].pid, holders[i].start, &member, err);
		if (r == 0 && !member && (r = still_holds(&holders[i], &still)) < 0)
			(void)err_code(err, r, "listener", NULL);
		if (r < 0)
			return r;
		if (!member && !still)
			continue;
		pid_t *slot = member ? ret_member : ret_stranger;
		if (!*slot)
			*slot = holders[i].pid;
	}
	return 0;
}

/* A holder of something foreign: the stranger first, else the member that has inherited it. */
static int judge_foreign(struct question *question, const struct listening *listening, struct verdict *ret_verdict, struct err *err)
{
	pid_t member, stranger;
	int r = holders_of(question, listening->inode, &member, &stranger, err);
	if (r < 0)
		return r;
	*ret_verdict = (struct verdict){.owner = PORT_FOREIGN, .pid = stranger ? stranger : member};
	return 0;
}

static int judge_by_cgroup(struct question *question, const struct listening *listening, struct verdict *ret_verdict, struct err *err)
{
	if (!made_in_group(question, listening))
		return judge_foreign(question, listening, ret_verdict, err);
	struct process holder;
	int r = member_that_holds(question, listening->inode, &holder, err);
	if (r < 0 && r != -EACCES)
		return r;
	if (!holder.pid && r == 0)
		return judge_foreign(question, listening, ret_verdict, err);
	*ret_verdict = (struct verdict){.owner = PORT_OURS, .pid = holder.pid};
	memcpy(ret_verdict->program, holder.comm, sizeof ret_verdict->program);
	return 0;
}

static int judge_by_holders(struct question *question, const struct listening *listening, struct verdict *ret_verdict, struct err *err)
{
	pid_t member, stranger;
	int r = holders_of(question, listening->inode, &member, &stranger, err);
	if (r < 0)
		return r;
	if (stranger || (!member && listening->uid != geteuid()))
		*ret_verdict = (struct verdict){.owner = PORT_FOREIGN, .pid = stranger};
	else
		*ret_verdict = (struct verdict){.owner = member ? PORT_OURS : PORT_UNKNOWN, .pid = member};
	return 0;
}

/* One that is not ours decides; what is not known is worse than ours. */
static bool outweighs(const struct verdict *next, const struct verdict *so_far)
{
	static const int weight[] = {[PORT_NOBODY] = 0, [PORT_OURS] = 1, [PORT_UNKNOWN] = 2, [PORT_FOREIGN] = 3};
	return weight[next->owner] > weight[so_far->owner] || (next->owner == so_far->owner && !so_far->pid);
}

static int judge_all(struct question *question, const struct listening *on, size_t count, struct verdict *ret_verdict, struct err *err)
{
	struct verdict all = {.owner = PORT_NOBODY};
	for (size_t i = 0; i < count; i++) {
		struct verdict one = {.owner = PORT_UNKNOWN};
		bool by_cgroup = question->view.id_count && on[i].cgroup;
		int r = by_cgroup ? judge_by_cgroup(question, &on[i], &one, err) : judge_by_holders(question, &on[i], &one, err);
		if (r < 0)
			return r;
		if (outweighs(&one, &all))
			all = one;
	}
	*ret_verdict = all;
	return 0;
}

int listener_of(const struct listeners *listeners, int port, const struct unit_group *group, struct listener *ret_listener, struct err *err)
{
	CLEANUP(question_free) struct question question = {.listeners = listeners, .group = group};
	struct verdict verdict = {.owner = PORT_NOBODY};
	size_t count;
	const struct listening *on = listeners_on(listeners, port, &count);
	int r = count ? group_view(group, &question.view, err) : 0;
	if (r == 0)
		r = judge_all(&question, on, count, &verdict, err);
	if (r < 0)
		return r;
	struct process process = {0};
	if (verdict.pid && !*verdict.program && process_read(verdict.pid, &process, NULL) == 0)
		memcpy(verdict.program, process.comm, sizeof verdict.program);
	*ret_listener = (struct listener){.owner = verdict.owner, .pid = verdict.pid};
	memcpy(ret_listener->program, verdict.program, sizeof ret_listener->program);
	return 0;
}
