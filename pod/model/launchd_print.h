/* What `launchctl print gui/<uid>/<label>` says of a job. Apple calls the output no interface; so only lines at the first level of indentation are
 * read, one that stands there twice is believed in neither place, and whatever is not understood is "unknown", never "gone". launchctl(1). */
#pragma once

#include <stddef.h>

#include "fsops/err.h"
#include "pod/model/facts.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"

#define LAUNCHD_LABEL_MAX (sizeof "dev.kirocrew.pod.." + PLANE_PREFIX_MAX + POD_NAME_MAX)
/* dev.kirocrew.pod.<prefix>.<name> */
void launchd_label(const char *prefix, const struct pod_name *name, char out[LAUNCHD_LABEL_MAX]);

/* From launchctl's exit status and all that it wrote. UNIT_ABSENT only for status 113 and the words "Could not find service"; -EIO any other failure,
 * with launchctl's own words, REFUSAL_NO_MANAGER where the user has no such domain; -EBADMSG for what cannot be read.
 * The end of the last run decides what a job without a process is: status 3, 70, 78: UNIT_FAILED, though launchd will start it again; another
 * failure or a signal: UNIT_RESTARTING; status 0: UNIT_INACTIVE, as KeepAlive is SuccessfulExit false; none yet: UNIT_STARTING, as RunAtLoad is
 * true. `restarts` are its runs after the first since it was loaded. */
int launchd_print_parse(int status, const char *text, struct unit_state *ret_state, struct err *err);

/* launchctl's own words as one short line: the last line that is not empty, without "Bad request.". */
void launchd_words(const char *text, char *out, size_t size);
