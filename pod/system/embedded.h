/* The embedded backend's handle, shared by its parts and by nobody else. */
#pragma once

#include <stdbool.h>

#include "pod/model/keeper_message.h"
#include "pod/system/keeper_channel.h"
#include "pod/system/service.h"

#define EMBEDDED_ANSWER_MS 1000 /* a keeper that lives answers within this */

struct embedded {
	struct service service;
	struct service_context context;
	char cgroup_mount[512]; /* "" not asked yet */
	/* One kept connection, so that no change between a start and the waits after it is missed. */
	struct pod_name watched;
	int watch; /* -1 none */
	int prepared; /* connection to a keeper that waits for the word to go on, -1 none */
	char gone[37]; /* the generation whose keeper has waited for its last process, "" none */
	pid_t watched_keeper;
	bool knows;
	struct unit_state known; /* what the caller was told last of `watched` */
	/* Of a watch for all pods: a connection to each keeper. */
	int *all;
	size_t all_count;
};

static inline struct embedded *embedded_of(struct service *service) { return (struct embedded *)service; }
static inline const struct pin *embedded_pods_dir(const struct embedded *e)
{
	return e->context.pods_dir && e->context.pods_dir->fd >= 0 ? e->context.pods_dir : NULL;
}

/* One question on a connection of its own. -ENOENT no keeper; -ECONNREFUSED a dead one's socket; -ECONNRESET it ended meanwhile; -ETIME it lives and
 * does not answer; -ENOTSOCK, -EPERM as channel_connect. *ret_keeper is set as soon as there is a connection. */
int embedded_ask(const struct embedded *e, const struct pod_name *name, const struct keeper_request *request, struct deadline until,
		 struct keeper_reply *ret_reply, pid_t *ret_keeper, struct err *err);
/* A question for its state, asked once more when the keeper went away in the middle of it. */
int embedded_look(struct embedded *e, const struct pod_name *name, struct unit_state *ret_state, struct err *err);
/* Completes a keeper's own account by what only the asking side can know, and drops what cannot be true. */
void embedded_complete(struct embedded *e, const struct pod_name *name, pid_t keeper, struct unit_state *state);
/* The state behind a failed question; -ECONNRESET was asked twice. */
int embedded_state_without_answer(const struct embedded *e, const struct pod_name *name, int code, const char *why, pid_t keeper,
				  struct unit_state *ret_state, struct err *err);

/* What a keeper that is gone has left: its control group and the processes that carry the pod's id (NULL or "": the one that the record names). */
int embedded_remnants(const struct embedded *e, const struct pod_name *name, const char *id, struct unit_group *ret_group, struct err *err);
/* SIGTERM, after grace_ms SIGKILL; -EBUSY names survivors. The caller holds the name lock. */
int embedded_end_remnants(const struct embedded *e, const struct pod_name *name, const char *id, int64_t grace_ms, struct err *err);

void embedded_forget_watch(struct embedded *e);
/* The caller of the backend was told this state. */
void embedded_remember(struct embedded *e, const struct pod_name *name, const struct unit_state *state);

/* Makes a keeper that waits; best effort. */
void embedded_prepare(struct service *service, const struct pod_name *name);
/* Ends it, if it was not needed. */
void embedded_dismiss(struct embedded *e);
int embedded_start(struct service *service, const struct service_unit *unit, struct deadline until, struct err *err);
int embedded_stop(struct service *service, const struct pod_name *name, int64_t grace_ms, struct unit_group *group, struct err *err);
int embedded_end_lost(struct service *service, const struct pod_name *name, const char *id, int64_t grace_ms, struct err *err);
int embedded_forget(struct service *service, const struct pod_name *name, struct err *err);
int embedded_watch_all(struct service *service, struct watch_set *watch, struct err *err);
bool embedded_changed(struct service *service);
void embedded_close_all(struct embedded *e);
int embedded_guard(struct service *service, const struct service_unit *unit, struct err *err);
int embedded_unguard(struct service *service, const struct pod_name *name, const char *id, struct err *err);
int embedded_query(struct service *service, const struct pod_name *name, struct unit_state *ret_state, struct err *err);
int embedded_list(struct service *service, struct service_listing *ret_listing, struct err *err);
int embedded_wait(struct service *service, const struct pod_name *name, struct deadline until, struct unit_state *ret_state, struct err *err);
