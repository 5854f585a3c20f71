/* launchctl(1): one question, its exit status and its words. /bin/launchctl, else the one in the plane's path. Part of the launchd backend. */
#pragma once

#include <stddef.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "pod/model/plane.h"

#define LAUNCHCTL_TEXT_MAX 65536

/* -ENOENT. */
int launchctl_find(const struct plane *plane, char *out, size_t size, struct err *err);

/* Runs it to its end. ret_text: stdout and stderr together, NUL behind. -ETIME: it was killed at the deadline; -EFBIG: it said more than that. */
int launchctl_run(const char *launchctl, const char *const words[], struct deadline until, int *ret_status, char ret_text[LAUNCHCTL_TEXT_MAX],
		  struct err *err);
