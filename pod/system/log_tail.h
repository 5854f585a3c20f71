/* The end of a pod's log as text, for people. */
#pragma once

#include "pod/system/service.h"

/* malloc'ed, at most 16 KiB; NULL when there is no log. The journal is written behind what happens: a first line is awaited until `until`. */
int service_log_tail(struct service *service, const struct pod_name *name, unsigned lines, struct deadline until, char **ret_text);
