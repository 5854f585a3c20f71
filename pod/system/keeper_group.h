/* Where the processes of a kept pod live: below the keeper, which is their subreaper, and where a cgroup2 tree is writable in a control group of
 * their own. cgroups(7), PR_SET_CHILD_SUBREAPER. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/facts.h"
#include "pod/model/name.h"
#include "pod/system/process.h"

/* "<prefix>-<name>-<first 8 of the id>": one directory name, the same for everybody who looks for the group. */
#define KEEPER_CGROUP_NAME_MAX 128
void keeper_cgroup_name(const char *prefix, const struct pod_name *name, const char *id, char out[KEEPER_CGROUP_NAME_MAX]);

/* The group of that name below the caller's own group, made anew: Linux 6.18 kills at birth what is cloned into a group that was killed once. One
 * that is not empty is taken as it is. *ret_fd: its directory. Any failure means: no group to be had here. */
int keeper_cgroup_make(const char *name, char *out, size_t size, int *ret_fd);
/* An existing one: below the caller's own group, else anywhere on the mount (its maker may have run in another group). -ENOENT. */
int keeper_cgroup_find(const char *name, char *out, size_t size);
/* Is it a plain path on that cgroup2 mount that ends in that name? For paths that somebody tells. */
bool keeper_cgroup_plausible(const char *mount, const char *path, const char *name);
/* Removes the group and those that were made in it, if they are empty; waits for the kernel to notice until the deadline. */
int keeper_cgroup_remove(const char *path, struct deadline until);

/* Neither of these two signals the caller.
 * SIGTERM to all, thawed and continued so that they can act on it. */
void keeper_group_terminate(const struct unit_group *group);
/* One pass of SIGKILL: cgroup.kill, the process group that `leader` (a pidfd, -1 none) leads or led, then whoever else is found. What forks is stopped
 * first, so that every pass leaves fewer. The caller repeats it until wait(2) says ECHILD. */
void keeper_group_kill_pass(const struct unit_group *group, int leader);
