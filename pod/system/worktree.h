/* The checkout that a name stands for. */
#pragma once

#include <stddef.h>

#include "fsops/err.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"

/* `git worktree list` of the plane's repo (a worktree whose directory or branch has the name), then the worktrees root. -ENOENT: none. The
 * git program has 10 s; a repo that is none, or no git, is not an error. */
int worktree_find(const struct plane *plane, const struct pod_name *name, char *out, size_t size, struct err *err);
