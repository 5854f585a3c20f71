/* SQLite's reader locks on descriptors of ours. For pod/system/snapshot_source.c alone; never waits. */
#pragma once

#include <stdbool.h>

#include "fsops/err.h"

/* -EAGAIN: a writer has it. They end with the descriptor. */
int lock_database_shared(int database, struct err *err);
int lock_wal_still(int shm, struct err *err);
/* Is a transaction with a rollback journal under way (RESERVED held by another)? */
int database_is_reserved(int database, bool *ret_reserved, struct err *err);
