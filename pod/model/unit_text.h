/* Unit text from templates (unit-templates/, embedded at build time) with typed placeholders. Each type has its own escape; a value
 * that cannot be carried is refused (REFUSAL_VALUE) before anything is written. systemd.unit(5), systemd.exec(5), systemd.syntax(7),
 * launchd.plist(5).
 *
 * The template carries, as Environment=, the plane's settings and HOME, and XDG_CONFIG_HOME and XDG_DATA_HOME where the plane has them
 * elsewhere than below HOME: the manager's own may differ from the caller's. KIROCREW_POD_REPO and KIROCREW_POD_HEALTH_SECS are left out:
 * they belong to one call and a boot has no use for them, and a template that changed with the caller's directory would cost every `up` a
 * reload. KIROCREW_POD_BACKEND is what the text is for.
 *
 * Type=exec, so that a start job fails when the program cannot be executed. systemd expands ${X} and $$ in argv[0] of the program but not
 * in the path that it executes; the path is exact, argv[0] of a program with such a path may differ. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"
#include "pod/model/record.h"

/* After a failure every backend waits this long. */
#define UNIT_RESTART_SECS 5U
/* And gives up after so many starts within so many seconds. systemd's default window of 10 s never fills at one start in 5 s. This one ends
 * any loop whose single run, a viability probe that takes its full 20 s included, is shorter than 55 s; what lives longer may restart for
 * ever. */
#define UNIT_START_LIMIT_BURST 5
#define UNIT_START_LIMIT_SECS 300

struct unit_input {
	const struct plane *plane;
	const char *program;	   /* absolute path of kirocrew-pod */
	const char *log_directory; /* NULL: the journal (plist: the plane's artifacts); else <log_directory>/<name>/pod.log, whose directory
				    * must exist at the start */
	const char *config_file;   /* of --config, or NULL */
	unsigned stop_secs;	   /* TimeoutStopSec */
};
/* <prefix>@.service. malloc'ed. */
int unit_text_template(const struct unit_input *input, char **ret_text, struct err *err);
/* <prefix>@<name>.service.d/50-kirocrew-pod.conf: only limits that the pod has of its own. *ret_text NULL when it needs none. */
int unit_text_drop_in(const struct spec *spec, char **ret_text, struct err *err);
/* launchd property list. */
int unit_text_plist(const struct unit_input *input, const struct pod_name *name, char **ret_text, struct err *err);

/* Two planes may meet under one unit prefix. Is `text`, as found on disk, a template of the same root and pods dir as `rendered`? False as
 * well for a text that says nothing of a plane, so one that is not ours. */
bool unit_text_same_plane(const char *text, const char *rendered);
/* The pods dir that a template, as found on disk, was rendered for: whose pods its units are. -ENOENT: it says nothing of a plane;
 * -EBADMSG: what it says is not what was rendered, or is too long. */
int unit_text_pods_dir(const char *text, char ret_path[PLANE_PATH_MAX]);
/* The program that a template, as found on disk, starts. -EBADMSG: it says none, or not as we would write it. */
int unit_text_program(const char *text, char ret_path[PLANE_PATH_MAX]);
