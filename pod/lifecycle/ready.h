/* Waits until a pod answers and is proven to be this pod, or until one of the distinct ends of the contract (section 9). */
#pragma once

#include "pod/lifecycle/session.h"
#include "pod/model/facts.h"

enum ready_end {
	READY_UP,
	READY_REFUSED,   /* at boot; the note says why */
	READY_DIED,
	READY_FOREIGN,   /* the port belongs to something else */
	READY_UNHEALTHY, /* answers, but with a bad status */
	READY_TIMEOUT,
	READY_LIFE_OVER, /* its owner is gone, or its time is over */
	READY_INTERRUPTED, /* whoever waits was asked to end */
};
struct ready {
	enum ready_end end;
	struct unit_state unit;
	struct listener listener;
	struct health_result health;
	struct note note;
	enum life_end life;
	int64_t ms;
};
/* `restarts` is the unit's count before this start: a higher one means that it died meanwhile. */
int ready_wait(struct session *session, struct service *service, const struct pod_name *name, const struct spec *spec, struct deadline until,
	       unsigned restarts, struct ready *ret_ready, struct err *err);
