/* The truth about one pod or all of them: system reads only, then the pure decision. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "pod/lifecycle/session.h"
#include "pod/model/facts.h"

struct sight {
	struct pod_facts facts;
	enum pod_state state;
	char *reason; /* raw bytes, "" none. Owned */
};
struct sights {
	struct sight *v;
	size_t n;
	char **strangers; /* entries of the root that no pod can be, raw bytes */
	size_t stranger_count;
};
void sights_free(struct sights *sights);
#define AUTO_SIGHTS __attribute__((cleanup(sights_free)))
void sight_free(struct sight *sight);
#define AUTO_SIGHT __attribute__((cleanup(sight_free)))

struct look_options {
	bool deep; /* also ask who holds a home that has no unit */
	bool mute; /* ask no payload for its health: it may take a second not to answer */
};
/* Every pod that has a record, a home, a unit or a note, sorted by name. */
int look_all(struct session *session, struct look_options options, struct sights *ret_sights, struct err *err);
/* One pod, and whether its boot gate is free; of a name that does not exist, facts for which pod_exists() is false. */
int look_one(struct session *session, const struct pod_name *name, struct look_options options, struct sight *ret_sight, struct err *err);
