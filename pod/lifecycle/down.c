#include "pod/lifecycle/down.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pod/lifecycle/look.h"
#include "pod/lifecycle/progress.h"
#include "pod/lifecycle/retire.h"
#include "pod/lifecycle/up.h"
#include "pod/lifecycle/vacancy.h"
#include "pod/model/environment.h"
#include "pod/model/refusal.h"
#include "pod/system/home_look.h"
#include "pod/system/homes.h"
#include "pod/system/logfile.h"
#include "pod/system/network.h"
#include "pod/system/plane_scan.h"
#include "pod/system/process.h"
#include "pod/system/records.h"

#define NAME_LOCK_WAIT_MS 2000
#define KILL_MS 5000
#define GATE_MS 2000
#define COMES_BACK_MS 3000

/* One `down` under way. */
struct descent {
	struct session *session;
	const struct pod_name *name;
	struct down_options options;
	struct down_report *report;
	struct service *service;
	struct pod_facts *facts;
	struct down_plan plan;
	struct lock gate;
	struct record record;
	bool revoked;
	bool unknown; /* whether there was a unit could not be found out: what is done for one that has none is done for it, too */
	bool came_back; /* the home, and nothing else of the pod */
};

/* --- stopping ----------------------------------------------------------------------------------------------------------- */

static int reach_service(struct descent *d, struct err *err)
{
	return session_service(d->session, d->facts->spec.backend, &d->service, err);
}

static int stop(struct descent *d, struct err *err)
{
	unsigned secs = d->options.stop_secs ? d->options.stop_secs : spec_stop_secs(&d->facts->spec);
	const struct service_ops *ops = d->service->ops;
	if (!d->plan.loaded)
		return ops->end_lost ? ops->end_lost(d->service, d->name, d->facts->spec.id, (int64_t)secs * 1000, err) : 0;
	progress_say(d->session, "%s: is asked to end, and killed after %u s", d->name->text, secs);
	return ops->stop(d->service, d->name, (int64_t)secs * 1000, &d->facts->unit.group, err);
}

/* The group was read before the stop: afterwards the manager does not know it any more. */
static int drained(struct descent *d, struct err *err)
{
	AUTO_PROCESSES struct process_list members = {0}, survivors = {0};
	int r = group_members(&d->facts->unit.group, &members, err);
	if (r < 0 || members.n == 0)
		return r;
	r = group_kill(&d->facts->unit.group, deadline_in_ms(KILL_MS), &survivors, err);
	if (r < 0 || survivors.n == 0)
		return r;
	retire_names(&survivors, d->report->survivors, sizeof d->report->survivors);
	return err_set(err, -EBUSY, "stop", d->name->text, "processes of the pod are still alive: %s; its home is kept", d->report->survivors);
}

/* A free gate is the kernel's word that no boot runs and no payload that was booted holds it; held by us, none begins. */
static int close_gate(struct descent *d, struct err *err)
{
	struct pod_file gate = pod_file_gate(d->session->around.plane.prefix, d->name);
	progress_say(d->session, "%s: waits until nothing of it holds its boot gate", d->name->text);
	struct err why = {0};
	int r = lock_take(&d->session->pods_dir, gate.text, LOCK_MODE_EXCLUSIVE, deadline_in_ms(GATE_MS), &d->gate, &why);
	if (r != -EWOULDBLOCK) {
		if (r < 0)
			*err = why;
		return r;
	}
	AUTO_PROCESSES struct process_list holders = {0};
	r = process_gate_holders(&d->session->pods_dir, gate.text, &holders, err);
	if (r < 0)
		return r;
	retire_names(&holders, d->report->survivors, sizeof d->report->survivors);
	return refuse(err, REFUSAL_IN_USE, d->name->text, "the boot gate is held by %s", holders.n ? d->report->survivors : "a process that cannot be seen");
}

/* --- a pod without a unit ----------------------------------------------------------------------------------------------- */

static int revoke_record(struct descent *d, struct err *err)
{
	if (d->facts->record_kind != RECORD_GOOD)
		return 0;
	int r = record_load(&d->session->pods_dir, d->name, &d->record, err);
	if (r == 0)
		r = record_delete(&d->session->pods_dir, d->name, err);
	d->revoked = r == 0;
	return r;
}

static int orphan_is_dead(struct descent *d, struct err *err)
{
	int r = home_vacant(d->session, d->facts, d->report->survivors, err);
	if (r == 0)
		r = farewell_store(&d->session->pods_dir, d->name, err);
	return r < 0 ? r : revoke_record(d, err);
}

