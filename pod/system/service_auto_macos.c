#include "pod/system/service.h"

/* The keeper needs Linux, so there is nothing to fall back on. */
int service_open_auto(const struct service_context *context, struct service **ret_service, struct err *err)
{
	return service_launchd.open(context, ret_service, err);
}
