/* A stop: through the keeper if it answers, over its head if it does not, and without one when it is dead. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/embedded.h"
#include "pod/system/keeper_group.h"
#include "pod/system/records.h"

#define DRAIN_MS 10000    /* from SIGKILL until the kernel has let go of everything */
#define FAREWELL_MS 2000  /* from the keeper's last word to its end */

static int name_survivors(const struct process_list *list, const struct pod_name *name, struct err *err)
{
	char pids[200] = "";
	for (size_t i = 0, used = 0; i < list->n && i < 8 && used < sizeof pids; i++)
		used += (size_t)snprintf(pids + used, sizeof pids - used, "%s%d (%.20s)", i ? ", " : "", (int)list->v[i].pid, list->v[i].comm);
	return err_set(err, -EBUSY, "stop", name->text, "%zu processes are left: pid %s", list->n, pids);
}

static bool wait_until_empty(const struct unit_group *group, struct deadline until)
{
	struct backoff backoff = {0};
	for (;;) {
		AUTO_PROCESSES struct process_list list = {0};
		if (group_members(group, &list, NULL) == 0 && list.n == 0)
			return true;
		if (deadline_passed(until))
			return false;
		backoff_sleep(&backoff, until);
	}
}

static int kill_group(const struct unit_group *group, const struct pod_name *name, struct err *err)
{
	AUTO_PROCESSES struct process_list left = {0};
	int r = group_kill(group, deadline_in_ms(DRAIN_MS), &left, err);
	if (r < 0)
		return r;
	return left.n ? name_survivors(&left, name, err) : 0;
}

int embedded_end_remnants(const struct embedded *e, const struct pod_name *name, const char *id, int64_t grace_ms, struct err *err)
{
	struct unit_group group;
	AUTO_PROCESSES struct process_list list = {0};
	int r = embedded_remnants(e, name, id, &group, err);
	if (r == 0)
		r = group_members(&group, &list, err);
	if (r < 0)
		return r;
	if (list.n > 0) {
		if (grace_ms > 0)
			keeper_group_terminate(&group);
		if (grace_ms <= 0 || !wait_until_empty(&group, deadline_in_ms(grace_ms)))
			r = kill_group(&group, name, err);
	}
	if (r == 0 && *group.cgroup)
		(void)keeper_cgroup_remove(group.cgroup, deadline_in_ms(FAREWELL_MS));
	return r;
}

static int pidfd_signal(int pidfd, int signal)
{
	return pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0 ? 0 : -ESRCH;
}

/* The peer of a connection that still stands: the number was not given to another meanwhile. -ESRCH: it has gone. */
static int pidfd_of_peer(int fd, pid_t keeper)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, keeper, 0U);
	struct pollfd line = {.fd = fd, .events = POLLIN};
	if (pidfd < 0 || poll(&line, 1, 0) < 0)
		return -errno;
	return keeper == getpid() || (line.revents & (POLLHUP | POLLERR)) ? -ESRCH : take_fd(&pidfd);
}

static void wait_for_end(int pidfd, struct deadline until)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	while (pidfd >= 0 && poll(&ended, 1, deadline_poll_ms(until)) < 0 && errno == EINTR)
		;
}

/* It hangs, was stopped, or did not do it in time. Held still, so that it can neither start nor reap anything, its tree is ended, then itself. */
static int over_its_head(const struct embedded *e, const struct pod_name *name, int pidfd, pid_t keeper, struct err *err)
{
	struct unit_group group;
	int r = embedded_remnants(e, name, NULL, &group, err);
	if (r < 0)
		return r;
	group.tree = keeper;
	(void)pidfd_signal(pidfd, SIGSTOP);
	r = kill_group(&group, name, err);
	if (r < 0) { /* what nobody can kill it goes on trying to, and to answer for */
		(void)pidfd_signal(pidfd, SIGCONT);
		return r;
	}
	(void)pidfd_signal(pidfd, SIGKILL);
	wait_for_end(pidfd, deadline_in_ms(FAREWELL_MS));
	r = embedded_end_remnants(e, name, group.pod_id, 0, err);
	return r < 0 ? r : channel_clean(embedded_pods_dir(e), name, err);
}

static int ask_for_a_sign(int fd)
{
	struct keeper_request request = {.verb = KEEPER_ASK_STATUS};
	struct keeper_reply reply;
	int r = channel_send(fd, &request, NULL);
	return r < 0 ? r : channel_receive(fd, deadline_in_ms(EMBEDDED_ANSWER_MS), &reply, NULL);
}

