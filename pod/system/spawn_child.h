/* The child's side of spawn.h: between fork and exec, nothing that takes a lock of the caller's other threads. */
#pragma once

#include "pod/system/spawn.h"

enum spawn_stage {
	SPAWN_STAGE_FORK,
	SPAWN_STAGE_SESSION,
	SPAWN_STAGE_PARENT,
	SPAWN_STAGE_DESCRIPTORS,
	SPAWN_STAGE_DIRECTORY,
	SPAWN_STAGE_EXEC,
	SPAWN_STAGES,
};

/* What the child tells through the pipe: one with code 0 before its exec, so that one killed earlier cannot pass for a success, and one with the
 * cause when it fails. */
struct spawn_report {
	int stage;
	int code; /* negative errno */
};

struct spawn_plan {
	const struct spawn *request;
	char *const *envp;
	int stdio[3];     /* all of them 3 or higher, close-on-exec */
	int report;       /* write end, 3 or higher, close-on-exec */
	pid_t parent;
	int cgroup_procs; /* -1: nothing to write */
};

/* Of the parent. Born in the group where the kernel can do that; else the child moves itself. -1 with errno. */
pid_t spawn_fork(struct spawn_plan *plan, struct spawned *spawned);
/* Was it moved? Only asked when it was not born there. */
bool spawn_moved_itself(const struct spawn_plan *plan, pid_t pid);
/* Of the child: it has the locks of threads that it does not have, so no handler may run. As fork(2). */
pid_t spawn_fork_again(void);
/* Of the child. PR_SET_PDEATHSIG; -1 with errno, ENOSYS where there is none. */
int spawn_tie(int signal);
/* Close-on-exec for all from 3 on by one call; false where there is none. */
bool spawn_seal_all(void);

_Noreturn void spawn_child(const struct spawn_plan *plan);
