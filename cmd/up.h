/* What `up` and `run` have in common. */
#pragma once

#include "cmd/verbs.h"
#include "pod/lifecycle/up.h"

#define UP_FLAGS                                                                                                                                          \
	(FLAG(CHECKOUT) | FLAG(PORT) | FLAG(SEED) | FLAG(HEALTH) | FLAG(WAIT_SECS) | FLAG(MEMORY_MAX) | FLAG(CPU_QUOTA) | FLAG(APPROVAL) | FLAG(CRONS) | \
	 FLAG(NO_EMBEDDINGS) | FLAG(BACKEND) | FLAG(TTL))
/* Everything but the payload's words. */
int up_request_from(const struct arguments *arguments, struct up_request *ret_request, struct err *err);
/* Warnings, and the end of the log of a failed one. */
void up_tell(const struct up_report *report);
