/* What systemd says of a unit, as our types; whether the definition that it has loaded is ours; and advice when no manager can be had.
 * Pure. org.freedesktop.systemd1(5), systemd.service(5). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fsops/err.h"
#include "pod/model/facts.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"

/* Properties by their systemd names, as they come over the bus. */
struct unit_properties {
	char load_state[32], active_state[32], sub_state[32], result[32];
	char control_group[480];
	int32_t exec_main_code, exec_main_status; /* CLD_EXITED, CLD_KILLED, CLD_DUMPED of waitid(2); 0 none */
	uint32_t main_pid, n_restarts;
	uint64_t state_change_usec;
};
/* `cgroup_mount` is where cgroup2 is mounted. -ENAMETOOLONG when the group does not fit: a group cut short would be another one. */
int unit_state_map(const struct unit_properties *properties, const char *cgroup_mount, struct unit_state *ret_state, struct err *err);

/* Is it worth waiting no longer: anything but the time of the change differs. */
bool unit_state_differs(const struct unit_state *a, const struct unit_state *b);

/* "<prefix>@<name>.service" → name; -EINVAL for any other. */
int unit_name_split(const char *prefix, const char *unit, struct pod_name *ret_name);

/* What systemd has loaded for a unit. */
struct unit_definition {
	char load_state[32], restart[32];
	char fragment[PLANE_PATH_MAX];
	char drop_ins[PLANE_PATH_MAX]; /* one a line */
	struct unit_command {
		char program[PLANE_PATH_MAX]; /* of the only ExecStart=, "" when there is not exactly one */
		char last_words[160];         /* its last two arguments */
	} command;
	bool prevent[256]; /* RestartPreventExitStatus= */
	bool need_reload;
};
/* What our files say. */
struct unit_expected {
	const char *unit;
	const char *fragment;
	const char *drop_in; /* NULL: none */
	const char *program;
	const char *template; /* the text: Restart= and RestartPreventExitStatus= are looked up in it */
	const struct pod_name *name;
};
/* Has systemd loaded what is on disk: the template, and our drop-in if there is one (or no longer one)? */
bool unit_definition_current(const struct unit_definition *definition, const struct unit_expected *expected);
/* REFUSAL_BAD_CONFIG names a mask, a foreign unit file, or the foreign drop-ins that change ExecStart=, Restart= or the terminal statuses. */
int unit_definition_check(const struct unit_definition *definition, const struct unit_expected *expected, struct err *err);

/* Value of the last "KEY=" line; false: there is none or it does not fit. */
bool unit_text_value(const char *text, const char *key, char *out, size_t size);

/* Why the user manager is out of reach, from what is there. */
struct manager_host {
	uid_t uid;
	const char *runtime; /* the runtime directory that was looked at */
	bool runtime_there;
	uid_t runtime_owner;
	bool socket_there;    /* private socket or bus */
	bool systemd_is_init; /* sd_booted(3) */
	bool logind;
	int connect_error;    /* negative errno of the last attempt, 0 none was made */
};
/* One sentence with a remedy that can work on this host. */
void manager_advice(const struct manager_host *host, char *out, size_t size);