static int restore_record(struct descent *d, int cause, struct err *err)
{
	struct err why = {0};
	if (d->revoked && record_store(&d->session->pods_dir, d->name, &d->record, &why) < 0)
		(void)err_prepend(err, "the record could not be put back (%s)", why.text);
	return cause;
}

/* --- deleting ----------------------------------------------------------------------------------------------------------- */

/* What was made is gone, and what somebody made in its place meanwhile came under our eyes: the next `down` may take it, and only it. */
static int adopt_rest(struct descent *d, int cause, struct err *err)
{
	AUTO_PIN struct pin rest = PIN_NONE;
	AUTO_RECORD struct record loaded = {0};
	char identity[64];
	struct err why = {0};
	struct record *record = d->revoked ? &d->record : &loaded;
	if (d->facts->home != HOME_POD || pin_child(&d->session->root, d->name->text, &rest, NULL) < 0)
		return cause;
	int r = d->revoked ? 0 : record_load(&d->session->pods_dir, d->name, record, &why);
	if (r == 0)
		r = directory_identity(&rest, identity, &why);
	if (r == 0)
		r = record_set(record, "HOME_ID", identity, &why);
	if (r == 0)
		r = record_store(&d->session->pods_dir, d->name, record, &why);
	return r == 0 || r == -ENOENT ? cause : err_prepend(err, "%s", why.text);
}

static int delete_home(struct descent *d, struct err *err)
{
	if (!d->plan.home && !d->plan.retired)
		return 0;
	progress_say(d->session, "%s: its home is deleted", d->name->text);
	int r = retire_home(d->session, d->name, pod_home_entry(d->facts), &d->report->left, err);
	return r < 0 ? adopt_rest(d, r, err) : 0;
}

/* Who takes it down because its life is over is the guard, and ends by itself. */
static int unguard(struct descent *d, struct err *err)
{
	const struct service_ops *ops = d->service->ops;
	const struct spec *spec = &d->facts->spec;
	return ops->unguard && life_is_bounded(&spec->life) && !d->options.only_ended ? ops->unguard(d->service, d->name, spec->id, err) : 0;
}

static int forget(struct descent *d, struct err *err)
{
	int r = unguard(d, err);
	if (r == 0)
		r = d->service->ops->forget(d->service, d->name, err);
	if (r == 0)
		r = record_delete(&d->session->pods_dir, d->name, err);
	if (r == 0)
		r = note_delete(&d->session->pods_dir, d->name, err);
	if (r == 0)
		r = logfile_forget(&d->session->around.plane, d->name, err);
	return r < 0 ? r : farewell_delete(&d->session->pods_dir, d->name, err);
}

static int verify(struct descent *d, struct err *err)
{
	AUTO_PROCESSES struct process_list members = {0};
	unsigned traces = 0;
	int r = plane_probe(&d->session->root, &d->session->pods_dir, d->session->around.plane.prefix, d->name, &traces, err);
	if (r == 0)
		r = group_members(&d->facts->unit.group, &members, err);
	if (r < 0 || (!traces && !members.n))
		return r;
	d->came_back = traces == TRACE_HOME && !members.n && d->facts->home == HOME_POD;
	if (d->facts->home == HOME_REPLACED && traces == TRACE_HOME && !members.n)
		return refuse(err, REFUSAL_NOT_THE_POD, d->name->text, "what was made is gone, but %s/%s has its name", d->session->around.plane.root,
			      d->name->text);
	retire_names(&members, d->report->survivors, sizeof d->report->survivors);
	return err_set(err, -ENOTEMPTY, "down", d->name->text, "looked at again, %s is still there%s%s",
		       traces & (TRACE_HOME | TRACE_RETIRED) ? "its home" : traces ? "a file of it in the pods dir" : "a process of it", members.n ? ": " : "",
		       d->report->survivors);
}

/* Somebody outside who was slow to make the home anew is outlasted like one who was quick. */
static int verify_gone(struct descent *d, struct err *err)
{
	struct deadline until = deadline_in_ms(COMES_BACK_MS);
	struct err why = {0};
	int r = verify(d, &why);
	while (r == -ENOTEMPTY && d->came_back && !deadline_passed(until)) {
		r = retire_home(d->session, d->name, d->name->text, &d->report->left, &why);
		if (r == 0)
			r = verify(d, &why);
	}
	if (r < 0)
		*err = why;
	return r;
}

