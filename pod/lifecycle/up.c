#include "pod/lifecycle/up.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "fsops/tree.h"
#include "pod/lifecycle/intent.h"
#include "pod/lifecycle/look.h"
#include "pod/lifecycle/peers.h"
#include "pod/lifecycle/port_choice.h"
#include "pod/lifecycle/progress.h"
#include "pod/lifecycle/retire.h"
#include "pod/lifecycle/vacancy.h"
#include "pod/model/environment.h"
#include "pod/model/refusal.h"
#include "pod/system/home_look.h"
#include "pod/system/homes.h"
#include "pod/system/interrupt.h"
#include "pod/system/log_tail.h"
#include "pod/system/logfile.h"
#include "pod/system/records.h"

#define NAME_LOCK_WAIT_MS 2000
#define RACES_RETRIED 3
#define TAIL_MS 500
#define TAIL_LINES 20
#define STOP_FOR_RESTART_MS 5000
#define COMPLETE_MS 3000

/* One `up` under way. The `made_…` flags are the undo list. */
struct ascent {
	struct session *session;
	const struct up_request *request;
	struct up_report *report;
	struct service *service;
	struct service_unit unit;
	struct record record, before; /* `before`: what was recorded when this call began */
	struct spec spec;
	struct life life; /* what was wished for */
	struct port_set lost;
	bool made_record, made_home, guarded, started, had_log;
	bool moves; /* to another backend */
};

static void cleanup_ascent(struct ascent *a)
{
	record_free(&a->record);
	record_free(&a->before);
	spec_free(&a->spec);
}

void up_report_free(struct up_report *report)
{
	words_free(&report->warnings);
	free(report->log_tail);
	report->log_tail = NULL;
}

__attribute__((format(printf, 2, 3))) static void warn(struct up_report *report, const char *format, ...)
{
	char line[1024];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	(void)words_append(&report->warnings, line);
}

/* --- what is recorded and wanted --------------------------------------------------------------------------------------- */

static int load_before(struct ascent *a, struct err *err)
{
	struct err why = {0};
	int r = record_load(&a->session->pods_dir, &a->request->name, &a->before, &why);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		*err = why;
	return r;
}

static int decide_spec(struct ascent *a, struct err *err)
{
	AUTO_SPEC struct spec recorded = {0};
	int r = spec_from_record(&a->before, &recorded, err);
	if (r == 0)
		r = intent_make(a->session, a->request, &recorded, &a->spec, err);
	life_wish_lay_over(&a->request->life, &a->life, &a->spec.life);
	for (size_t i = 0; r == 0 && i < recorded.warnings.n; i++)
		warn(a->report, "%s", recorded.warnings.v[i]);
	return r;
}

static int choose_service(struct ascent *a, enum backend recorded, struct err *err)
{
	enum backend wanted = a->request->backend != BACKEND_AUTO ? a->request->backend : recorded;
	int r = session_service(a->session, wanted, &a->service, err);
	if (r < 0)
		return r;
	a->report->backend = service_backend(a->service);
	a->unit = (struct service_unit){
		.name = &a->request->name, .spec = &a->spec};
	return 0;
}

/* --- making ------------------------------------------------------------------------------------------------------------- */

static int write_record_unsynced(struct ascent *a, struct err *err)
{
	int r = spec_to_record(&a->spec, &a->record, err);
	if (r == 0)
		r = record_store_unsynced(&a->session->pods_dir, &a->request->name, &a->record, err);
	if (r == 0)
		a->made_record = true;
	return r;
}

static int write_record(struct ascent *a, struct err *err)
{
	int r = write_record_unsynced(a, err);
	return r < 0 ? r : records_sync(&a->session->pods_dir, err);
}

/* `run` has its own way with them. */
static int hold_signals(const struct ascent *a, struct err *err)
{
	return a->session->foreground ? 0 : interrupt_hold(err);
}

static int record_home(void *ascent, const struct pin *home, struct err *err)
{
	struct ascent *a = ascent;
	int r = directory_identity(home, a->spec.home_identity, err);
	if (r == 0)
		r = directory_identity(&a->session->root, a->spec.root_identity, err);
	return r < 0 ? r : write_record_unsynced(a, err);
}

