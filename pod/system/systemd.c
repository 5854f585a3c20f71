/* The service backend over the user manager of systemd. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/refusal.h"
#include "pod/system/journal.h"
#include "pod/system/logfile.h"
#include "pod/system/process.h"
#include "pod/system/records.h"
#include "pod/system/systemd_files.h"
#include "pod/system/systemd_guard.h"
#include "pod/system/systemd_install.h"

/* After SIGKILL the manager has this long to notice. */
#define KILLED_MS 5000
#define GUARD_MS 60000

static struct systemd *systemd_of(struct service *service)
{
	return (struct systemd *)service;
}

static struct pod_file unit_of(const struct systemd *systemd, const struct pod_name *name)
{
	return pod_file_unit(systemd->context.plane->prefix, name);
}

/* Another plane has this prefix, and with it every unit of that name: nothing of it is shown, stopped or removed. */
static bool others(const struct systemd *systemd)
{
	return unit_template_is_others(systemd->context.plane);
}

/* What is asked of the manager; `data` is the question's own. */
typedef int (*question)(struct systemd *systemd, void *data, struct err *err);

/* A lost answer is asked for again on a new connection, once, and never assumed: every question here may be asked twice. */
static int ask(struct systemd *systemd, question ask_once, void *data, struct err *err)
{
	struct err why = {0};
	int r = systemd->manager.bus ? ask_once(systemd, data, &why) : -ENOTCONN;
	if (r < 0 && bus_lost(r)) {
		manager_close(&systemd->manager);
		r = manager_open(&systemd->manager, systemd->context.crowd, &why);
		if (r == 0)
			r = ask_once(systemd, data, &why);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int backend_open(const struct service_context *context, struct service **ret_service, struct err *err)
{
	AUTO_FREE struct systemd *systemd = calloc(1, sizeof *systemd);
	if (!systemd)
		return err_code(err, -ENOMEM, "systemd", NULL);
	systemd->service.ops = &service_systemd;
	systemd->context = *context;
	int r = manager_open(&systemd->manager, context->crowd, err);
	if (r == 0)
		*ret_service = &TAKE_PTR(systemd)->service;
	return r;
}

static void backend_close(struct service *service)
{
	struct systemd *systemd = systemd_of(service);
	manager_close(&systemd->manager);
	free(systemd);
}

static void backend_prepare(struct service *service, const struct pod_name *name)
{
	systemd_prepare(systemd_of(service), name);
}

static int install_once(struct systemd *systemd, void *data, struct err *err)
{
	return systemd_install(systemd, data, err);
}

static int backend_install(struct service *service, const struct service_unit *unit, struct err *err)
{
	struct service_unit copy = *unit;
	return ask(systemd_of(service), install_once, &copy, err);
}

/* ---- state ---- */

static int state_of(const struct unit_properties *properties, struct unit_state *ret_state, struct err *err)
{
	char mount[PLANE_PATH_MAX] = "";
	if (*properties->control_group) {
		int r = cgroup2_mount(mount, sizeof mount, err);
		if (r < 0)
			return r;
	}
	return unit_state_map(properties, mount, ret_state, err);
}

struct state_question {
	const struct pod_name *name;
	struct unit_state state;
};

static int query_once(struct systemd *systemd, void *data, struct err *err)
{
	struct state_question *q = data;
	struct unit_properties properties;
	struct err why = {0};
	manager_changes_from_here(&systemd->manager, unit_of(systemd, q->name).text); /* what is heard from now on may be newer than the answer */
	systemd->last_name = (struct pod_name){0};
	int r = manager_query(&systemd->manager, unit_of(systemd, q->name).text, &properties, &why);
	if (r == -ENOENT) {
		properties = (struct unit_properties){.active_state = "inactive"};
		(void)snprintf(properties.load_state, sizeof properties.load_state, "%s",
			       unit_template_exists(systemd->context.plane) ? "loaded" : "not-found");
		r = 0;
	}
	if (r == 0 && !properties.exec_main_code && strcmp(properties.active_state, "inactive") == 0) {
		struct bus_end end = manager_end(&systemd->manager, unit_of(systemd, q->name).text);
		properties.exec_main_code = end.code;
		properties.exec_main_status = end.status;
	}
	if (r == 0)
		r = state_of(&properties, &q->state, &why);
	if (r < 0 && err)
		*err = why;
	return r;
}

static void remember(struct systemd *systemd, const struct state_question *q)
{
	systemd->last = q->state;
	systemd->last_name = *q->name;
}

static int backend_query(struct service *service, const struct pod_name *name, struct unit_state *ret_state, struct err *err)
{
	struct systemd *systemd = systemd_of(service);
	struct state_question q = {.name = name, .state.active = UNIT_ABSENT};
	int r = others(systemd) ? 0 : ask(systemd, query_once, &q, err);
	if (r < 0)
		return r;
	remember(systemd, &q);
	*ret_state = q.state;
	return 0;
}

static int list_once(struct systemd *systemd, void *data, struct err *err)
{
	char pattern[PLANE_PREFIX_MAX + 16];
	(void)snprintf(pattern, sizeof pattern, "%s@*.service", systemd->context.plane->prefix);
	return manager_list(&systemd->manager, pattern, data, err);
}

static int listing_make(const struct systemd *systemd, const struct unit_entries *entries, struct service_listing *listing, struct err *err)
{
	listing->units = calloc(entries->n + 1, sizeof *listing->units);
	if (!listing->units)
		return err_code(err, -ENOMEM, "systemd", NULL);
	for (size_t i = 0; i < entries->n; i++) {
		struct service_listed *listed = &listing->units[listing->count];
		if (unit_name_split(systemd->context.plane->prefix, entries->v[i].unit, &listed->name) < 0)
			continue;
		int r = state_of(&entries->v[i].properties, &listed->state, err);
		if (r < 0)
			return r;
		listing->count++;
	}
	return 0;
}

static int backend_list(struct service *service, struct service_listing *ret_listing, struct err *err)
{
	AUTO_UNIT_ENTRIES struct unit_entries entries = {0};
	struct service_listing listing = {0};
	if (others(systemd_of(service))) {
		*ret_listing = listing;
		return 0;
	}
	int r = ask(systemd_of(service), list_once, &entries, err);
	if (r == 0)
		r = listing_make(systemd_of(service), &entries, &listing, err);
	if (r < 0) {
		service_listing_free(&listing);
		return r;
	}
	listing.defined = unit_template_exists(systemd_of(service)->context.plane);
	*ret_listing = listing;
	return 0;
}

/* ---- start, stop ---- */

struct job_question {
	const char *unit;
	struct deadline until;
	bool patient; /* longer than systemd waits by itself */
};

/* The start limit holds for a unit that has failed, and for a quick row of starts by hand. A unit that runs keeps its count of restarts. */
static int forget_failures(struct systemd *systemd, const char *unit, struct err *err)
{
	struct unit_properties properties;
	struct err why = {0};
	int r = manager_query(&systemd->manager, unit, &properties, &why);
	if (r == 0 && (strcmp(properties.active_state, "failed") == 0 || strcmp(properties.active_state, "inactive") == 0))
		r = manager_reset_failed(&systemd->manager, unit, &why);
	if (r == 0 || r == -ENOENT)
		return 0;
	if (err)
		*err = why;
	return r;
}

/* With Type=exec a payload that ends at once may end before the manager has seen it begin: the job is then "failed" or "done" by chance. It was
 * started, and the unit's state tells how it ended. 200 and above are the manager's own statuses of a start that did not come to that. */
static bool has_run(const struct unit_properties *properties)
{
	bool ended = strcmp(properties->result, "exit-code") == 0 || strcmp(properties->result, "signal") == 0 ||
		     strcmp(properties->result, "core-dump") == 0;
	return ended && properties->exec_main_code && (properties->exec_main_code != CLD_EXITED || properties->exec_main_status < 200);
}

/* The manager's word for the job is "failed" whatever the reason; the unit's result says more. */
static int start_judge(struct systemd *systemd, const char *unit, int code, struct err *err)
{
	struct unit_properties properties;
	if (code != -EIO || manager_query(&systemd->manager, unit, &properties, NULL) < 0)
		return code;
	if (strcmp(systemd->manager.result, "failed") == 0 && has_run(&properties))
		return 0;
	return err_set(err, code, "start", unit, "the start job ended with \"%s\" (the unit: %s, %s, status %d)", systemd->manager.result,
		       properties.active_state, properties.result, properties.exec_main_status);
}

static int start_once(struct systemd *systemd, void *data, struct err *err)
{
	const struct job_question *q = data;
	int r = manager_watch(&systemd->manager, q->unit, err); /* from its first run on */
	if (r == 0)
		r = forget_failures(systemd, q->unit, err);
	return r < 0 ? r : manager_start(&systemd->manager, q->unit, err);
}

/* On a new connection the job is not known any more: who asks again gets the same one, or one that has nothing to do. */
static int started_once(struct systemd *systemd, void *data, struct err *err)
{
	const struct job_question *q = data;
	struct err why = {0};
	int r = *systemd->manager.job ? 0 : start_once(systemd, data, &why);
	if (r == 0)
		r = manager_await_job(&systemd->manager, q->unit, q->until, &why);
	if (r < 0)
		r = start_judge(systemd, q->unit, r, &why);
	if (r < 0 && err)
		*err = why;
	return r;
}

static int job_ask(struct service *service, const struct service_unit *unit, struct deadline until, question ask_once, struct err *err)
{
	struct pod_file file = unit_of(systemd_of(service), unit->name);
	struct job_question q = {.unit = file.text, .until = until};
	return ask(systemd_of(service), ask_once, &q, err);
}

static int backend_start(struct service *service, const struct service_unit *unit, struct deadline until, struct err *err)
{
	return job_ask(service, unit, until, start_once, err);
}

static int backend_started(struct service *service, const struct service_unit *unit, struct deadline until, struct err *err)
{
	return job_ask(service, unit, until, started_once, err);
}

static int kill_and_await(struct systemd *systemd, const char *unit, struct err *err)
{
	int r = manager_kill(&systemd->manager, unit, SIGKILL, err);
	if (r < 0)
		return r;
	r = manager_await_job(&systemd->manager, unit, deadline_in_ms(KILLED_MS), err);
	return r == -ETIMEDOUT ? err_set(err, r, "stop", unit, "the unit did not end, not even by SIGKILL") : r;
}

/* A job of systemd would be at its end after TimeoutStopSec: it is asked to end without one. Whatever stands in the way of that, the job follows. */
static void let_it_end(struct manager *manager, const struct job_question *q)
{
	struct unit_properties properties;
	if (manager_watch(manager, q->unit, NULL) < 0 || manager_kill(manager, q->unit, SIGTERM, NULL) < 0)
		return;
	do {
		manager_changes_from_here(manager, q->unit);
		if (manager_query(manager, q->unit, &properties, NULL) < 0 || strcmp(properties.active_state, "active") != 0)
			return;
	} while (manager_await_change(manager, q->until, NULL) > 0);
}

static int stop_once(struct systemd *systemd, void *data, struct err *err)
{
	const struct job_question *q = data;
	struct err why = {0};
	if (q->patient)
		let_it_end(&systemd->manager, q);
	int r = manager_stop(&systemd->manager, q->unit, q->until, &why);
	if (r == -ETIMEDOUT && *systemd->manager.job)
		r = kill_and_await(systemd, q->unit, &why);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && err)
		*err = why;
	return r;
}

static int backend_stop(struct service *service, const struct pod_name *name, int64_t grace_ms, struct unit_group *group, struct err *err)
{
	(void)group;
	struct pod_file file = unit_of(systemd_of(service), name);
	struct job_question q = {.unit = file.text, .until = deadline_in_ms(grace_ms), .patient = grace_ms > (int64_t)STOP_SECS_DEFAULT * 1000};
	return others(systemd_of(service)) ? 0 : ask(systemd_of(service), stop_once, &q, err);
}

/* ---- wait ---- */

struct wait_question {
	struct state_question state; /* first: query_once takes it */
	struct deadline until;
	bool known;		/* `before` is what the caller was told last */
	struct unit_state before;
};

/* What was answered last holds until a change is heard. */
static int wait_once(struct systemd *systemd, void *data, struct err *err)
{
	struct wait_question *q = data;
	struct pod_file unit = unit_of(systemd, q->state.name);
	bool holds = q->known && manager_follows(&systemd->manager, unit.text);
	/* Watched before it is asked, so that no change falls between. */
	int r = manager_watch(&systemd->manager, unit.text, err);
	for (q->state.state = q->before;; holds = false) {
		if (r >= 0 && !holds)
			r = query_once(systemd, &q->state, err);
		if (r < 0)
			return r;
		if (!q->known)
			q->before = q->state.state;
		q->known = true;
		if (unit_state_differs(&q->before, &q->state.state))
			return 0;
		r = manager_await_change(&systemd->manager, q->until, err);
		if (r <= 0)
			return r;
	}
}

static int backend_wait(struct service *service, const struct pod_name *name, struct deadline until, struct unit_state *ret_state, struct err *err)
{
	struct systemd *systemd = systemd_of(service);
	struct wait_question q = {.state = {.name = name}, .until = until, .before = systemd->last};
	q.known = strcmp(systemd->last_name.text, name->text) == 0;
	int r = ask(systemd, wait_once, &q, err);
	if (r < 0)
		return r;
	remember(systemd, &q.state);
	*ret_state = q.state.state;
	return 0;
}

/* ---- logs, forget ---- */

/* Which of the two a pod writes to was decided when it was started; the journal may have become readable since, but a log file tells. */
static bool logs_to_file(const struct systemd *systemd, const struct pod_name *name)
{
	bool exists = false;
	return !journal_readable() || (logfile_exists(systemd->context.plane, name, &exists, NULL) == 0 && exists);
}

/* When this pod's home was made, else when it was recorded, 0 unknown: what is older an earlier pod of this name has said. */
static int64_t made_usec(const struct systemd *systemd, const struct pod_name *name)
{
	AUTO_RECORD struct record record = {0};
	AUTO_SPEC struct spec spec = {0};
	long long secs = 0, nsecs = 0;
	if (!systemd->context.pods_dir || record_load(systemd->context.pods_dir, name, &record, NULL) < 0 || spec_from_record(&record, &spec, NULL) < 0)
		return 0;
	if (sscanf(spec.home_identity, "%*[^:]:%lld.%lld", &secs, &nsecs) == 2)
		return secs * 1000000 + nsecs / 1000;
	return spec.created * 1000000;
}

static int backend_logs(struct service *service, const struct pod_name *name, unsigned lines, bool follow, int fd, struct err *err)
{
	struct systemd *systemd = systemd_of(service);
	if (others(systemd) || logs_to_file(systemd, name))
		return logfile_copy(systemd->context.plane, name, lines, follow, fd, err);
	return journal_copy(unit_of(systemd, name).text, lines, made_usec(systemd, name), follow, fd, err);
}

static int backend_log_line(struct service *service, const struct pod_name *name, const char *line, struct err *err)
{
	struct systemd *systemd = systemd_of(service);
	if (logs_to_file(systemd, name))
		return logfile_line(systemd->context.plane, name, line, err);
	return journal_line(unit_of(systemd, name).text, line, err);
}

static int forget_once(struct systemd *systemd, void *data, struct err *err)
{
	return systemd_forget(systemd, data, err);
}

static int backend_forget(struct service *service, const struct pod_name *name, struct err *err)
{
	struct pod_name copy = *name;
	return others(systemd_of(service)) ? 0 : ask(systemd_of(service), forget_once, &copy, err);
}

/* ---- changes of all of them ---- */

struct watch_question {
	struct watch_set *watch;
};

static int watch_once(struct systemd *systemd, void *data, struct err *err)
{
	const struct watch_question *q = data;
	char beginning[PLANE_PREFIX_MAX + 2];
	(void)snprintf(beginning, sizeof beginning, "%s@", systemd->context.plane->prefix);
	int fd = manager_watch_all(&systemd->manager, beginning, err);
	return fd < 0 ? fd : watch_add(q->watch, fd);
}

static int backend_watch(struct service *service, struct watch_set *watch, struct err *err)
{
	struct watch_question q = {watch};
	return ask(systemd_of(service), watch_once, &q, err);
}

static bool backend_changed(struct service *service)
{
	struct systemd *systemd = systemd_of(service);
	return !systemd->manager.bus || manager_changed(&systemd->manager);
}

/* ---- guard ---- */

static int guard_once(struct systemd *systemd, void *data, struct err *err)
{
	return systemd_guard(systemd, data, deadline_in_ms(GUARD_MS), err);
}

static int backend_guard(struct service *service, const struct service_unit *unit, struct err *err)
{
	struct service_unit copy = *unit;
	int r = ask(systemd_of(service), guard_once, &copy, err);
	return r < 0 ? err_prepend(err, "nobody can watch for the end of its life") : 0;
}

struct unguard_question {
	const struct pod_name *name;
	const char *id;
};

static int unguard_once(struct systemd *systemd, void *data, struct err *err)
{
	const struct unguard_question *q = data;
	return systemd_unguard(systemd, q->name, q->id, deadline_in_ms(GUARD_MS), err);
}

static int backend_unguard(struct service *service, const struct pod_name *name, const char *id, struct err *err)
{
	struct unguard_question q = {name, id};
	return ask(systemd_of(service), unguard_once, &q, err);
}

const struct service_ops service_systemd = {
	.name = "systemd",
	.open = backend_open,
	.close = backend_close,
	.install = backend_install,
	.prepare = backend_prepare,
	.start = backend_start,
	.started = backend_started,
	.stop = backend_stop,
	.query = backend_query,
	.list = backend_list,
	.wait = backend_wait,
	.logs = backend_logs,
	.log_line = backend_log_line,
	.forget = backend_forget,
	.watch = backend_watch,
	.changed = backend_changed,
	.guard = backend_guard,
	.unguard = backend_unguard,
};
