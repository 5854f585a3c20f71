/* The embedded backend: every pod has a keeper of its own, which is asked on its socket. */
#include "pod/system/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fsops/cleanup.h"
#include "pod/system/keeper_group.h"
#include "pod/system/logfile.h"
#include "pod/system/records.h"

static int embedded_open(const struct service_context *context, struct service **ret_service, struct err *err)
{
	struct embedded *e = calloc(1, sizeof *e);
	if (!e)
		return err_code(err, -ENOMEM, "embedded", NULL);
	e->service.ops = &service_embedded;
	e->context = *context;
	e->watch = -1;
	e->prepared = -1;
	*ret_service = &e->service;
	return 0;
}

static void embedded_close(struct service *service)
{
	struct embedded *e = embedded_of(service);
	embedded_dismiss(e);
	embedded_forget_watch(e);
	embedded_close_all(e);
	free(e);
}

/* There is nothing to put anywhere before a start. */
static int embedded_install(struct service *service, const struct service_unit *unit, struct err *err)
{
	(void)service, (void)unit, (void)err;
	return 0;
}

static int embedded_logs(struct service *service, const struct pod_name *name, unsigned lines, bool follow, int fd, struct err *err)
{
	return logfile_copy(embedded_of(service)->context.plane, name, lines, follow, fd, err);
}

static int embedded_log_line(struct service *service, const struct pod_name *name, const char *line, struct err *err)
{
	return logfile_line(embedded_of(service)->context.plane, name, line, err);
}

const struct service_ops service_embedded = {
	.name = "embedded",
	.open = embedded_open,
	.close = embedded_close,
	.install = embedded_install,
	.prepare = embedded_prepare,
	.start = embedded_start,
	.stop = embedded_stop,
	.end_lost = embedded_end_lost,
	.query = embedded_query,
	.list = embedded_list,
	.wait = embedded_wait,
	.logs = embedded_logs,
	.log_line = embedded_log_line,
	.watch = embedded_watch_all,
	.changed = embedded_changed,
	.forget = embedded_forget,
	.guard = embedded_guard,
	.unguard = embedded_unguard,
};

static int connect_until(const struct pin *pods_dir, const struct pod_name *name, struct deadline until, pid_t *ret_keeper, struct err *err)
{
	struct backoff backoff = {0};
	for (;;) {
		int fd = channel_connect(pods_dir, name, ret_keeper, err);
		if (fd != -EAGAIN)
			return fd;
		if (deadline_passed(until))
			return err_set(err, -ETIME, "keeper", name->text, "the keeper takes no callers");
		backoff_sleep(&backoff, until);
	}
}

int embedded_ask(const struct embedded *e, const struct pod_name *name, const struct keeper_request *request, struct deadline until,
		 struct keeper_reply *ret_reply, pid_t *ret_keeper, struct err *err)
{
	const struct pin *pods_dir = embedded_pods_dir(e);
	if (!pods_dir)
		return err_set(err, -ENOENT, "keeper", name->text, "there is no pods dir");
	AUTO_CLOSE int fd = connect_until(pods_dir, name, until, ret_keeper, err);
	int r = fd < 0 ? fd : channel_send(fd, request, err);
	return r < 0 ? r : channel_receive(fd, until, ret_reply, err);
}

void embedded_complete(struct embedded *e, const struct pod_name *name, pid_t keeper, struct unit_state *state)
{
	if (*state->group.cgroup && !*e->cgroup_mount && cgroup2_mount(e->cgroup_mount, sizeof e->cgroup_mount, NULL) < 0)
		*e->cgroup_mount = '\0';
	char group[KEEPER_CGROUP_NAME_MAX];
	keeper_cgroup_name(e->context.plane->prefix, name, state->group.pod_id, group);
	if (*state->group.cgroup && !keeper_cgroup_plausible(e->cgroup_mount, state->group.cgroup, group))
		*state->group.cgroup = 0;
	state->group.tree = keeper;
	(void)snprintf(state->group.pod_name, sizeof state->group.pod_name, "%s", name->text);
}

int embedded_remnants(const struct embedded *e, const struct pod_name *name, const char *id, struct unit_group *ret_group, struct err *err)
{
	struct unit_group group = {0};
	char directory[KEEPER_CGROUP_NAME_MAX];
	(void)snprintf(group.pod_id, sizeof group.pod_id, "%s", id ? id : "");
	(void)snprintf(group.pod_name, sizeof group.pod_name, "%s", name->text);
	int r = *group.pod_id ? 0 : record_id(embedded_pods_dir(e), name, group.pod_id, err);
	if (r < 0)
		return r;
	keeper_cgroup_name(e->context.plane->prefix, name, group.pod_id, directory);
	r = keeper_cgroup_find(directory, group.cgroup, sizeof group.cgroup);
	if (r < 0 && r != -ENOENT)
		return err_code(err, r, "cgroup", directory);
	*ret_group = group;
	return 0;
}

