#include "pod/model/facts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pod/model/refusal.h"

static const char *const state_names[POD_STATES] = {
	[POD_UP] = "up",           [POD_STARTING] = "starting", [POD_RESTARTING] = "restarting",
	[POD_FAILED] = "failed",   [POD_REFUSED] = "refused",   [POD_FOREIGN] = "foreign",
	[POD_STOPPED] = "stopped", [POD_ORPHAN] = "orphan",     [POD_UNFINISHED] = "unfinished",
};

const char *pod_state_name(enum pod_state state)
{
	return state_names[state];
}

void pod_facts_free(struct pod_facts *facts)
{
	spec_free(&facts->spec);
	free(facts->note);
	free(facts->record_error);
	free(facts->home_moved);
	facts->note = NULL;
	facts->record_error = facts->home_moved = NULL;
}

bool pod_is_alive(enum pod_state state)
{
	return state == POD_UP || state == POD_STARTING || state == POD_RESTARTING || state == POD_FOREIGN;
}

static bool unit_is_dead(const struct unit_state *unit)
{
	return unit->active == UNIT_ABSENT || unit->active == UNIT_INACTIVE || unit->active == UNIT_FAILED;
}

bool pod_stands(const struct pod_facts *facts)
{
	return facts->record_kind != RECORD_ABSENT || facts->home != HOME_ABSENT || facts->unit_file || facts->note ||
	       facts->unit.active > UNIT_INACTIVE;
}

bool pod_exists(const struct pod_facts *facts)
{
	return facts->retired || pod_stands(facts);
}

bool pod_is_stranger(const struct pod_facts *facts)
{
	bool only_a_name = facts->record_kind == RECORD_ABSENT && !facts->retired && !facts->unit_file && !facts->note &&
			   facts->unit.active <= UNIT_INACTIVE;
	return only_a_name && (facts->home == HOME_NOT_A_POD || facts->home == HOME_ODD);
}

const char *pod_home_entry(const struct pod_facts *facts)
{
	if (facts->home_moved)
		return facts->home_moved;
	return facts->home == HOME_ABSENT || facts->home == HOME_REPLACED ? NULL : facts->name.text;
}

struct reason {
	char *out;
	size_t size;
};

__attribute__((format(printf, 3, 4))) static enum pod_state say(const struct reason *reason, enum pod_state state, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(reason->out, reason->size, format, arguments);
	va_end(arguments);
	return state;
}

static void describe_end(const struct unit_state *unit, char *out, size_t size)
{
	switch (unit->end) {
	case UNIT_END_EXITED:
		(void)snprintf(out, size, "the main process exited with status %d", unit->status);
		return;
	case UNIT_END_SIGNALED:
		(void)snprintf(out, size, "the main process was ended by signal %d", unit->status);
		return;
	case UNIT_END_TIMEOUT:
		(void)snprintf(out, size, "the unit ran into a time limit");
		return;
	case UNIT_END_START_LIMIT:
		(void)snprintf(out, size, "the unit was started too often and is left alone");
		return;
	case UNIT_END_NONE:
	case UNIT_END_OTHER:
		break;
	}
	(void)snprintf(out, size, "%s", *unit->detail ? unit->detail : "the unit failed");
}

static enum pod_state say_end(const struct pod_facts *facts, const struct reason *reason, enum pod_state state)
{
	describe_end(&facts->unit, reason->out, reason->size);
	return state;
}

static enum pod_state restarting(const struct pod_facts *facts, const struct reason *reason)
{
	char end[200];
	describe_end(&facts->unit, end, sizeof end);
	return say(reason, POD_RESTARTING, "%s; it is started again", end);
}

static bool ended_terminally(const struct unit_state *unit)
{
	return unit->end == UNIT_END_EXITED && exit_status_terminal(unit->status);
}

static enum pod_state foreign(const struct pod_facts *facts, const struct reason *reason)
{
	if (!facts->listener.pid)
		return say(reason, POD_FOREIGN, "port %d is held by a process that cannot be seen and is not of this pod", facts->port);
	return say(reason, POD_FOREIGN, "port %d is held by pid %d (%s), which is not of this pod", facts->port, (int)facts->listener.pid,
		   facts->listener.program);
}

static enum pod_state unanswered(const struct pod_facts *facts, const struct reason *reason)
{
	enum pod_state state = facts->overdue ? POD_FAILED : POD_STARTING;
	if (facts->health.answer == HEALTH_BAD_STATUS)
		return say(reason, state, "it runs, but answers with status %d", facts->health.http_status);
	if (facts->health.answer == HEALTH_GARBAGE)
		return say(reason, state, "it runs, but what answers on port %d is not HTTP", facts->port);
	if (facts->listener.owner == PORT_NOBODY)
		return say(reason, state, "it runs, but does not listen on port %d", facts->port);
	return say(reason, state, "it runs, but does not answer on port %d", facts->port);
}

