#include "pod/system/service.h"

#include <errno.h>
#include <stdlib.h>

#include "pod/model/refusal.h"

void service_listing_free(struct service_listing *listing)
{
	free(listing->units);
	*listing = (struct service_listing){0};
}

static const struct backend_ops {
	enum backend backend;
	const struct service_ops *ops;
} backends[] = {
	{BACKEND_SYSTEMD, &service_systemd},
	{BACKEND_LAUNCHD, &service_launchd},
	{BACKEND_EMBEDDED, &service_embedded},
	{BACKEND_NULL, &service_null},
};
#define BACKENDS (sizeof backends / sizeof *backends)

int service_open(enum backend backend, const struct service_context *context, struct service **ret_service, struct err *err)
{
	if (backend == BACKEND_AUTO)
		return service_open_auto(context, ret_service, err);
	for (size_t i = 0; i < BACKENDS; i++)
		if (backends[i].backend == backend)
			return backends[i].ops->open(context, ret_service, err);
	return refuse(err, REFUSAL_NO_MANAGER, NULL, "%s is not to be had on this host", backend_name(backend));
}

void service_close(struct service **slot)
{
	if (*slot)
		(*slot)->ops->close(*slot);
	*slot = NULL;
}

enum backend service_backend(const struct service *service)
{
	for (size_t i = 0; i < BACKENDS; i++)
		if (backends[i].ops == service->ops)
			return backends[i].backend;
	return BACKEND_NULL;
}
