#include "pod/system/service.h"

int service_open_auto(const struct service_context *context, struct service **ret_service, struct err *err)
{
	/* That no manager answers is what AUTO is for, and nothing to report. */
	if (service_systemd.open(context, ret_service, NULL) == 0)
		return 0;
	return service_embedded.open(context, ret_service, err);
}