static enum pod_state running(const struct pod_facts *facts, const struct reason *reason)
{
	if (facts->listener.owner == PORT_FOREIGN)
		return foreign(facts, reason);
	if (facts->record_kind != RECORD_GOOD)
		return say(reason, POD_UP, "it runs, but its record %s", facts->record_kind == RECORD_ABSENT ? "is gone" : facts->record_error);
	if (facts->home == HOME_ABSENT)
		return say(reason, POD_FAILED, "it runs, but its home is gone");
	if (facts->home == HOME_REPLACED)
		return say(reason, POD_FAILED, "it runs, but another directory stands in the place of its home");
	if (facts->home == HOME_ODD)
		return say(reason, POD_FAILED, "it runs, but what stands at its home is a link, a file, a mount or somebody else's directory");
	if (facts->spec.health.kind == HEALTH_NONE || facts->health.answer == HEALTH_OK)
		return say(reason, POD_UP, "%s", "");
	return unanswered(facts, reason);
}

static enum pod_state orphan(const struct pod_facts *facts, const struct reason *reason, const char *why)
{
	return say(reason, POD_ORPHAN, "%s; `kirocrew-pod down %s` removes it", why, facts->name.text);
}

/* No process of a unit: what is left of the pod on disk. */
static enum pod_state dead(const struct pod_facts *facts, const struct reason *reason)
{
	if (facts->note)
		return say(reason, POD_REFUSED, "%s", *facts->note->sentence ? facts->note->sentence : "refused; the note is empty");
	if (facts->unit.active != UNIT_ABSENT && ended_terminally(&facts->unit))
		return say(reason, POD_REFUSED, "refused with status %d; no note could be written", facts->unit.status);
	if (facts->held_by)
		return say(reason, POD_FOREIGN, "pid %d holds the home without a unit", (int)facts->held_by);
	if (facts->unit.active == UNIT_FAILED)
		return say_end(facts, reason, POD_FAILED);
	if (facts->record_kind == RECORD_BAD)
		return orphan(facts, reason, facts->record_error);
	if (pod_is_stranger(facts))
		return say(reason, POD_ORPHAN, "no `up` made what stands here; it is left alone");
	if (facts->home == HOME_REPLACED)
		return say(reason, POD_ORPHAN, "its home was replaced by another directory");
	if (facts->home == HOME_ODD)
		return say(reason, POD_ORPHAN, "what stands at its home is not a directory of ours");
	if (facts->unit.active == UNIT_INACTIVE && facts->record_kind == RECORD_GOOD) {
		bool ended = facts->unit.end == UNIT_END_EXITED || facts->unit.end == UNIT_END_SIGNALED;
		return ended ? say_end(facts, reason, POD_STOPPED) : say(reason, POD_STOPPED, "%s", "");
	}
	return orphan(facts, reason, facts->home == HOME_ABSENT ? "no unit and no home" : "no unit");
}

static enum pod_state decide(const struct pod_facts *facts, char *out, size_t size)
{
	struct reason reason = {out, size};
	switch (facts->unit.active) {
	case UNIT_ACTIVE:
		return running(facts, &reason);
	case UNIT_STARTING:
		return say(&reason, POD_STARTING, "%s", "");
	case UNIT_STOPPING:
		return say(&reason, POD_STOPPED, "it is being stopped");
	case UNIT_RESTARTING:
		return restarting(facts, &reason);
	case UNIT_UNKNOWN:
		return say(&reason, POD_FAILED, "its unit could not be asked: %s", *facts->unit.detail ? facts->unit.detail : "no answer");
	case UNIT_ABSENT:
	case UNIT_INACTIVE:
	case UNIT_FAILED:
		break;
	}
	if (facts->retired)
		return say(&reason, POD_UNFINISHED, "a `down` was begun and not completed; `kirocrew-pod down %s` completes it", facts->name.text);
	return dead(facts, &reason);
}

enum pod_state pod_state_decide(const struct pod_facts *facts, char *out, size_t size)
{
	enum pod_state state = decide(facts, out, size);
	size_t len = strlen(out);
	char end[96];
	life_end_describe(&facts->spec.life, facts->life_end, end, sizeof end);
	if (*end)
		(void)snprintf(out + len, size - len, "%s%s", len ? "; " : "", end);
	return state;
}

static enum refusal refusal_of_code(const char *code)
{
	for (int refusal = REFUSAL_NONE + 1; refusal < REFUSAL_COUNT_; refusal++)
		if (strcmp(refusal_entry((enum refusal)refusal)->code, code) == 0)
			return (enum refusal)refusal;
	return REFUSAL_NONE;
}

static enum refusal refusal_of_status(int status)
{
	return status == EXIT_NOT_PROVISIONED ? REFUSAL_NOT_PROVISIONED : status == EXIT_LIVE_PORT ? REFUSAL_LIVE_PORT : REFUSAL_HOME;
}

