/* Unit files on disk and loaded, or as before. Part of the systemd backend. */
#pragma once

#include <sys/stat.h>

#include "fsops/err.h"
#include "pod/system/service.h"
#include "pod/system/systemd_manager.h"

struct systemd {
	struct service service; /* first: the handle */
	struct service_context context;
	struct manager manager;
	struct unit_state last; /* what the caller was last told, of `last_name` */
	struct pod_name last_name;
	struct stat template_seen; /* when the definition was asked for ahead */
};

/* Asks the manager for what systemd_install will want to know, where it seems that nothing has to be written. */
void systemd_prepare(struct systemd *systemd, const struct pod_name *name);

/* Renders, writes what differs, reloads when something was written or systemd has loaded something else, and reads back what it has loaded:
 * a mask, a foreign unit file or a foreign drop-in that changes what a pod relies on is refused by name. When a reload fails, the files are as before.
 * The template of another plane with units loaded is refused. */
int systemd_install(struct systemd *systemd, const struct service_unit *unit, struct err *err);

/* The pod's drop-in directory (and then a reload), its failed state, its log folder. */
int systemd_forget(struct systemd *systemd, const struct pod_name *name, struct err *err);
