/* Who watches for the end of a pod's life: a transient unit for each pod that has an owner or a time. Part of the systemd backend. */
#pragma once

#include "pod/system/systemd_install.h"

int systemd_guard(struct systemd *systemd, const struct service_unit *unit, struct deadline until, struct err *err);
/* Not loaded is success. */
int systemd_unguard(struct systemd *systemd, const struct pod_name *name, const char *id, struct deadline until, struct err *err);
