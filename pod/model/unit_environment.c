#include "pod/model/unit_environment.h"

#include <stdio.h>
#include <string.h>

/* Set only where it says something: the payload inherits it. */
static int set_unless_default(struct environment *environment, const struct plane *plane, const char *name, const char *value,
			      const char *below_home, struct err *err)
{
	char otherwise[PLANE_PATH_MAX + 32];
	(void)snprintf(otherwise, sizeof otherwise, "%s/%s", plane->home, below_home);
	return *value && strcmp(value, otherwise) != 0 ? environment_set(environment, name, value, err) : 0;
}

int unit_environment(const struct plane *plane, enum backend backend, struct environment *ret_environment, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	int r = environment_of_plane(plane, &environment, err);
	if (r == 0)
		r = environment_set(&environment, plane_settings[PLANE_BACKEND].variable, backend_name(backend), err);
	/* launchd keeps no group of what a job has started: this and the pod's id in their environment tell (pod/system/process.h). */
	if (r == 0 && backend == BACKEND_LAUNCHD)
		r = environment_set(&environment, "KIROCREW_POD_KEEPER", backend_name(backend), err);
	if (r == 0)
		r = environment_set(&environment, "HOME", plane->home, err);
	if (r == 0)
		r = set_unless_default(&environment, plane, "XDG_CONFIG_HOME", plane->config_home, ".config", err);
	if (r == 0)
		r = set_unless_default(&environment, plane, "XDG_DATA_HOME", plane->data_home, ".local/share", err);
	if (r < 0)
		return r;
	*ret_environment = environment;
	environment = (struct environment){0};
	return 0;
}
