/* The end of a pod's log as text, for people. */
#pragma once

#include "pod/system/service.h"

/* malloc'ed, at most 16 KiB; NULL when there is no log. */
int service_log_tail(struct service *service, const struct pod_name *name, unsigned lines, char **ret_text);
