#include "pod/model/refusal.h"
#include "pod/system/journal.h"
#include "pod/system/service.h"
#include "pod/system/systemd_stale.h"

static int refused_open(const struct service_context *context, struct service **ret_service, struct err *err)
{
	(void)context, (void)ret_service;
	return refuse(err, REFUSAL_NO_MANAGER, "systemd", "it exists on Linux only; here the manager is launchd");
}

/* There is never a handle for the others. */
const struct service_ops service_systemd = {.name = "systemd", .open = refused_open};

bool journal_readable(void)
{
	return false;
}

void units_look(const struct plane *plane, const struct pin *pods_dir, struct host_facts *facts)
{
	(void)plane, (void)pods_dir, (void)facts;
}
