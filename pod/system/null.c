/* No service manager: every unit is absent, nothing can be started. */
#include <errno.h>
#include <stdlib.h>

#include "pod/model/refusal.h"
#include "pod/system/service.h"

static int null_open(const struct service_context *context, struct service **ret_service, struct err *err)
{
	(void)context;
	struct service *service = calloc(1, sizeof *service);
	if (!service)
		return err_code(err, -ENOMEM, "service", NULL);
	service->ops = &service_null;
	*ret_service = service;
	return 0;
}

static void null_close(struct service *service)
{
	free(service);
}

static int null_install(struct service *service, const struct service_unit *unit, struct err *err)
{
	(void)service;
	return refuse(err, REFUSAL_NO_MANAGER, unit->name->text, NULL);
}

static int null_start(struct service *service, const struct service_unit *unit, struct deadline until, struct err *err)
{
	(void)until;
	return null_install(service, unit, err);
}

static int null_stop(struct service *service, const struct pod_name *name, int64_t grace_ms, struct unit_group *group, struct err *err)
{
	(void)service, (void)name, (void)grace_ms, (void)group, (void)err;
	return 0;
}

static int null_query(struct service *service, const struct pod_name *name, struct unit_state *ret_state, struct err *err)
{
	(void)service, (void)name, (void)err;
	*ret_state = (struct unit_state){.active = UNIT_ABSENT};
	return 0;
}

static int null_list(struct service *service, struct service_listing *ret_listing, struct err *err)
{
	(void)service, (void)err;
	*ret_listing = (struct service_listing){0};
	return 0;
}

/* Nothing ever changes, so there is nothing to wait for. */
static int null_wait(struct service *service, const struct pod_name *name, struct deadline until, struct unit_state *ret_state, struct err *err)
{
	(void)until;
	return null_query(service, name, ret_state, err);
}

static int null_logs(struct service *service, const struct pod_name *name, unsigned lines, bool follow, int fd, struct err *err)
{
	(void)service, (void)lines, (void)follow, (void)fd;
	return err_set(err, -ENOENT, "logs", name->text, "there is no log without a service manager");
}

static int null_log_line(struct service *service, const struct pod_name *name, const char *line, struct err *err)
{
	(void)line;
	return null_logs(service, name, 0, false, -1, err);
}

static int null_forget(struct service *service, const struct pod_name *name, struct err *err)
{
	(void)service, (void)name, (void)err;
	return 0;
}

const struct service_ops service_null = {
	.name = "null",
	.open = null_open,
	.close = null_close,
	.install = null_install,
	.start = null_start,
	.stop = null_stop,
	.query = null_query,
	.list = null_list,
	.wait = null_wait,
	.logs = null_logs,
	.log_line = null_log_line,
	.forget = null_forget,
};
