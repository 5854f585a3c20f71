#include "pod/model/refusal.h"
#include "pod/system/keeper.h"

/* A keeper must see the end of everything that a pod starts: only a child subreaper does. */
static int refused(struct err *err)
{
	return refuse(err, REFUSAL_NO_MANAGER, "embedded", "the keeper needs Linux (PR_SET_CHILD_SUBREAPER); here the manager is launchd");
}

static int refused_open(const struct service_context *context, struct service **ret_service, struct err *err)
{
	(void)context, (void)ret_service;
	return refused(err);
}

/* There is never a handle for the others. */
const struct service_ops service_embedded = {.name = "embedded", .open = refused_open};

int keeper_main(const struct service_context *context, const struct pod_name *name, struct err *err)
{
	(void)context, (void)name;
	return refused(err);
}
