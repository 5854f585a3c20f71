/* The files of a live SQLite database, copied by descriptor while they are held still. For pod/system/snapshot.c alone.
 *
 * The locks are those of a reader, taken on our own descriptors as open file description locks (fcntl_locking(2)), so no path is opened
 * twice, no other close drops them and SQLite itself never touches the source:
 * - SHARED on the database (sqlite.org/lockingv3.html): no writer of a rollback journal may change it, nobody may switch its mode, and the
 * last connection cannot take `-wal` and `-shm` away;
 * - in WAL mode also shared WAL_READ_LOCK(0) and one other read lock on `-shm` (sqlite.org/walformat.html): the first keeps checkpoints
 * from writing into the database, the second keeps the WAL from being begun anew. Writers go on appending. Never the lock that tells SQLite
 * that somebody connected keeps `-shm` right: we cannot promise that. A WAL with no `-shm` is nobody's; that there is still none at the
 * end, under SHARED, proves that nobody came. */
#pragma once

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"

/* Names in the directory that receives the copy. */
#define SNAPSHOT_COPY "db"
#define SNAPSHOT_COPY_WAL "db-wal"
#define SNAPSHOT_COPY_SHM "db-shm"
#define SNAPSHOT_COPY_JOURNAL "db-journal"

/* Fills the private directory `into` with one generation of the database `name`: itself, and its WAL or its hot journal for SQLite to
 * recover from in the copy. A busy or changing source is tried again until `locked_until`. -EBUSY: it stayed so, with the reason; -ELOOP,
 * -EINVAL, -EPERM, -EMLINK: not a file that is read; -ENOSPC: no room for it, found before the first byte; -ETIMEDOUT: `until`. */
int snapshot_source_copy(const struct pin *from, const char *name, const struct pin *into, struct deadline locked_until,
			 struct deadline until, struct err *err);
