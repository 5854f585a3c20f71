/* The log file of a pod on hosts without a readable journal: <artifacts>/<name>/pod.log. Directories 0700, files 0600, all opened below
 * pins: a link at the pod's folder, the log or the rotated log is refused (-ELOOP), never followed. */
#pragma once

#include <stdbool.h>

#include "fsops/err.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"

#define LOGFILE_ROTATE_BYTES (16L << 20)

/* For appending, made if missing. */
int logfile_open(const struct plane *plane, const struct pod_name *name, int *ret_fd, struct err *err);

/* The same for who is about to start: from LOGFILE_ROTATE_BYTES on, pod.log first becomes pod.log.1 (an older one is lost). Who runs holds the former. */
int logfile_begin(const struct plane *plane, const struct pod_name *name, int *ret_fd, struct err *err);

/* The last `lines` lines (raw bytes, of the last 16 MiB at most) to fd. With follow, then what is appended, over a rotation too, until
 * the log is deleted, the reader of fd is gone or a signal comes (one that does not end us ends the following, with success). -ENOENT: no log. */
int logfile_copy(const struct plane *plane, const struct pod_name *name, unsigned lines, bool follow, int fd, struct err *err);

/* Appends one line. */
int logfile_line(const struct plane *plane, const struct pod_name *name, const char *line, struct err *err);

/* Removes the pod's logs, and their folder unless something else is in it, which is nobody's to remove. None there is success. */
int logfile_forget(const struct plane *plane, const struct pod_name *name, struct err *err);
/* Is there a log of the pod? *ret_exists. */
int logfile_exists(const struct plane *plane, const struct pod_name *name, bool *ret_exists, struct err *err);
