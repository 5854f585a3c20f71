/* `down`: stop, drained, home deleted, parts forgotten, verified. A pod without a unit only if everything says that nobody uses it. */
#pragma once

#include "fsops/tree.h"
#include "pod/lifecycle/session.h"

struct down_options {
	unsigned stop_secs; /* 0: as recorded, else 15 */
	bool only_dead;     /* prune: a pod that lives is refused, not stopped */
	bool only_ended;    /* only if the life that is recorded now is over; what goes on watching it is left alone */
	const char *id;     /* only this generation; NULL any */
};
struct down_report {
	bool nothing;          /* the name was unknown, or it is not what was asked for */
	struct tree_left left; /* what could not be deleted */
	char survivors[512];   /* "pid 12 (sh), pid 14 (nginx)", raw bytes, "" none */
};
int down(struct session *session, const struct pod_name *name, struct down_options options, struct down_report *ret_report, struct err *err);

struct prune_options {
	int64_t older_than_secs;
	bool dry_run;
};
struct pruned {
	struct pruned_pod {
		struct pod_name name;
		int64_t age_s;
		struct err failed; /* code 0: gone (or would be) */
	} *v;
	size_t n;
};
void pruned_free(struct pruned *pruned);
int64_t pod_age_s(const struct pod_facts *facts, int64_t now);
int prune(struct session *session, struct prune_options options, struct pruned *ret_pruned, struct err *err);
