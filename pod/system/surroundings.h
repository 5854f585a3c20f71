/* Who and where we are: environment, home, working directory, configuration files, our own path. Read once, at the start.
 *
 * HOME counts only if it is absolute and a directory; else the home of the passwd entry does, if it is one and not "/"; else one error and
 * nothing was written. getpwuid(3) is asked last, because NSS aborts when memory runs out. Relative or empty XDG_* values and empty
 * settings count as unset. A working directory that was deleted is no error: only relative values then fail.
 * Configuration: the file of --config, which must exist; else the first that exists of <config home>/kirocrew-pod/config.ini and
 * /etc/kirocrew-pod/config.ini. A link that the operator put there is resolved once; the file itself must be regular and at most 64 KiB. */
#pragma once

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/ini.h"
#include "pod/model/plane.h"

#define CONFIG_BYTES_MAX 65536

struct surroundings {
	char config_file[PLANE_PATH_MAX]; /* the one that was read, "" none */
	struct ini ini;
	struct plane plane;
	char program[PLANE_PATH_MAX]; /* ourselves, absolute; "" when the system does not tell */
	char cwd[PLANE_PATH_MAX];     /* "" when it is gone */
	const char *path;             /* the caller's PATH, where a command word is looked up; NULL unset. Borrowed from the environment */
};
/* `config` is the word of --config, or NULL. */
int surroundings_read(const char *config, struct surroundings *ret_surroundings, struct err *err);
void surroundings_free(struct surroundings *surroundings);

/* kirocrew-pod.ini of a checkout, no-follow, [payload] [agent] [identity …] only. No such file, or no such checkout: empty. */
int checkout_ini_read(const char *checkout, struct ini *ret_ini, struct err *err);
