/* A service backend: one constant struct each; callers never test which. One handle serves one process; all waits end at a deadline. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/facts.h"
#include "pod/model/plane.h"
#include "pod/system/watch.h"

struct service;

struct service_listing {
	struct service_listed {
		struct pod_name name;
		struct unit_state state;
	} *units;
	size_t count;
	bool defined; /* a unit of this plane that is not listed is inactive, not absent: its definition is installed */
};
void service_listing_free(struct service_listing *listing);

struct service_context {
	const struct plane *plane;
	const struct pin *pods_dir;   /* may be NULL when it does not exist (then nothing is installed or kept there) */
	const char *program;          /* absolute path of this program, for the unit or the keeper */
	const char *config_file;      /* of --config, or NULL */
	bool crowd;                   /* one of many processes that may ask at the same moment */
};

/* One start of a pod. */
struct service_unit {
	const struct pod_name *name;
	const struct spec *spec;
};

struct service_ops {
	const char *name;
	/* Connects. REFUSAL_NO_MANAGER with a remedy that can work when the manager cannot be reached. */
	int (*open)(const struct service_context *context, struct service **ret_service, struct err *err);
	void (*close)(struct service *service);
	/* Unit files on disk and loaded, or as before. Idempotent; no reload when nothing changed. With no name: what all pods share. */
	int (*install)(struct service *service, const struct service_unit *unit, struct err *err);
	/* Begins what takes time before a start; nobody can see it, and what no start follows ends with the handle or this process. Best effort. NULL: there
	 * is nothing to begin. */
	void (*prepare)(struct service *service, const struct pod_name *name);
	/* Asks for a start. Also after the start limit was hit. */
	int (*start)(struct service *service, const struct service_unit *unit, struct deadline until, struct err *err);
	/* Returns when the manager has done what `start` has just asked for (job done). NULL: `start` returns only then (keeper answering). */
	int (*started)(struct service *service, const struct service_unit *unit, struct deadline until, struct err *err);
	/* SIGTERM to the group, SIGKILL after `grace_ms`. Returns when the manager says it has ended; not loaded is success. From *group (may be
	 * NULL), where the caller goes on looking for processes, a manager that has waited for the last one takes what can hold none any more. */
	int (*stop)(struct service *service, const struct pod_name *name, int64_t grace_ms, struct unit_group *group, struct err *err);
	/* Ends what lives on of a pod that the manager does not know any more; `id` is its generation, "" not known. NULL: nothing can. */
	int (*end_lost)(struct service *service, const struct pod_name *name, const char *id, int64_t grace_ms, struct err *err);
	int (*query)(struct service *service, const struct pod_name *name, struct unit_state *ret_state, struct err *err);
	/* Every unit of this plane that the manager knows. */
	int (*list)(struct service *service, struct service_listing *ret_listing, struct err *err);
	/* Returns at the next change of the unit, or at `until`; *ret_state is the state then. */
	int (*wait)(struct service *service, const struct pod_name *name, struct deadline until, struct unit_state *ret_state, struct err *err);
	/* Last n lines (raw bytes) to fd; with follow until SIGINT or the reader is gone. -ENOENT: no log. */
	int (*logs)(struct service *service, const struct pod_name *name, unsigned lines, bool follow, int fd, struct err *err);
	/* Appends one line of ours (escaped text) to what `logs` shows. */
	int (*log_line)(struct service *service, const struct pod_name *name, const char *line, struct err *err);
	/* Adds descriptors, the handle's, that become readable when a unit of this plane may have changed. NULL: nothing tells of that. */
	int (*watch)(struct service *service, struct watch_set *watch, struct err *err);
	/* Has one changed since the call before, or since `watch`? To be asked before each wait: other calls on the handle may have read the news. */
	bool (*changed)(struct service *service);
	/* Drop-in, plist, socket, failed state: all that is this pod's. The plane's template stays. */
	int (*forget)(struct service *service, const struct pod_name *name, struct err *err);
	/* From now on somebody watches for the end of the life that the record tells, and then has the pod taken down; in place of who did so far. NULL:
	 * this manager cannot. */
	int (*guard)(struct service *service, const struct service_unit *unit, struct err *err);
	/* Nobody does any more. `id` is the generation that was guarded. */
	int (*unguard)(struct service *service, const struct pod_name *name, const char *id, struct err *err);
};
struct service {
	const struct service_ops *ops; /* first member of every backend's handle */
};

extern const struct service_ops service_systemd, service_launchd, service_embedded, service_null;

/* AUTO, one file for each platform: systemd if its user manager answers, else embedded; on macOS launchd. */
int service_open_auto(const struct service_context *context, struct service **ret_service, struct err *err);
/* The backend's ops. */
int service_open(enum backend backend, const struct service_context *context, struct service **ret_service, struct err *err);
void service_close(struct service **service);
#define AUTO_SERVICE __attribute__((cleanup(service_close)))
enum backend service_backend(const struct service *service);