/* Recorded before it has its name: killed in between, this call leaves nothing that nobody owns. */
static int make_home(struct ascent *a, struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	int r = home_make_claimed(&a->session->root, &a->request->name, a->spec.id, record_home, a, &home, err);
	a->made_home |= r == 0;
	return r;
}

/* `write` under the plane's lock: who chooses next sees which port is taken. */
static int settle(struct ascent *a, int (*write)(struct ascent *a, struct err *err), struct err *err)
{
	AUTO_LOCK struct lock plane_lock = LOCK_NONE;
	int r = session_lock_plane(a->session, &plane_lock, err);
	bool moved = false;
	int before = a->spec.port;
	struct port_set taken = a->lost;
	if (r == 0)
		r = peers_look(a->session, &a->request->name, &plane_lock, &taken, err);
	if (r == 0)
		r = port_choose(&a->session->around.plane, &a->request->name, &taken, &a->spec, &moved, err);
	if (r == 0) /* from here on there is something to take back */
		r = hold_signals(a, err);
	if (r == 0)
		r = write(a, err);
	if (r == 0 && moved)
		warn(a->report, "port %d is taken, %s moved to %d", before ? before : port_preferred(&a->session->around.plane, &a->request->name),
		     a->request->name.text, a->spec.port);
	return r;
}

static int refuse_unwatched(const struct ascent *a, struct err *err)
{
	return refuse(err, REFUSAL_USAGE, a->request->name.text, "--owner and --ttl need systemd or the embedded keeper: below %s nobody could watch",
		      a->service->ops->name);
}

/* Before the pod begins to run, so that there is no moment in which nobody watches. */
static int guard(struct ascent *a, struct err *err)
{
	const struct service_ops *ops = a->service->ops;
	if (!life_is_bounded(&a->spec.life))
		return 0;
	if (!ops->guard)
		return refuse_unwatched(a, err);
	a->guarded = true;
	return ops->guard(a->service, &a->unit, err);
}

static int unguard(struct ascent *a, struct err *err)
{
	const struct service_ops *ops = a->service->ops;
	return ops->unguard ? ops->unguard(a->service, &a->request->name, a->spec.id, err) : 0;
}

/* The record is synced while the payload comes up: after a power cut neither is there. */
static int start(struct ascent *a, struct deadline until, struct err *err)
{
	int r = note_delete(&a->session->pods_dir, &a->request->name, err);
	if (r == 0)
		r = a->service->ops->install(a->service, &a->unit, err);
	if (r < 0)
		return r;
	a->started = true;
	progress_say(a->session, "%s: %s is asked to start it", a->request->name.text, a->service->ops->name);
	r = a->service->ops->start(a->service, &a->unit, until, err);
	if (r == 0)
		r = records_sync(&a->session->pods_dir, err);
	return r < 0 || !a->service->ops->started ? r : a->service->ops->started(a->service, &a->unit, until, err);
}

/* --- taking back ---------------------------------------------------------------------------------------------------------- */

static void keep_log_tail(struct ascent *a)
{
	(void)service_log_tail(a->service, &a->request->name, TAIL_LINES, deadline_in_ms(TAIL_MS), &a->report->log_tail);
}

static int undo_home(struct ascent *a, struct err *err)
{
	struct tree_left left = {0};
	return a->made_home ? retire_home(a->session, &a->request->name, a->request->name.text, &left, err) : 0;
}

static int undo_record(struct ascent *a, struct err *err)
{
	if (!a->made_record)
		return 0;
	if (a->before.count)
		return record_store(&a->session->pods_dir, &a->request->name, &a->before, err);
	return record_delete(&a->session->pods_dir, &a->request->name, err);
}

/* The record of a new pod stays, but must not claim a home that is gone. */
static int undo_refused(struct ascent *a, struct err *err)
{
	int r = undo_home(a, err);
	if (r == 0 && a->before.count)
		return undo_record(a, err);
	if (r < 0 || !a->made_home)
		return r;
	a->spec.home_identity[0] = '\0';
	return write_record(a, err);
}

/* What was recorded before may have had an owner of its own. */
static int undo_guard(struct ascent *a, struct err *err)
{
	AUTO_SPEC struct spec before = {0};
	struct service_unit unit = a->unit;
	int r = spec_from_record(&a->before, &before, err);
	if (r < 0 || !life_is_bounded(&before.life))
		return r < 0 ? r : unguard(a, err);
	unit.spec = &before;
	return a->service->ops->guard(a->service, &unit, err);
}