/* The note ends with the remedy, and so will the sentence that is made of this error. */
static void cut_remedy(char *text, const char *remedy)
{
	size_t len = strlen(text), tail = remedy ? strlen(remedy) : 0;
	if (tail && len > tail + 2 && strcmp(text + len - tail, remedy) == 0)
		text[len - tail - 2] = '\0';
}

int refuse_as_noted(const struct note *note, int status, const char *subject, struct err *err)
{
	enum refusal refusal = refusal_of_code(note->code);
	if (!err)
		return -EPERM;
	if (refusal == REFUSAL_NONE)
		refusal = refusal_of_status(status);
	if (*note->sentence)
		(void)err_set(err, -EPERM, "refused", subject, "%s", note->sentence);
	else
		(void)err_set(err, -EPERM, "refused", subject, "it ended with status %d, which means that it was refused, and left no sentence: its log says more, "
							       "if the status is the command's own",
			      status);
	cut_remedy(err->text, refusal_entry(refusal)->remedy);
	err->refusal = (int)refusal;
	return -EPERM;
}

static int refuse_home(const struct pod_facts *facts, struct err *err)
{
	switch (facts->home) {
	case HOME_NOT_A_POD:
		if (facts->record_kind == RECORD_ABSENT)
			return refuse(err, REFUSAL_NOT_A_POD, facts->name.text, "the directory has neither record nor marker");
		return 0;
	case HOME_REPLACED:
		return refuse(err, REFUSAL_NOT_THE_POD, facts->name.text, "another directory has its name");
	case HOME_ODD:
		return refuse(err, REFUSAL_UNSAFE_PATH, facts->name.text, "a link, a file, a mount or somebody else's directory stands at its home");
	case HOME_ABSENT:
	case HOME_POD:
		break;
	}
	return 0;
}

int up_decide(const struct pod_facts *facts, struct up_plan *ret_plan, struct err *err)
{
	struct up_plan plan = {
		.running = facts->unit.active == UNIT_ACTIVE || facts->unit.active == UNIT_STARTING,
		.complete = facts->retired,
		.fresh = facts->home == HOME_ABSENT,
		.unclaimed = facts->home != HOME_ABSENT && facts->record_kind == RECORD_ABSENT,
	};
	if (facts->unit.active == UNIT_UNKNOWN)
		return err_set(err, -EIO, "unit", facts->name.text, "its unit could not be asked: %s", facts->unit.detail);
	if (facts->record_kind == RECORD_BAD)
		return refuse(err, REFUSAL_BAD_CONFIG, facts->name.text, "%s", facts->record_error);
	int r = refuse_home(facts, err);
	if (r < 0)
		return r;
	if (plan.running && facts->record_kind == RECORD_ABSENT)
		return refuse(err, REFUSAL_IN_USE, facts->name.text, "it runs (pid %d), but its record is gone, so it could only be taken for another; "
			      "`kirocrew-pod down %s` ends it; nothing was changed", (int)facts->unit.main_pid, facts->name.text);
	if (plan.running && facts->home == HOME_ABSENT)
		return refuse(err, REFUSAL_IN_USE, facts->name.text, "it runs (pid %d), but its home is gone; `kirocrew-pod down %s` ends it; nothing was changed",
			      (int)facts->unit.main_pid, facts->name.text);
	if (!plan.running && facts->gate_held && facts->held_by)
		return refuse(err, REFUSAL_IN_USE, facts->name.text, "pid %d runs it without a unit", (int)facts->held_by);
	*ret_plan = plan;
	return 0;
}

int up_decide_backend(const struct pod_facts *facts, enum backend wanted, bool *ret_moves, struct err *err)
{
	enum backend recorded = facts->spec.backend;
	*ret_moves = wanted != BACKEND_AUTO && recorded != BACKEND_AUTO && wanted != recorded;
	if (!*ret_moves || unit_is_dead(&facts->unit))
		return 0;
	if (facts->unit.active == UNIT_UNKNOWN)
		return refuse(err, REFUSAL_BACKEND_KEPT, facts->name.text, "%s does not say whether it runs there (%s)", backend_name(recorded), facts->unit.detail);
	return refuse(err, REFUSAL_BACKEND_KEPT, facts->name.text, "it is %s's", backend_name(recorded));
}

int down_decide(const struct pod_facts *facts, struct down_plan *ret_plan, struct err *err)
{
	struct down_plan plan = {
		.nothing = !pod_exists(facts),
		.loaded = facts->unit.active != UNIT_ABSENT,
		.orphan = unit_is_dead(&facts->unit),
		.home = pod_home_entry(facts) != NULL,
		.retired = facts->retired,
	};
	int r = facts->home_moved ? 0 : refuse_home(facts, err);
	if (r < 0)
		return r;
	*ret_plan = plan;
	return 0;
}