static int descend(struct descent *d, struct err *err)
{
	int r = reach_service(d, err);
	if (r == 0 && !d->plan.orphan)
		r = farewell_store(&d->session->pods_dir, d->name, err);
	if (r == 0)
		r = stop(d, err);
	if (r == 0)
		r = drained(d, err);
	if (r == 0)
		r = close_gate(d, err);
	if (r == 0 && (d->plan.orphan || d->unknown))
		r = orphan_is_dead(d, err);
	if (r == 0)
		r = delete_home(d, err);
	if (r < 0)
		return restore_record(d, r, err);
	r = forget(d, err);
	return r < 0 ? r : verify_gone(d, err);
}

/* Without a record the keeper knows, or the home bears it. */
static const char *generation(const struct descent *d, char marker[37])
{
	AUTO_PIN struct pin home = PIN_NONE;
	const struct pod_facts *facts = d->facts;
	if (facts->record_kind != RECORD_ABSENT)
		return facts->spec.id;
	if (*facts->unit.group.pod_id)
		return facts->unit.group.pod_id;
	*marker = '\0';
	if (facts->home == HOME_POD && pin_child(&d->session->root, d->name->text, &home, NULL) == 0)
		(void)home_marker_read(&home, marker, NULL);
	return marker;
}

/* Somebody may have brought it up anew, or given it another owner, since it was decided that it must go. */
static bool is_meant(const struct descent *d)
{
	char marker[37];
	bool over = d->facts->life_end != LIFE_LASTS;
	return (!d->options.id || strcmp(d->options.id, generation(d, marker)) == 0) && (!d->options.only_ended || over);
}

/* A record that could not be read names another generation as little as the one that is meant. */
static int knows_whom(const struct descent *d, struct err *err)
{
	bool in_doubt = (d->options.id || d->options.only_ended) && d->facts->record_kind == RECORD_BAD;
	return in_doubt ? err_set(err, -EIO, "record", d->name->text, "whether it is the same pod cannot be found out: %s", d->facts->record_error) : 0;
}

/* A lost answer is never taken for "gone": it is asked once more, and what was seen at the first time counts no more. */
static int look_surely(struct descent *d, struct sight *ret_sight, struct err *err)
{
	struct look_options options = {.mute = !d->options.only_dead};
	int r = look_one(d->session, d->name, options, ret_sight, err);
	if (r < 0 || ret_sight->facts.unit.active != UNIT_UNKNOWN)
		return r;
	sight_free(ret_sight);
	*ret_sight = (struct sight){0};
	r = look_one(d->session, d->name, options, ret_sight, err);
	d->unknown = r == 0 && ret_sight->facts.unit.active == UNIT_UNKNOWN;
	return r;
}

static int down_seen(struct descent *d, const struct sight *sight, struct err *err)
{
	int r = knows_whom(d, err);
	if (r < 0)
		return r;
	if (!is_meant(d)) {
		d->report->nothing = true;
		return 0;
	}
	r = down_decide(d->facts, &d->plan, err);
	if (r < 0)
		return r;
	d->report->nothing = d->plan.nothing;
	r = records_sweep(&d->session->pods_dir, d->name, err);
	if (r < 0 || d->plan.nothing)
		return r;
	if (d->options.only_dead && d->unknown)
		return err_set(err, -EIO, "unit", d->name->text, "%s", sight->reason);
	if (d->options.only_dead && pod_is_alive(sight->state))
		return refuse(err, REFUSAL_IN_USE, d->name->text, "it is %s again", pod_state_name(sight->state));
	r = descend(d, err);
	record_free(&d->record);
	lock_release(&d->gate);
	return r;
}

static int down_locked(struct descent *d, struct err *err)
{
	AUTO_SIGHT struct sight sight = {0};
	int r = look_surely(d, &sight, err);
	if (r < 0)
		return r;
	d->facts = &sight.facts;
	r = down_seen(d, &sight, err);
	d->facts = NULL; /* they end here */
	return r;
}

int down(struct session *session, const struct pod_name *name, struct down_options options, struct down_report *ret_report, struct err *err)
{
	struct descent d = {.session = session, .name = name, .options = options, .report = ret_report, .gate = LOCK_NONE};
	AUTO_LOCK struct lock lock = LOCK_NONE;
	memset(ret_report, 0, sizeof *ret_report);
	if (session->pods_dir.fd < 0 && session->root.fd < 0) {
		ret_report->nothing = true;
		return 0;
	}
	int r = session_make_pods_dir(session, err);
	if (r == 0)
		r = session_lock_name(session, name, NAME_LOCK_WAIT_MS, &lock, err);
	return r < 0 ? r : down_locked(&d, err);
}