/* A refusal stays listed: note and the unit's failed state remain, and the record, of a pod that was there as it was; the home that this call made goes. */
static int undo(struct ascent *a, struct err *err)
{
	int r = 0;
	if (a->report->refused) {
		r = undo_refused(a, err);
		return r == 0 && a->before.count && a->guarded ? undo_guard(a, err) : r;
	}
	if (a->started) {
		r = a->service->ops->stop(a->service, &a->request->name, (int64_t)spec_stop_secs(&a->spec) * 1000, NULL, err);
		if (r == 0)
			r = a->service->ops->forget(a->service, &a->request->name, err);
	}
	if (r == 0)
		r = undo_home(a, err);
	if (r == 0 && !a->had_log)
		r = logfile_forget(&a->session->around.plane, &a->request->name, err);
	if (r == 0) /* after what only it lets others find */
		r = undo_record(a, err);
	if (r == 0 && a->guarded)
		r = undo_guard(a, err);
	return r;
}

static int fail(struct ascent *a, int cause)
{
	progress_say(a->session, "%s: what was made is taken back", a->request->name.text);
	struct err why = {0};
	if (undo(a, &why) < 0)
		warn(a->report, "what this call made could not be taken back: %s: %s; `kirocrew-pod down %s` removes it", why.subject, why.text,
		     a->request->name.text);
	return cause;
}

/* --- ready -------------------------------------------------------------------------------------------------------------- */

static int budget_secs(const struct ascent *a)
{
	return a->request->wait_secs ? a->request->wait_secs : a->session->around.plane.health_secs;
}

static int explain_death(const struct ascent *a, const struct unit_state *unit, struct err *err)
{
	bool by_signal = unit->end == UNIT_END_SIGNALED;
	const char *advice = !by_signal && unit->status == 0 ? "; a pod's command has to stay in the foreground"
			     : a->report->log_tail && *a->report->log_tail ? "; the end of its log is above"
									    : "; nothing is in its log";
	return err_set(err, -ECHILD, "up", a->request->name.text, "it died before it was ready: %s %d%s", by_signal ? "signal" : "status", unit->status, advice);
}

static int explain_silence(const struct ascent *a, const struct ready *ready, struct err *err)
{
	char why[160];
	if (ready->listener.owner == PORT_NOBODY)
		(void)snprintf(why, sizeof why, "nothing listens on port %d", a->spec.port);
	else
		(void)snprintf(why, sizeof why, "it listens on port %d and does not answer", a->spec.port);
	return err_set(err, -ETIMEDOUT, "up", a->request->name.text,
		       "it was not ready within %d s: %s; see that it serves there ({port} in its command, or $PORT), or raise the budget with --wait-secs or "
		       "KIROCREW_POD_HEALTH_SECS",
		       budget_secs(a), why);
}

static const char *what_is_left(const struct ascent *a)
{
	return a->report->was_running ? "it runs, and is left alone" : a->made_home ? "nothing of it is kept" : "it is as it was before";
}

static int explain_interruption(const struct ascent *a, struct err *err)
{
	return err_set(err, -EINTR, "up", a->request->name.text, "interrupted before it was ready; %s", what_is_left(a));
}

/* Of one that ran already its guard takes the rest. */
static int explain_end_of_life(const struct ascent *a, enum life_end over, struct err *err)
{
	char end[96];
	life_end_describe(&a->spec.life, over, end, sizeof end);
	return err_set(err, -EOWNERDEAD, "up", a->request->name.text, "%s before it was ready; %s", end, a->report->was_running ? "it is being taken down" : what_is_left(a));
}

