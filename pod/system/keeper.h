/* The embedded supervisor, for hosts without a service manager: one process for each pod, the subreaper of all that the pod starts. It starts
 * `<program> _run NAME`, restarts it as keeper_table.h says, answers on the pod's socket, and ends with nothing left. It never signals a number
 * that it has read somewhere: only its own descendants. */
#pragma once

#include "fsops/err.h"
#include "pod/model/keeper_table.h"
#include "pod/model/name.h"
#include "pod/system/service.h"

/* What `start` and its keeper agree on, in the environment. */
#define KEEPER_ENV_REPORT "KIROCREW_POD_KEEP_REPORT" /* stream socket: one byte says that the start may begin, an encoded keeper_reply how it went */
#define KEEPER_ENV_KEEPER "KIROCREW_POD_KEEPER"      /* of the payload: the keeper's pid, for those who look for remnants */
#define KEEPER_ENV_ID "KIROCREW_POD_ID"
#define KEEPER_ENV_NAME "KIROCREW_POD_NAME"
#define KEEPER_ENV_INVOCATION "INVOCATION_ID"        /* systemd.exec(5) */
#define KEEPER_GRACE_MS 15000                        /* of a SIGTERM to the keeper */

/* Runs until the pod is stopped; the caller is a process of its own that does nothing else and exits afterwards. The calling process becomes a
 * subreaper and its signal mask and dispositions change for good. */
int keeper_main(const struct service_context *context, const struct pod_name *name, struct err *err);
/* The same with other times. */
int keeper_run(const struct service_context *context, const struct pod_name *name, const struct keeper_limits *limits, struct err *err);
