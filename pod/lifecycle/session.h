/* What every verb stands on: surroundings, the plane's pins, a service backend. */
#pragma once

#include "fsops/err.h"
#include "fsops/lock.h"
#include "fsops/pin.h"
#include "pod/system/foreground.h"
#include "pod/system/service.h"
#include "pod/system/surroundings.h"

struct session {
	struct surroundings around;
	struct pin root, pods_dir; /* fd -1: not there */
	char root_identity[64];    /* of the pinned root, "" not asked yet */
	struct service *services[BACKEND_NULL + 1]; /* by backend, opened when first used */
	struct service_context context;
	struct progress *progress; /* where to say what is waited for, NULL nowhere */
	const struct foreground *foreground; /* NULL: signals have their usual way with this process */
};
int session_open(const char *config, struct session *ret_session, struct err *err); /* makes nothing */
int session_make_plane(struct session *session, struct err *err);                  /* root and pods dir exist afterwards, 0700 */
int session_make_pods_dir(struct session *session, struct err *err);               /* of the two only that, where locks are */
/* The backend's handle, borrowed; AUTO is the plane's setting, and where that is auto too, what this host has. */
int session_service(struct session *session, enum backend wanted, struct service **ret_service, struct err *err);
void session_close(struct session *session);
#define AUTO_SESSION __attribute__((cleanup(session_close)))

/* Exclusive for this pod within `wait_ms`, else REFUSAL_BUSY (75). */
int session_lock_name(struct session *session, const struct pod_name *name, int64_t wait_ms, struct lock *ret_lock, struct err *err);
int session_lock_plane(struct session *session, struct lock *ret_lock, struct err *err);

/* The root is the one that a record names ("" none): else it was renamed, replaced or covered by a mount (L09). */
int session_check_root(struct session *session, const char *recorded, struct err *err);