static int explain(struct ascent *a, const struct ready *ready, struct err *err)
{
	const char *name = a->request->name.text;
	switch (ready->end) {
	case READY_UP:
		return 0;
	case READY_REFUSED:
		a->report->refused = true;
		return refuse_as_noted(&ready->note, ready->unit.status, name, err);
	case READY_DIED:
		return explain_death(a, &ready->unit, err);
	case READY_FOREIGN:
		return err_set(err, -EADDRINUSE, "up", name, "port %d is foreign: pid %d (%s) listens on it, which is not of this pod; free it or use --port",
			       a->spec.port, (int)ready->listener.pid, ready->listener.program);
	case READY_UNHEALTHY:
		return err_set(err, -EPROTO, "up", name, "it answers on port %d, but with status %d for %d s; see its log, or name another path with --health",
			       a->spec.port, ready->health.http_status, budget_secs(a));
	case READY_LIFE_OVER:
		return explain_end_of_life(a, ready->life, err);
	case READY_INTERRUPTED:
		return explain_interruption(a, err);
	case READY_TIMEOUT:
		break;
	}
	return explain_silence(a, ready, err);
}

/* A machine's choice of port that was lost between the test and the payload's bind. */
static bool lost_race(struct ascent *a, const struct ready *ready)
{
	if (!a->spec.port_auto || a->spec.health.kind == HEALTH_NONE)
		return false;
	return ready->end == READY_FOREIGN || (ready->end == READY_DIED && port_is_taken(a->spec.port));
}

static int move_on(struct ascent *a, struct err *err)
{
	port_set_add(&a->lost, a->spec.port);
	int r = a->service->ops->stop(a->service, &a->request->name, STOP_FOR_RESTART_MS, NULL, err);
	return r < 0 ? r : settle(a, write_record_unsynced, err);
}

static int climb(struct ascent *a, struct err *err)
{
	struct deadline until = deadline_in_ms((int64_t)budget_secs(a) * 1000);
	for (int lost = 0;; lost++) {
		struct ready ready = {0};
		int r = start(a, until, err);
		if (r == -EINTR && interrupt_noted())
			return explain_interruption(a, err);
		if (r == 0)
			r = ready_wait(a->session, a->service, &a->request->name, &a->spec, until, 0, &ready, err);
		if (r < 0 || ready.end == READY_UP) {
			a->report->pid = ready.unit.main_pid;
			a->report->ready_ms = ready.ms;
			return r;
		}
		if (lost == RACES_RETRIED || !lost_race(a, &ready)) {
			if (ready.end != READY_INTERRUPTED)
				keep_log_tail(a);
			return explain(a, &ready, err);
		}
		r = move_on(a, err);
		if (r < 0)
			return r;
	}
}

/* --- the line ----------------------------------------------------------------------------------------------------------- */

static int fill_report(struct ascent *a, struct err *err)
{
	struct pod_paths paths;
	int r = pod_paths_make(&a->session->around.plane, &a->request->name, &paths, err);
	if (r < 0)
		return r;
	struct up_report *report = a->report;
	report->name = a->request->name;
	report->port = a->spec.port;
	(void)snprintf(report->id, sizeof report->id, "%s", a->spec.id);
	(void)snprintf(report->home, sizeof report->home, "%s", paths.home);
	(void)snprintf(report->os_home, sizeof report->os_home, "%s", paths.os_home);
	return 0;
}

static bool asks_for_changes(const struct up_request *q)
{
	return q->checkout || q->command_count || q->port || q->seed || q->health || q->memory_max || q->cpu_quota || q->approval || q->crons ||
	       q->no_embeddings;
}

static void tell_new_life(struct ascent *a, const struct life *before)
{
	const struct life *life = &a->spec.life;
	const char *name = a->request->name.text;
	if (before->owner.pid != life->owner.pid && life->owner.pid)
		warn(a->report, "%s runs already, and ends with pid %d from now on", name, (int)life->owner.pid);
	if (before->owner.pid && !life->owner.pid)
		warn(a->report, "%s runs already, and does not end with pid %d any more", name, (int)before->owner.pid);
	if (before->limit.epoch_s && !life->limit.epoch_s)
		warn(a->report, "%s runs already, and its time has no end any more", name);
	if (a->request->life.ttl_s)
		warn(a->report, "%s runs already, and its time is %lld s from now on", name, (long long)a->request->life.ttl_s);
}

/* Owner and time hold at once: the last that was said. */
static int change_life(struct ascent *a, const struct life *before, struct err *err)
{
	if (!a->request->life.owner_said && !a->request->life.ttl_said)
		return 0;
	life_wish_lay_over(&a->request->life, &a->life, &a->spec.life);
	struct err why = {0};
	int r = write_record(a, err);
	if (r < 0)
		return r;
	r = life_is_bounded(&a->spec.life) ? guard(a, err) : unguard(a, err);
	if (r == 0)
		tell_new_life(a, before);
	else if (undo_record(a, &why) < 0) /* else an end would be recorded that nobody watches for */
		warn(a->report, "what was recorded of %s could not be put back: %s", a->request->name.text, why.text);
	return r;
}

