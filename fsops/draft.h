/* A private directory in which something is made complete before it appears under its name. */
#pragma once

#include "fsops/err.h"
#include "fsops/pin.h"

struct draft {
	const struct pin *at; /* borrowed; outlives the draft */
	struct pin dir;
	char name[40]; /* ".draft-<16 hex>" */
};
#define DRAFT_NONE ((struct draft){.at = NULL, .dir = {.fd = -1}})

/* A new directory, 0700 whatever the umask, in `at`. */
int draft_make(const struct pin *at, struct draft *ret_draft, struct err *err);
/* Takes it away with all that is in it. What cannot be removed stays: its name tells what it is. */
void draft_remove(struct draft *draft);
#define AUTO_DRAFT __attribute__((cleanup(draft_remove)))

/* Removes the draft directories that killed processes have left in `at`. Nobody may be at work in one. */
void draft_sweep(const struct pin *at);

/* The entry `name` of `from` becomes `to_name` in `to`, of the same file system, in one step. Create-only: -EEXIST leaves both as they are.
 */
int publish_new(const struct pin *from, const char *name, const struct pin *to, const char *to_name, struct err *err);
