/* The plane's lock file remembers for its next holder what the records claimed, so that only those are read which were written since: a look at
 * 1,000 pods is 1,000 fstatat(2). It is never relied on for more than that: whatever cannot be read or kept there is read from the records. */
#pragma once

#include "fsops/lock.h"
#include "fsops/pin.h"
#include "pod/model/claims.h"
#include "pod/model/name.h"

struct claims_kept {
	struct claims claims;
	int64_t kept_ns; /* when, by the clock of its file system */
};
void claims_kept_free(struct claims_kept *kept);
#define AUTO_CLAIMS_KEPT __attribute__((cleanup(claims_kept_free)))

/* Empty where there is nothing that can be used. */
void claims_load(const struct lock *plane, struct claims_kept *ret_kept);
void claims_store(const struct lock *plane, const struct claims *claims);
/* Of a record that is a regular file. -errno. */
int record_stamp(const struct pin *pods_dir, const struct pod_name *name, struct stamp *ret_stamp);
/* NULL: it has to be read. A record that was written shortly before the claims were kept may have been written again within the same tick. */
const struct claim *claims_still(const struct claims_kept *kept, const struct stamp *stamp);
