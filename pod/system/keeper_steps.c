/* What the keeper does about an event: the table's actions, carried out. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/keeper_group.h"
#include "pod/system/keeper_inner.h"
#include "pod/system/logfile.h"
#include "pod/system/spawn.h"

#define AGAIN_FIRST_MS 2
#define AGAIN_MOST_MS 100

static int64_t realtime_usec(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void keeper_state_tell(const struct keeper *keeper, struct unit_state *ret_state)
{
	struct unit_state state = {
		.active = keeper_state_active(keeper->state),
		.main_pid = keeper->main_pid,
		.end = keeper->end,
		.status = keeper->status,
		.restarts = keeper->restarts,
		.since_usec = keeper->since_usec,
		.group = keeper->group,
	};
	(void)snprintf(state.detail, sizeof state.detail, "%s", *keeper->trouble ? keeper->trouble : keeper_state_name(keeper->state));
	*ret_state = state;
}

static int invocation_id(char out[33])
{
	unsigned char bytes[16];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return -EIO;
	for (size_t i = 0; i < sizeof bytes; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int payload_environment(const struct keeper *keeper, struct environment *ret, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	char pid[16], invocation[33];
	(void)snprintf(pid, sizeof pid, "%d", (int)getpid());
	int r = invocation_id(invocation);
	if (r < 0)
		return err_code(err, r, "random", NULL);
	r = environment_copy(environ, &environment, err);
	if (r == 0)
		r = environment_set(&environment, KEEPER_ENV_KEEPER, pid, err);
	if (r == 0)
		r = environment_set(&environment, KEEPER_ENV_INVOCATION, invocation, err);
	if (r == 0)
		r = environment_set(&environment, KEEPER_ENV_NAME, keeper->name->text, err);
	if (r == 0 && *keeper->group.pod_id)
		r = environment_set(&environment, KEEPER_ENV_ID, keeper->group.pod_id, err);
	if (r < 0)
		return r;
	*ret = environment;
	environment = (struct environment){0};
	return 0;
}

static void renew_group(struct keeper *keeper)
{
	char name[KEEPER_CGROUP_NAME_MAX];
	close_quietly(take_fd(&keeper->cgroup_fd));
	*keeper->group.cgroup = 0;
	keeper_cgroup_name(keeper->context->plane->prefix, keeper->name, keeper->group.pod_id, name);
	(void)keeper_cgroup_make(name, keeper->group.cgroup, sizeof keeper->group.cgroup, &keeper->cgroup_fd);
}

int keeper_spawn(struct keeper *keeper, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	AUTO_CLOSE int log = -1;
	int r = logfile_begin(keeper->context->plane, keeper->name, &log, err);
	if (r == 0)
		r = payload_environment(keeper, &environment, err);
	if (r < 0)
		return r;
	renew_group(keeper);
	const char *config = keeper->context->config_file;
	const char *with[] = {keeper->context->program, "--config", config, "_run", keeper->name->text, NULL};
	const char *without[] = {keeper->context->program, "_run", keeper->name->text, NULL};
	struct spawn request = SPAWN_DEFAULT;
	request.program = keeper->context->program;
	request.argv = (char *const *)(config ? with : without);
	request.envp = environment.v;
	request.cwd = "/";
	request.stdio[1] = request.stdio[2] = log;
	request.session = SPAWN_SESSION;
	request.death_signal = SIGKILL;
	request.cgroup_fd = keeper->cgroup_fd;
	struct spawned spawned = {.pidfd = -1};
	r = spawn(&request, &spawned, err);
	if (*keeper->group.cgroup && !spawned.in_cgroup) { /* empty, it would say that nothing lives */
		(void)keeper_cgroup_remove(keeper->group.cgroup, deadline_in_ms(0));
		*keeper->group.cgroup = 0;
	}
	if (r < 0)
		return r;
	close_quietly(keeper->main_pidfd);
	keeper->main_pidfd = spawned.pidfd;
	keeper->main_pid = spawned.pid;
	keeper->drained = false;
	return 0;
}