/* A keeper was killed: no manager knows the pod any more, but what it started may live on. */
static int orphaned(const struct embedded *e, const struct pod_name *name, struct unit_state *ret_state, struct err *err)
{
	struct unit_state state = {.active = UNIT_FAILED, .end = UNIT_END_OTHER};
	AUTO_PROCESSES struct process_list members = {0};
	int r = embedded_remnants(e, name, NULL, &state.group, err);
	if (r == 0)
		r = group_members(&state.group, &members, err);
	if (r < 0)
		return r;
	if (members.n > 0)
		(void)snprintf(state.detail, sizeof state.detail, "its keeper was killed; %zu of its processes live on (pid %d)", members.n,
			       (int)members.v[0].pid);
	else
		(void)snprintf(state.detail, sizeof state.detail, "its keeper was killed");
	*ret_state = state;
	return 0;
}

int embedded_state_without_answer(const struct embedded *e, const struct pod_name *name, int code, const char *why, pid_t keeper,
				  struct unit_state *ret_state, struct err *err)
{
	struct unit_state state = {.active = UNIT_UNKNOWN};
	int r = 0;
	switch (code) {
	case -ENOENT:
		state.active = UNIT_ABSENT;
		r = record_id(embedded_pods_dir(e), name, state.group.pod_id, err);
		(void)snprintf(state.group.pod_name, sizeof state.group.pod_name, "%s", name->text);
		break;
	case -ECONNREFUSED:
		return orphaned(e, name, ret_state, err);
	case -ECONNRESET: /* it takes callers and lets each of them go */
	case -ETIME:
		r = embedded_remnants(e, name, NULL, &state.group, err);
		state.group.tree = keeper;
		break;
	default:
		break;
	}
	if (r < 0)
		return r;
	if (state.active == UNIT_UNKNOWN)
		(void)snprintf(state.detail, sizeof state.detail, "%s", code == -ECONNRESET ? "its keeper lives, and lets its callers go" : why);
	*ret_state = state;
	return 0;
}

int embedded_look(struct embedded *e, const struct pod_name *name, struct unit_state *ret_state, struct err *err)
{
	struct keeper_request request = {.verb = KEEPER_ASK_STATUS};
	struct keeper_reply reply;
	struct err why = {0};
	pid_t keeper = 0;
	int r = -ECONNRESET;
	/* One that ends between the question and the answer has taken its name away: the next look sees that. */
	for (int turn = 0; turn < 2 && r == -ECONNRESET; turn++)
		r = embedded_ask(e, name, &request, deadline_in_ms(EMBEDDED_ANSWER_MS), &reply, &keeper, &why);
	if (r == 0 && reply.answer == KEEPER_SAYS_NO)
		r = err_set(&why, reply.code, "keeper", name->text, "%s", reply.text);
	if (r < 0)
		return embedded_state_without_answer(e, name, r, why.text, keeper, ret_state, err);
	*ret_state = reply.state;
	embedded_complete(e, name, keeper, ret_state);
	return 0;
}

int embedded_query(struct service *service, const struct pod_name *name, struct unit_state *ret_state, struct err *err)
{
	struct embedded *e = embedded_of(service);
	int r = embedded_look(e, name, ret_state, err);
	if (r == 0)
		embedded_remember(e, name, ret_state);
	return r;
}

/* The guard is the keeper. One that does not run yet reads the record when it begins; what stands in its place is the start's or the stop's matter. */
static int read_life_again(const struct embedded *e, const struct pod_name *name, struct err *err)
{
	struct keeper_request request = {.verb = KEEPER_ASK_GUARD};
	struct keeper_reply reply;
	struct err why = {0};
	pid_t keeper = 0;
	int r = embedded_ask(e, name, &request, deadline_in_ms(EMBEDDED_ANSWER_MS), &reply, &keeper, &why);
	if (r == -ENOENT || r == -ECONNREFUSED || r == -ECONNRESET || r == -ENOTSOCK || r == -EPERM)
		return 0;
	if (r == 0 && reply.answer == KEEPER_SAYS_NO)
		r = err_set(&why, reply.code, "keeper", name->text, "its keeper cannot watch for the end of its life: %s", reply.text);
	if (r < 0 && err)
		*err = why;
	return r;
}

int embedded_guard(struct service *service, const struct service_unit *unit, struct err *err)
{
	return read_life_again(embedded_of(service), unit->name, err);
}

int embedded_unguard(struct service *service, const struct pod_name *name, const char *id, struct err *err)
{
	(void)id;
	return read_life_again(embedded_of(service), name, err);
}