/* *ret_gone: the keeper said so, or its connection broke, which the next look explains. */
static int through_keeper(struct embedded *e, const struct pod_name *name, int fd, pid_t keeper, int64_t grace_ms, bool *ret_again,
			  struct err *err)
{
	struct keeper_request request = {.verb = KEEPER_ASK_STOP, .grace_ms = grace_ms};
	struct keeper_reply reply;
	AUTO_CLOSE int pidfd = pidfd_of_peer(fd, keeper);
	*ret_again = pidfd == -ESRCH || pidfd == -EINTR;
	if (pidfd < 0)
		return *ret_again ? 0 : err_code(err, pidfd, "keeper", name->text);
	int r = ask_for_a_sign(fd);
	if (r < 0 && r != -ECONNRESET && r != -EPIPE) {
		(void)pidfd_signal(pidfd, SIGCONT); /* somebody may only have stopped it */
		r = ask_for_a_sign(fd);
	}
	*ret_again = r == -ECONNRESET || r == -EPIPE; /* it has many callers, or has gone */
	if (r < 0)
		return *ret_again ? 0 : over_its_head(e, name, pidfd, keeper, err);
	struct err why = {0};
	r = channel_send(fd, &request, &why);
	if (r == 0)
		do /* a late answer to the first question may come before */
			r = channel_receive(fd, deadline_in_ms(grace_ms + DRAIN_MS), &reply, &why);
		while (r == 0 && reply.answer == KEEPER_SAYS_STATE);
	if (r == 0 && reply.answer == KEEPER_SAYS_GONE) {
		if (record_id(embedded_pods_dir(e), name, e->gone, NULL) < 0)
			*e->gone = 0;
		wait_for_end(pidfd, deadline_in_ms(FAREWELL_MS));
		return 0;
	}
	if (r == -ETIME)
		return over_its_head(e, name, pidfd, keeper, err);
	*ret_again = r == -ECONNRESET;
	return *ret_again ? 0 : err_set(err, r < 0 ? r : reply.code, "stop", name->text, "%s", r < 0 ? why.text : reply.text);
}

static bool generation_is_gone(const struct embedded *e, const struct unit_group *group)
{
	return *e->gone && strcmp(e->gone, group->pod_id) == 0;
}

int embedded_stop(struct service *service, const struct pod_name *name, int64_t grace_ms, struct unit_group *group, struct err *err)
{
	struct embedded *e = embedded_of(service);
	const struct pin *pods_dir = embedded_pods_dir(e);
	embedded_forget_watch(e);
	grace_ms = grace_ms < 0 ? 0 : grace_ms > KEEPER_GRACE_MAX_MS ? KEEPER_GRACE_MAX_MS : grace_ms;
	if (!pods_dir)
		return 0;
	struct deadline until = deadline_in_ms(grace_ms + DRAIN_MS);
	struct backoff backoff = {0};
	for (bool again = true; again;) {
		struct err why = {0};
		pid_t keeper = 0;
		AUTO_CLOSE int fd = channel_connect(pods_dir, name, &keeper, &why);
		if (fd == -ENOENT || fd == -ECONNREFUSED) {
			int r = embedded_end_remnants(e, name, group ? group->pod_id : NULL, grace_ms, err);
			return r < 0 ? r : channel_clean(pods_dir, name, err);
		}
		if (fd == -ENOTSOCK || fd == -EPERM)
			return channel_clean(pods_dir, name, err);
		int r = fd >= 0 ? through_keeper(e, name, fd, keeper, grace_ms, &again, err) : fd == -EAGAIN ? 0 : fd;
		if (r < 0)
			return fd < 0 ? err_set(err, fd, "stop", name->text, "%s", why.text) : r;
		if (again && deadline_passed(until))
			return err_set(err, -ETIME, "stop", name->text, "the keeper takes no callers");
		if (again)
			backoff_sleep(&backoff, until);
	}
	if (group && generation_is_gone(e, group)) { /* it was the subreaper of all: what is still in its cgroup came from elsewhere */
		group->tree = 0;
		*group->pod_id = '\0';
	}
	return 0;
}

int embedded_end_lost(struct service *service, const struct pod_name *name, const char *id, int64_t grace_ms, struct err *err)
{
	const struct embedded *e = embedded_of(service);
	return embedded_pods_dir(e) ? embedded_end_remnants(e, name, id, grace_ms, err) : 0;
}

/* Only of a pod that has ended: this is no stop. */
int embedded_forget(struct service *service, const struct pod_name *name, struct err *err)
{
	struct embedded *e = embedded_of(service);
	struct unit_state state;
	AUTO_PROCESSES struct process_list list = {0};
	int r = embedded_query(service, name, &state, err);
	if (r < 0)
		return r;
	bool dead = state.active == UNIT_ABSENT || state.active == UNIT_INACTIVE || state.active == UNIT_FAILED;
	if (!dead && state.active != UNIT_UNKNOWN)
		return err_set(err, -EBUSY, "forget", name->text, "the pod is not stopped");
	if (!dead)
		return err_set(err, -EBUSY, "forget", name->text, "%s", state.detail);
	if (state.group.tree)
		return embedded_stop(service, name, 0, NULL, err);
	embedded_forget_watch(e);
	if (!embedded_pods_dir(e))
		return 0;
	if (generation_is_gone(e, &state.group))
		*state.group.pod_id = '\0';
	r = group_members(&state.group, &list, err);
	if (r < 0)
		return r;
	if (list.n)
		return name_survivors(&list, name, err);
	if (*state.group.cgroup)
		(void)keeper_cgroup_remove(state.group.cgroup, deadline_in_ms(FAREWELL_MS));
	return channel_clean(embedded_pods_dir(e), name, err);
}
