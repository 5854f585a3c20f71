/* The parts of pod/system/sandbox.h; nobody else includes this. */
#pragma once

#include "pod/system/sandbox.h"
#include "pod/system/spawn.h"

/* What the seal is about, opened and spelt once. */
struct sandbox_places {
	struct pin run;
	char home[PLANE_PATH_MAX], run_path[PLANE_PATH_MAX]; /* canonical */
	char run_lexical[PLANE_PATH_MAX + 8];
	char scratch[PLANE_PATH_MAX];                        /* canonical, "" none */
};

/* Waits until all of it is seen through /proc/<pid>/root, or `pidfd` ends (-ESRCH), or `until` (-ETIMEDOUT with the last cause). */
int sandbox_seal_wait(pid_t pid, int pidfd, const struct sandbox_request *request, const struct sandbox_places *places, struct deadline until,
		      struct err *err);
/* -EMLINK when a regular file in run has more than one name. Other servers' scratches are left out. */
int sandbox_links_check(const struct pin *run, struct deadline until, struct err *err);
/* Starts the command below a process of ours that adopts all that comes of it, ends with the caller's thread, and ends them. Its exit status is the
 * command's as a shell tells it, SIGTERM makes it end at once. */
int sandbox_adopt_start(const struct spawn *command, struct spawned *ret_adopter, struct err *err);
