#include "pod/system/systemd_guard.h"

#include <errno.h>
#include <stdio.h>

#include "pod/model/unit_environment.h"

int systemd_guard(struct systemd *systemd, const struct service_unit *unit, struct deadline until, struct err *err)
{
	const struct service_context *context = &systemd->context;
	const char *id = unit->spec->id;
	AUTO_ENVIRONMENT struct environment environment = {0};
	struct pod_file file = pod_file_watch_unit(context->plane->prefix, unit->name, id);
	char description[POD_NAME_MAX + 48];
	int r = unit_environment(context->plane, BACKEND_SYSTEMD, &environment, err);
	if (r < 0)
		return r;
	(void)snprintf(description, sizeof description, "End of KiroCrew pod %s", unit->name->text);
	const char *with[] = {context->program, "--config", context->config_file, "_watch", unit->name->text, id, NULL};
	const char *without[] = {context->program, "_watch", unit->name->text, id, NULL};
	struct bus_transient transient = {
		.unit = file.text,
		.description = description,
		.argv = context->config_file ? with : without,
		.environment = environment.v,
	};
	return manager_start_transient(&systemd->manager, &transient, until, err);
}

int systemd_unguard(struct systemd *systemd, const struct pod_name *name, const char *id, struct deadline until, struct err *err)
{
	struct err why = {0};
	int r = manager_stop(&systemd->manager, pod_file_watch_unit(systemd->context.plane->prefix, name, id).text, until, &why);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && err)
		*err = why;
	return r;
}