/* Answers the action SPAWN. */
static enum keeper_event start(struct keeper *keeper)
{
	if (!keeper_start_allowed(&keeper->starts, &keeper->limits, monotonic_ns() / 1000000)) {
		keeper->end = UNIT_END_START_LIMIT;
		return KEEPER_ON_LIMIT;
	}
	struct err why = {0};
	if (keeper_spawn(keeper, &why) == 0) {
		*keeper->trouble = 0;
		return KEEPER_ON_SPAWNED;
	}
	keeper->end = UNIT_END_OTHER;
	(void)snprintf(keeper->trouble, sizeof keeper->trouble, "%s: %s", why.subject, why.text);
	return KEEPER_ON_SPAWN_FAILED;
}

static void arm(struct keeper *keeper, unsigned actions)
{
	if (actions & (KEEPER_ARM_RESTART | KEEPER_ARM_SWEEP | KEEPER_ARM_AGAIN | KEEPER_DISARM))
		keeper->grace_runs = false;
	if (actions & KEEPER_ARM_RESTART)
		keeper->timer = deadline_in_ms(keeper->limits.restart_ms);
	if (actions & KEEPER_ARM_SWEEP) {
		keeper->timer = deadline_in_ms(keeper->limits.sweep_ms);
		keeper->again_ms = AGAIN_FIRST_MS;
	}
	if (actions & KEEPER_ARM_GRACE) {
		struct deadline grace = deadline_in_ms(keeper->grace_ms);
		keeper->timer = keeper->grace_runs ? deadline_earlier(keeper->timer, grace) : grace;
		keeper->grace_runs = true;
		keeper->again_ms = AGAIN_FIRST_MS;
	}
	if (actions & KEEPER_ARM_AGAIN) {
		keeper->timer = deadline_in_ms(keeper->again_ms);
		keeper->again_ms = keeper->again_ms * 2 > AGAIN_MOST_MS ? AGAIN_MOST_MS : keeper->again_ms * 2;
	}
	if (actions & KEEPER_DISARM)
		keeper->timer = DEADLINE_NEVER;
}

static void forgive(struct keeper *keeper)
{
	keeper->starts = (struct keeper_starts){0};
	keeper->restarts = 0;
	keeper->end = UNIT_END_NONE;
	keeper->status = 0;
}

void keeper_dispatch(struct keeper *keeper, enum keeper_event event)
{
	struct unit_group tree = keeper->group;
	tree.tree = getpid();
	for (bool more = true; more;) {
		enum keeper_state before = keeper->state;
		struct keeper_step step = keeper_step(before, event);
		more = step.actions & KEEPER_SPAWN;
		if (before == KEEPER_WAITING && event == KEEPER_ON_TIMER)
			keeper->restarts++;
		keeper->state = step.next;
		if (step.actions & KEEPER_FORGIVE)
			forgive(keeper);
		if ((step.actions & KEEPER_TERM) && !keeper->drained)
			keeper_group_terminate(&tree);
		if ((step.actions & KEEPER_KILL) && !keeper->drained)
			keeper_group_kill_pass(&tree, keeper->main_pidfd);
		arm(keeper, step.actions);
		if (more)
			event = start(keeper);
		if (step.next != before && !more) {
			keeper->since_usec = realtime_usec();
			keeper_clients_tell_change(keeper);
		}
	}
}

static enum keeper_event main_ended(struct keeper *keeper, const siginfo_t *info)
{
	bool exited = info->si_code == CLD_EXITED;
	keeper->main_pid = 0;
	keeper->end = exited ? UNIT_END_EXITED : UNIT_END_SIGNALED;
	keeper->status = info->si_status;
	return keeper_verdict(exited ? info->si_status : 0, exited ? 0 : info->si_status);
}

/* __WALL: a descendant may have been cloned with another signal than SIGCHLD. */
void keeper_reap(struct keeper *keeper)
{
	enum keeper_event ended = KEEPER_EVENTS;
	for (;;) {
		siginfo_t info = {0};
		int r = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			keeper->drained = true; /* ECHILD: nobody is left, not even one that has daemonized */
		if (r < 0 || info.si_pid == 0)
			break;
		if (info.si_pid == keeper->main_pid)
			ended = main_ended(keeper, &info);
	}
	if (ended != KEEPER_EVENTS)
		keeper_dispatch(keeper, ended);
	if (keeper->drained)
		keeper_dispatch(keeper, KEEPER_ON_DRAINED);
}
