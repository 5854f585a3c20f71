/* Consistent snapshots of live SQLite databases. */
#pragma once

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"

/* How long a busy, locked or changing source is tried again. */
#define SNAPSHOT_LOCKED_MS 5000

/* One generation of the database `name` of directory `from`, with all that was committed before the call, appears as `to_name` (0600) in
 * `to`: complete, recovered to a single file of the source's journal mode and passed by PRAGMA quick_check, or not at all. Create-only:
 * -EEXIST. The source is only read: by descriptor, under a reader's locks, never opened by SQLite; its writers go on. Memory does not grow
 * with the database. Works in a private directory of `to`, which is gone afterwards. -EBUSY: locked or changing for 5 s (or until `until`);
 * -EBADMSG: not a sound database; -ETIMEDOUT: `until`; -ENOENT, -ELOOP, -EINVAL, -EPERM, -EMLINK, -ENOSPC, -EACCES …: the text names the
 * file and the cause. Needs /proc. sqlite.org/walformat.html, sqlite.org/lockingv3.html */
int snapshot_database(const struct pin *from, const char *name, const struct pin *to, const char *to_name, struct deadline until,
		      struct err *err);