/* By what they mean: a record may have been written by hand. */
static int changes_recorded(const struct ascent *a, bool *ret_changes, struct err *err)
{
	AUTO_SPEC struct spec recorded = {0};
	AUTO_RECORD struct record was = {0}, will_be = {0};
	int r = spec_from_record(&a->before, &recorded, err);
	if (r == 0)
		r = record_copy(&a->before, &was, err);
	if (r == 0)
		r = record_copy(&a->before, &will_be, err);
	if (r == 0)
		r = spec_to_record(&recorded, &was, err);
	if (r == 0)
		r = spec_to_record(&a->spec, &will_be, err);
	*ret_changes = r == 0 && !record_same(&was, &will_be);
	return r;
}

/* The running process keeps its port and its words: what is recorded now is read at the next boot. */
static int change_next_boot(struct ascent *a, const struct pod_facts *facts, struct err *err)
{
	bool changes = false;
	int r = decide_spec(a, err);
	if (r == 0 && a->request->port && a->spec.port != facts->port)
		return refuse(err, REFUSAL_PORT_KEPT, a->request->name.text, "it has port %d", facts->port);
	a->spec.life = facts->spec.life; /* holds at once, and is told apart */
	if (r == 0)
		r = changes_recorded(a, &changes, err);
	if (r < 0 || !changes)
		return r;
	r = write_record(a, err);
	if (r == 0)
		warn(a->report, "%s runs already: the new flags apply at its next boot", a->request->name.text);
	return r;
}

static int already_running(struct ascent *a, const struct pod_facts *facts, struct err *err)
{
	int r = hold_signals(a, err);
	a->report->was_running = true;
	if (r == 0)
		r = asks_for_changes(a->request) ? change_next_boot(a, facts, err) : spec_from_record(&a->before, &a->spec, err);
	a->spec.port = facts->port;
	if (r == 0)
		r = change_life(a, &facts->spec.life, err);
	struct ready ready = {0};
	if (r == 0)
		r = ready_wait(a->session, a->service, &a->request->name, &a->spec, deadline_in_ms((int64_t)budget_secs(a) * 1000),
			       facts->unit.restarts, &ready, err);
	if (r == 0 && ready.end != READY_UP && ready.end != READY_INTERRUPTED)
		keep_log_tail(a);
	if (r == 0)
		r = explain(a, &ready, err);
	a->report->pid = ready.unit.main_pid;
	a->report->ready_ms = ready.ms;
	return r;
}

/* Nothing of a pod that gets another manager is left with its former one. */
static int leave_backend(struct ascent *a, const struct pod_facts *facts, struct err *err)
{
	struct service *former = NULL;
	int r = session_service(a->session, facts->spec.backend, &former, err);
	if (r == 0)
		r = former->ops->stop(former, &a->request->name, STOP_FOR_RESTART_MS, NULL, err);
	if (r == 0 && former->ops->unguard && life_is_bounded(&facts->spec.life))
		r = former->ops->unguard(former, &a->request->name, facts->spec.id, err);
	return r < 0 ? r : former->ops->forget(former, &a->request->name, err);
}

static int quiet_unit(struct ascent *a, const struct pod_facts *facts, struct err *err)
{
	if (a->moves)
		return leave_backend(a, facts, err);
	bool inert = facts->unit.active == UNIT_INACTIVE && !facts->unit_file;
	if (facts->unit.active == UNIT_ABSENT || inert)
		return 0;
	return a->service->ops->stop(a->service, &a->request->name, STOP_FOR_RESTART_MS, NULL, err);
}

/* What an earlier `down` had begun to delete goes; what it had not touched yet is the pod's again. */
static int complete(struct ascent *a, struct err *err)
{
	struct tree_left left = {0};
	int r = retire_remove(a->session, &a->request->name, deadline_in_ms(COMPLETE_MS), &left, err);
	return r < 0 ? r : farewell_delete(&a->session->pods_dir, &a->request->name, err);
}

