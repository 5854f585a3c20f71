#include "pod/model/environment.h"

#include <stdio.h>

#include "pod/model/refusal.h"

static int join(char out[PLANE_PATH_MAX], const char *directory, const char *relative, struct err *err)
{
	const char *slash = directory[0] == '/' && !directory[1] ? "" : "/";
	int n = snprintf(out, PLANE_PATH_MAX, "%s%s%s", directory, slash, relative);
	if (n < 0 || n >= PLANE_PATH_MAX)
		return refuse(err, REFUSAL_VALUE, directory, "with %s behind it the path is longer than %d bytes", relative,
			      PLANE_PATH_MAX - 1);
	return 0;
}

int pod_paths_make(const struct plane *plane, const struct pod_name *name, struct pod_paths *ret_paths, struct err *err)
{
	char log[POD_NAME_MAX + sizeof "/pod.log"];
	(void)snprintf(log, sizeof log, "%s/pod.log", name->text);
	struct pod_paths paths;
	const struct {
		char *out;
		const char *directory, *relative;
	} parts[] = {
	    {paths.home, plane->root, name->text},	{paths.os_home, paths.home, "os-home"}, {paths.kiro, paths.home, "kiro"},
	    {paths.workspace, paths.home, "workspace"}, {paths.run, paths.home, "run"},		{paths.log, plane->artifacts, log},
	};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		int r = join(parts[i].out, parts[i].directory, parts[i].relative, err);
		if (r < 0)
			return r;
	}
	*ret_paths = paths;
	return 0;
}
