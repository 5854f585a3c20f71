#include "pod/lifecycle/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/lifecycle/down.h"
#include "pod/model/environment.h"
#include "pod/model/refusal.h"
#include "pod/system/life.h"
#include "pod/system/records.h"

#define TRIES 5
#define BETWEEN_TRIES_MS 1000

int life_wish_resolve(const struct life_wish *wish, struct life *ret_life, struct err *err)
{
	struct life life = {0};
	struct life_clock now;
	struct err why = {0};
	char pid[16];
	if (!wish->owner && !wish->ttl_s)
		return 0;
	int r = life_clock_read(&now, err);
	if (r < 0)
		return r;
	(void)snprintf(pid, sizeof pid, "%d", (int)wish->owner);
	if (wish->owner && life_owner_read(wish->owner, &now, &life.owner, &why) < 0)
		return refuse(err, REFUSAL_OWNER, pid, "%s", why.text);
	if (wish->ttl_s)
		life.limit = life_limit_in(&now, wish->ttl_s);
	*ret_life = life;
	return 0;
}

void life_wish_lay_over(const struct life_wish *wish, const struct life *resolved, struct life *life)
{
	if (wish->owner_said)
		life->owner = resolved->owner;
	if (wish->ttl_said)
		life->limit = resolved->limit;
}

static int recorded(struct session *session, const struct pod_name *name, struct spec *ret_spec)
{
	AUTO_RECORD struct record record = {0};
	if (session->pods_dir.fd < 0)
		return -ENOENT;
	int r = record_load(&session->pods_dir, name, &record, NULL);
	return r < 0 ? r : spec_from_record(&record, ret_spec, NULL);
}

int guard_end_what_is_over(struct session *session, const struct pod_name *name, struct err *err)
{
	AUTO_SPEC struct spec spec = {0};
	struct down_report report;
	if (recorded(session, name, &spec) < 0 || life_look_now(&spec.life) == LIFE_LASTS)
		return 0;
	return down(session, name, (struct down_options){.only_ended = true, .id = spec.id}, &report, err);
}

/* *ret_over: false when there is nothing to watch for any more. */
static int await_end(struct session *session, const struct pod_name *name, const char *id, bool *ret_over, struct err *err)
{
	AUTO_SPEC struct spec spec = {0};
	AUTO_VIGIL struct vigil vigil = VIGIL_NONE;
	*ret_over = false;
	if (recorded(session, name, &spec) < 0 || strcmp(spec.id, id) != 0 || !life_is_bounded(&spec.life))
		return 0;
	int r = vigil_open(&spec.life, &vigil, err);
	if (r == 0)
		r = vigil_await(&vigil, err);
	*ret_over = r == 0;
	return r;
}

static void pause_for(int64_t ms)
{
	struct deadline until = deadline_in_ms(ms);
	struct backoff backoff = {.ms = 50};
	while (!deadline_passed(until))
		backoff_sleep(&backoff, until);
}

static bool others_work_on_it(const struct err *why)
{
	return why->refusal == REFUSAL_BUSY;
}

static void complain(struct session *session, const struct pod_name *name, const struct err *why)
{
	AUTO_SPEC struct spec spec = {0};
	struct service *service = NULL;
	char line[4608], sentence[4500];
	err_sentence(why, sentence, sizeof sentence);
	(void)snprintf(line, sizeof line, "its life is over, but it could not be taken down: %s", sentence);
	if (recorded(session, name, &spec) == 0 && session_service(session, spec.backend, &service, NULL) == 0)
		(void)service->ops->log_line(service, name, line, NULL);
}

int guard_watch(struct session *session, const struct pod_name *name, const char *id, struct err *err)
{
	session->context.crowd = true;
	for (int tries = 0;;) {
		struct down_report report;
		struct err why = {0};
		bool over;
		int r = await_end(session, name, id, &over, err);
		if (r < 0 || !over)
			return r;
		r = down(session, name, (struct down_options){.only_ended = true, .id = id}, &report, &why);
		if (r == 0)
			continue; /* gone, or it has another life now */
		if (!others_work_on_it(&why) && ++tries == TRIES) {
			complain(session, name, &why);
			*err = why;
			return r;
		}
		pause_for(others_work_on_it(&why) ? 10 : BETWEEN_TRIES_MS);
	}
}