/* Counted as up because nothing was asked: who forgot {port} would look for a server where there is none. */
static void warn_of_no_question(struct ascent *a)
{
	const struct up_request *q = a->request;
	if (q->command_count && !q->health && !a->session->around.ini.payload_health && a->spec.health.kind == HEALTH_NONE)
		warn(a->report,
		     "nothing was asked of port %d, as neither {port} nor $PORT stands in the command of %s; if it is a server, say {port} there, or --health tcp if it "
		     "reads PORT by itself (--health none is silent)",
		     a->spec.port, q->name.text);
}

static int ascend(struct ascent *a, const struct pod_facts *facts, const struct up_plan *plan, struct err *err)
{
	int r = decide_spec(a, err);
	a->spec.backend = a->report->backend;
	(void)snprintf(a->report->id, sizeof a->report->id, "%s", a->spec.id);
	if (r == 0 && a->service->ops->prepare)
		a->service->ops->prepare(a->service, &a->request->name);
	if (r == 0)
		r = quiet_unit(a, facts, err);
	/* What was recorded says which home was this pod's, and is replaced before there is another. A new pod's home bears its own marker, and the record
	 * is written once. */
	bool new = plan->fresh && !a->before.count;
	if (r == 0)
		r = settle(a, new ? make_home : write_record_unsynced, err);
	if (r == 0)
		r = guard(a, err);
	if (r == 0 && plan->fresh && !new)
		r = make_home(a, err);
	if (r == 0)
		r = climb(a, err);
	if (r == 0)
		warn_of_no_question(a);
	return r < 0 ? fail(a, r) : 0;
}

static int check_guard(struct ascent *a, struct err *err)
{
	return life_is_bounded(&a->life) && !a->service->ops->guard ? refuse_unwatched(a, err) : 0;
}

static int up_locked(struct ascent *a, struct err *err)
{
	AUTO_SIGHT struct sight sight = {0};
	struct up_plan plan;
	int r = look_one(a->session, &a->request->name, (struct look_options){.mute = !a->request->only_new}, &sight, err);
	if (r == 0) /* first: that no manager is there says more than that the unit could not be asked */
		r = choose_service(a, sight.facts.spec.backend, err);
	if (r == 0)
		r = check_guard(a, err);
	if (r == 0)
		r = up_decide_backend(&sight.facts, a->request->backend, &a->moves, err);
	if (r == 0 && a->request->only_new && pod_stands(&sight.facts))
		r = refuse(err, REFUSAL_EXISTS, a->request->name.text, "it is %s", pod_state_name(sight.state));
	if (r == 0)
		r = up_decide(&sight.facts, &plan, err);
	if (r == 0 && plan.unclaimed)
		r = home_vacant(a->session, &sight.facts, (char[OCCUPANTS_MAX]){0}, err);
	if (r == 0)
		r = load_before(a, err);
	if (r == 0)
		r = record_copy(&a->before, &a->record, err);
	if (r == 0)
		r = logfile_exists(&a->session->around.plane, &a->request->name, &a->had_log, err);
	if (r == 0 && plan.complete)
		r = complete(a, err);
	if (r == 0)
		r = plan.running ? already_running(a, &sight.facts, err) : ascend(a, &sight.facts, &plan, err);
	return r < 0 ? r : fill_report(a, err);
}

/* None is made where the pods had one that is gone. */
static int make_plane(struct session *session, struct err *err)
{
	struct port_set claimed = {0};
	int r = session->root.fd < 0 ? peers_look(session, NULL, NULL, &claimed, err) : 0;
	return r < 0 ? r : session_make_plane(session, err);
}

int up(struct session *session, const struct up_request *request, struct up_report *ret_report, struct err *err)
{
	__attribute__((cleanup(cleanup_ascent))) struct ascent a = {.session = session, .request = request, .report = ret_report};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	int r = life_wish_resolve(&request->life, &a.life, err);
	if (r == 0)
		r = make_plane(session, err);
	if (r == 0)
		r = guard_end_what_is_over(session, &request->name, err);
	if (r == 0)
		r = session_lock_name(session, &request->name, NAME_LOCK_WAIT_MS, &lock, err);
	return r < 0 ? r : up_locked(&a, err);
}
