/* Whole trees, by descriptor: any depth and width in bounded memory and descriptors, names as bytes, links never followed,
 * mounts never crossed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"

#define TREE_LEFT_NAMED 5

/* What could not be removed: the first five paths (relative to the directory that the tree stands in, so they start with its name; raw
 * bytes, possibly cut), each with its errno, and the whole count. Directories that stay only because of what is in them do not count. */
struct tree_left {
	size_t count;
	struct {
		char path[512];
		int code; /* negative errno: -EXDEV or -EBUSY a mount, -EPERM immutable or another owner, … */
	} named[TREE_LEFT_NAMED];
};

/* Removes `name` in `at`, whatever its type. Directories of ours without permission bits are repaired on the way. 0 when it is gone
 * (also when it was not there). -ENOTEMPTY when something is left: *ret_left (may be NULL) says what, and everything else is gone. An
 * entry that comes back is removed again until `until`, three times at least; the deadline does not cut the first pass short, unless the
 * tree has millions of entries or grows while it is read (-ETIME). What lies more than 4,094 levels deep is first moved to the top, as
 * `.deep-N`: paths that are left say so. */
int tree_remove(const struct pin *at, const char *name, struct deadline until, struct tree_left *ret_left, struct err *err);

/* The newest change in the tree `name` in `at`: of a file its ctime, of a directory its mtime, in nanoseconds of CLOCK_REALTIME as its file
 * system rounds it. Reads only. -E2BIG: more than `most` entries, or too deep; -EXDEV, -EACCES …: a part that may not be entered. */
int tree_last_change(const struct pin *at, const char *name, size_t most, int64_t *ret_ns, struct err *err);

/* Copies the contents of directory `from` into directory `to` (which exists): regular files (0600, or 0700 where the owner may execute),
 * directories (0700) and nothing else: any other type is refused by name (-EINVAL). Create-only: an existing name is -EEXIST.
 * `skip` (may be NULL) is a name directly in `from` that is left out. Two threads share the files. Reflink, else copy_file_range(2), else read and
 * write; one that becomes shorter meanwhile is -EAGAIN. More than 4,095 levels, and a target inside of the source, are refused (-ELOOP). What was
 * copied before a failure stays, except for the file at which it failed. Nothing is synced. */
int tree_copy(const struct pin *from, const struct pin *to, const char *skip, struct err *err);

/* One file, judged on its descriptor: regular, else -EINVAL or -ELOOP. Create-only, 0600. As long as it was when it was opened. */
int tree_copy_file(const struct pin *from, const char *name, const struct pin *to, const char *to_name, struct err *err);
