#include "pod/lifecycle/ready.h"
#include "pod/lifecycle/progress.h"

#include <errno.h>
#include <string.h>

#include "pod/model/refusal.h"
#include "pod/system/interrupt.h"
#include "pod/system/life.h"
#include "pod/system/network.h"
#include "pod/system/process.h"
#include "pod/system/records.h"

#define ANSWER_MS 2000
#define TICK_LEAST_NS 200000
#define TICK_MOST_NS 50000000

struct watch {
	struct session *session;
	struct service *service;
	const struct pod_name *name;
	const struct spec *spec;
	struct deadline until;
	unsigned restarts;
	struct ready seen;
};

static bool terminal(const struct unit_state *unit)
{
	return unit->end == UNIT_END_EXITED && exit_status_terminal(unit->status);
}

/* The boot writes its note before it exits, so an ended unit with a note was refused. */
static int see_end(struct watch *w, bool *ret_over, struct err *err)
{
	const struct unit_state *unit = &w->seen.unit;
	bool ended = unit->active == UNIT_FAILED || unit->active == UNIT_INACTIVE || unit->active == UNIT_ABSENT ||
		     unit->active == UNIT_RESTARTING || unit->restarts > w->restarts;
	if (!ended) {
		*ret_over = false;
		return 0;
	}
	int r = note_load(&w->session->pods_dir, w->name, &w->seen.note, err);
	if (r < 0)
		return r;
	w->seen.end = w->seen.note.kind != NOTE_ABSENT || terminal(unit) ? READY_REFUSED : READY_DIED;
	*ret_over = true;
	return 0;
}

static int see_listener(struct watch *w, struct err *err)
{
	AUTO_LISTENERS struct listeners *listeners = NULL;
	int r = listeners_read(w->spec->port, &listeners, err);
	return r < 0 ? r : listener_of(listeners, w->spec->port, &w->seen.unit.group, &w->seen.listener, err);
}

static int see_health(struct watch *w, struct err *err)
{
	struct health_question question = {.health = w->spec->health, .port = w->spec->port};
	int r = health_ask(&question, 1, deadline_earlier(w->until, deadline_in_ms(ANSWER_MS)), err);
	bool cut_short = question.result.answer == HEALTH_NO_ANSWER && deadline_passed(w->until); /* says less than an earlier answer */
	if (r == 0 && !(cut_short && w->seen.health.answer == HEALTH_BAD_STATUS))
		w->seen.health = question.result;
	return r;
}

/* An answer counts only while the listener is still this pod's after it. */
static int see_answer(struct watch *w, bool *ret_over, struct err *err)
{
	*ret_over = false;
	int r = see_listener(w, err);
	if (r < 0 || w->seen.listener.owner == PORT_NOBODY)
		return r;
	if (w->seen.listener.owner == PORT_OURS) {
		r = see_health(w, err);
		if (r < 0 || w->seen.health.answer != HEALTH_OK)
			return r;
		r = see_listener(w, err);
		if (r < 0)
			return r;
	}
	if (w->seen.listener.owner == PORT_OURS || w->seen.listener.owner == PORT_FOREIGN) {
		w->seen.end = w->seen.listener.owner == PORT_OURS ? READY_UP : READY_FOREIGN;
		*ret_over = true;
	}
	return 0;
}

static bool see_life(struct watch *w)
{
	w->seen.life = life_look_now(&w->spec->life);
	if (w->seen.life != LIFE_LASTS)
		w->seen.end = READY_LIFE_OVER;
	return w->seen.life != LIFE_LASTS;
}

static bool see_interruption(struct watch *w)
{
	const struct foreground *foreground = w->session->foreground;
	if (!interrupt_noted() && !(foreground && foreground_asked_to_end(foreground)))
		return false;
	w->seen.end = READY_INTERRUPTED;
	return true;
}

static int see(struct watch *w, bool *ret_over, struct err *err)
{
	int r = see_end(w, ret_over, err);
	if (r == 0 && !*ret_over)
		*ret_over = see_life(w) || see_interruption(w);
	if (r < 0 || *ret_over || w->seen.unit.active != UNIT_ACTIVE)
		return r;
	if (w->spec->health.kind != HEALTH_NONE)
		return see_answer(w, ret_over, err);
	w->seen.end = READY_UP;
	return process_left_program(w->seen.unit.main_pid, w->session->around.program, ret_over, err);
}

/* An answer is seen late by an eighth of the wait at most, and by 0.2 to 50 ms. */
static struct deadline next_look(int64_t began)
{
	int64_t now = monotonic_ns(), tick = (now - began) / 8;
	return (struct deadline){now + (tick < TICK_LEAST_NS ? TICK_LEAST_NS : tick > TICK_MOST_NS ? TICK_MOST_NS : tick)};
}

static bool still_boots(const struct watch *w)
{
	bool left = true;
	pid_t pid = w->seen.unit.main_pid;
	return pid && process_left_program(pid, w->session->around.program, &left, NULL) == 0 && !left;
}

/* Only for somebody who is shown it. */
static void say_what_is_awaited(const struct watch *w)
{
	const char *name = w->name->text;
	int port = w->spec->port;
	if (!w->session->progress)
		return;
	if (w->seen.unit.active != UNIT_ACTIVE)
		progress_say(w->session, "%s: waits for its start", name);
	else if (still_boots(w))
		progress_say(w->session, "%s: boots: its home, seed, sign-ins and agent", name);
	else if (w->seen.listener.owner == PORT_NOBODY)
		progress_say(w->session, "%s: runs, and does not listen on port %d yet", name, port);
	else if (w->seen.health.answer == HEALTH_BAD_STATUS)
		progress_say(w->session, "%s: answers on port %d with status %d", name, port, w->seen.health.http_status);
	else
		progress_say(w->session, "%s: listens on port %d, and does not answer yet", name, port);
}

static enum ready_end end_of_budget(const struct watch *w)
{
	return w->seen.health.answer == HEALTH_BAD_STATUS ? READY_UNHEALTHY : READY_TIMEOUT;
}

int ready_wait(struct session *session, struct service *service, const struct pod_name *name, const struct spec *spec, struct deadline until,
	       unsigned restarts, struct ready *ret_ready, struct err *err)
{
	struct watch w = {.session = session, .service = service, .name = name, .spec = spec, .until = until, .restarts = restarts};
	int64_t began = monotonic_ns();
	bool over = false;
	int r = service->ops->query(service, name, &w.seen.unit, err);
	while (r == 0) {
		r = see(&w, &over, err);
		if (r < 0 || over)
			break;
		say_what_is_awaited(&w);
		if (deadline_passed(until)) {
			w.seen.end = end_of_budget(&w);
			break;
		}
		struct deadline tick = deadline_earlier(until, next_look(began));
		r = service->ops->wait(service, name, tick, &w.seen.unit, err);
	}
	if (r == -EINTR && see_interruption(&w)) /* it came while the manager was asked */
		r = 0;
	if (r < 0)
		return r;
	w.seen.ms = (monotonic_ns() - began) / 1000000;
	*ret_ready = w.seen;
	return 0;
}
