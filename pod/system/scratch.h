/* The managed temp directory of a sandboxed server: <run>/mcp-tmp/probe-<8 hex>/tmp, with ".owner" beside it, out of the server's reach.
 * Everything below the home is reached through pins. Makers and the sweep exclude each other by a lock on mcp-tmp itself, so that a
 * directory without an owner is a dead one. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/plane.h"

struct scratch {
	struct pin parent; /* mcp-tmp; PIN_NONE: no scratch */
	struct pin tmp;    /* the directory that is handed out */
	char name[24];     /* "probe-0123abcd" */
	char path[PLANE_PATH_MAX + 64];
	size_t owners;
	char owner_text[256]; /* of .owner */
};
#define SCRATCH_NONE ((struct scratch){.parent = PIN_NONE, .tmp = PIN_NONE})

/* `run_path` is how the pod spells <home>/run; run and mcp-tmp are made when they are missing. The calling process is the first owner. */
int scratch_make(const struct pin *home, const char *run_path, struct deadline until, struct scratch *ret_scratch, struct err *err);
/* A further owner, the leader of a process group: the directory lives as long as anybody of one of these groups. Three at most. */
int scratch_own(struct scratch *scratch, pid_t leader, struct err *err);
/* Removes it and closes the pins; none is success. On failure the pins are closed all the same: the sweep is for what is left. */
int scratch_remove(struct scratch *scratch, struct deadline until, struct err *err);
/* Closes the pins and leaves the directory to the sweep, or to the process that this one becomes. */
void scratch_leave(struct scratch *scratch);
#define AUTO_SCRATCH __attribute__((cleanup(scratch_leave)))

/* Removes every probe-* directory whose owner group is gone; *ret_removed may be NULL. Missing directories are nothing to do. */
int scratch_sweep(const struct pin *home, struct deadline until, size_t *ret_removed, struct err *err);
