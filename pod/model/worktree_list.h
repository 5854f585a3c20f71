/* The output of `git worktree list --porcelain -z` (git-worktree(1)): the worktree that a pod's name stands for. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The path of the worktree whose directory is called `name`, else of the one that is on branch `name`. False: none. */
bool worktree_list_find(const char *output, size_t len, const char *name, char *out, size_t size);
