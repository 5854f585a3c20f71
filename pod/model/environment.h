/* The environment of a payload and of an agent child, as a table (contract, section 5). Pure: an environment in, an environment out.
 *
 * Where the contract leaves it open:
 * - The plane's settings are exported to every payload (KIROCREW_POD_ROOT and so on), so that a process inside a pod, whose HOME may be the
 *   pod's, sees the host's registry. KIROCREW_POD_REPO and KIROCREW_POD_HEALTH_SECS are not: they belong to one call of a verb.
 * - A recorded APPROVAL is KIROCREW_POD_APPROVAL=reads|yolo|interactive, recorded CRONS is KIROCREW_POD_CRONS=1; unset otherwise, whatever
 *   the service manager's environment held (a pod that was brought up from inside another must not inherit its approvals).
 * - A command payload gets XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME and XDG_STATE_HOME at their default places below os-home.
 *   XDG_RUNTIME_DIR is dropped: the sockets of the operator's session are there, two pods of one program would meet there, and what they
 *   leave there outlives `down`. Programs fall back to a place of their own, as the specification asks of them. XDG_CONFIG_DIRS and
 *   XDG_DATA_DIRS name the system's read-only data and stay.
 * - A value that cannot be carried is refused with REFUSAL_VALUE: "NAME=value" of 131,072 bytes or more (execve(2), MAX_ARG_STRLEN, with
 *   pages of 4 KiB), a checkout with ':' in its path (PATH would take it for two directories). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"
#include "pod/model/record.h"

#define ENVIRONMENT_ENTRY_MAX 131071 /* bytes of "NAME=value" without its NUL */

struct environment {
	char **v; /* NULL-terminated "NAME=value", owned */
	size_t n;
};
/* Entries without a name or '=' are left out. */
int environment_copy(char *const *envp, struct environment *ret_environment, struct err *err);
int environment_set(struct environment *environment, const char *name, const char *value, struct err *err);
void environment_unset(struct environment *environment, const char *name);
const char *environment_get(const struct environment *environment, const char *name);
void environment_free(struct environment *environment);
#define AUTO_ENVIRONMENT __attribute__((cleanup(environment_free)))

struct pod_paths {
	char home[PLANE_PATH_MAX], os_home[PLANE_PATH_MAX], kiro[PLANE_PATH_MAX], workspace[PLANE_PATH_MAX], run[PLANE_PATH_MAX];
	char log[PLANE_PATH_MAX]; /* the file, <artifacts>/<name>/pod.log */
};
/* REFUSAL_VALUE when a path does not fit. */
int pod_paths_make(const struct plane *plane, const struct pod_name *name, struct pod_paths *ret_paths, struct err *err);

/* What a payload runs with. `base` is the service manager's environment. */
int environment_for_payload(const struct plane *plane, const struct pod_name *name, const struct spec *spec, const struct pod_paths *paths,
			    const struct environment *base, struct environment *ret_environment, struct err *err);
/* What the gateway's agent child, and so the viability probe, runs with; `payload` is the payload's. */
int environment_for_agent(const struct environment *payload, const struct pod_paths *paths, struct environment *ret_environment,
			  struct err *err);
/* Only what section 5 sets, for `env NAME`: KEY=value pairs. */
int environment_of_pod(const struct plane *plane, const struct pod_name *name, const struct spec *spec, const struct pod_paths *paths,
		       struct environment *ret_environment, struct err *err);
/* The plane's settings by their variables, so that another process of ours resolves the same plane; unset ones are left out. */
int environment_of_plane(const struct plane *plane, struct environment *ret_environment, struct err *err);
