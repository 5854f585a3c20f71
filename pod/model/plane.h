/* A plane: where the pods of one user live. Environment variable, else INI file, else default (contract, section 2). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"

enum plane_setting {
	PLANE_ROOT,
	PLANE_ENV_DIR,
	PLANE_ARTIFACTS_DIR,
	PLANE_BASE_PORT,
	PLANE_PORT_SPAN,
	PLANE_LIVE_PORT,
	PLANE_UNIT_PREFIX,
	PLANE_PATH,
	PLANE_REPO,
	PLANE_WORKTREES_ROOT,
	PLANE_HEALTH_SECS,
	PLANE_KIRO_BIN,
	PLANE_BACKEND,
	PLANE_SETTINGS,
};

struct plane_setting_entry {
	const char *variable;      /* "KIROCREW_POD_ROOT" */
	const char *key;           /* "root" in [plane] */
	const char *default_value; /* as in the contract's table; NULL: unset or computed */
	const char *meaning;       /* for the manual, without a full stop */
};
extern const struct plane_setting_entry plane_settings[PLANE_SETTINGS];

enum backend {
	BACKEND_AUTO,
	BACKEND_SYSTEMD,
	BACKEND_LAUNCHD,
	BACKEND_EMBEDDED,
	BACKEND_NULL, /* no service manager: for verbs that need none */
};
const char *backend_name(enum backend backend);
int backend_parse(const char *text, enum backend *ret_backend, struct err *err);

#define PLANE_PATH_MAX 4096
#define PLANE_PREFIX_MAX 40 /* [A-Za-z0-9][A-Za-z0-9._-]*, no '@' */

struct plane {
	char home[PLANE_PATH_MAX]; /* the operator's HOME */
	char root[PLANE_PATH_MAX];
	char pods_dir[PLANE_PATH_MAX];
	char artifacts[PLANE_PATH_MAX];
	char config_home[PLANE_PATH_MAX]; /* an absolute XDG_CONFIG_HOME, else ~/.config */
	char data_home[PLANE_PATH_MAX];   /* an absolute XDG_DATA_HOME, else ~/.local/share: source of the stores */
	int base_port, port_span, live_port;
	char prefix[PLANE_PREFIX_MAX + 1];
	char path[PLANE_PATH_MAX];
	char repo[PLANE_PATH_MAX];
	char worktrees_root[PLANE_PATH_MAX]; /* "" unset */
	int health_secs;
	char kiro_bin[PLANE_PATH_MAX]; /* "" unset */
	enum backend backend;
};

struct ini;

/* Everything that a plane is made from, gathered by pod/system/surroundings.h. NULL: unset. */
struct plane_input {
	const char *variable[PLANE_SETTINGS];
	const char *home;              /* decided: usable, absolute */
	const char *cwd;               /* NULL when the working directory is gone: only relative values then fail */
	const char *xdg_config_home, *xdg_data_home;
	const struct ini *ini;         /* may be NULL */
};
/* `~` expanded, relative made absolute against cwd, `//` and `.` folded, values checked: REFUSAL_BAD_CONFIG names variable or key. */
int plane_resolve(const struct plane_input *input, struct plane *ret_plane, struct err *err);
/* "~", "~/x", "x" → absolute, into a buffer of PLANE_PATH_MAX. */
int path_absolute(const char *text, const char *home, const char *cwd, char *out, struct err *err);
