/* Pods that end with their owner, or at a time: what is asked for, and the process that watches and takes them down. */
#pragma once

#include "pod/lifecycle/session.h"
#include "pod/model/life.h"

/* Of one `up`. */
struct life_wish {
	bool owner_said, ttl_said; /* else as recorded */
	pid_t owner;               /* 0: nobody any more */
	int64_t ttl_s;             /* from now on; 0: no end any more */
};
/* What is wished for, in terms of this boot. REFUSAL_OWNER: there is no such process now. */
int life_wish_resolve(const struct life_wish *wish, struct life *ret_life, struct err *err);
void life_wish_lay_over(const struct life_wish *wish, const struct life *resolved, struct life *life);

/* A pod whose recorded life is over goes before anything new begins under its name. */
int guard_end_what_is_over(struct session *session, const struct pod_name *name, struct err *err);

/* Runs until the generation `id` of the pod is gone, or has no end of life that could be awaited. When its life is over it is taken down; while somebody
 * else works on it, that is waited for. */
int guard_watch(struct session *session, const struct pod_name *name, const char *id, struct err *err);
