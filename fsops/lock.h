/* flock(2) on files that we never delete. The lock belongs to the open file description: it survives exec and fork and ends with
 * the last descriptor. After locking, the name must still be the locked file, or the lock is taken anew.
 * Somebody else may delete the file while it is held, and then two would hold two files of one name. So an exclusive holder also shows the
 * name on the directory, which cannot be had anew: a read lock of the open file description (F_OFD_SETLK, fcntl(2)) on one byte at a place
 * that follows from the name. Who finds another's there does not hold the lock. Two names of one place (one pair in 2^62) exclude each
 * other, no more. Where a file system has no such locks, flock(2) alone has to do. */
#pragma once

#include <stdbool.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"

enum lock_mode { LOCK_MODE_SHARED, LOCK_MODE_EXCLUSIVE };

struct lock {
	int fd;    /* -1: none */
	int shown; /* the directory, with the name shown on it; -1: none */
};
#define LOCK_NONE ((struct lock){.fd = -1, .shown = -1})

/* Makes the file 0600 if missing. -EWOULDBLOCK when it is still held at the deadline; anything else is fatal for the caller: -ELOOP a
 * link, -EINVAL not a regular file. A deadline that has passed still tries for 5 ms, so that nobody's lock_is_held is in the way. */
int lock_take(const struct pin *dir, const char *name, enum lock_mode mode, struct deadline until, struct lock *ret_lock, struct err *err);

/* Would an exclusive lock be had now? Makes nothing. *ret_held false when there is no such file. Takes the lock for some microseconds
 * if it is free: flock(2) has no way to ask only, and /proc/locks hides holders that exec'ed or live in another pid namespace. */
int lock_is_held(const struct pin *dir, const char *name, bool *ret_held, struct err *err);

/* From now on the lock passes to the program that exec starts. */
int lock_keep_over_exec(struct lock *lock, struct err *err);
void lock_release(struct lock *lock);
#define AUTO_LOCK __attribute__((cleanup(lock_release)))
