/* The home of a pod, below the pinned root. Every level is one name below a pin, never through a link or a mount, 0700 whatever the umask.
 * What cannot be built is refused with its component (REFUSAL_HOME): one of these directories becomes a child's HOME. Whose home it is:
 * home_look.h. */
#pragma once

#include <stdbool.h>

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/name.h"

/* A file in every home that `up` made, with the pod's ID and a newline: tells it from a directory that somebody else put into the root. */
#define HOME_MARKER ".kirocrew-pod"

/* -ENOENT: there is none; REFUSAL_HOME: a link, a mount, no directory, another owner. */
int home_open(const struct pin *root, const struct pod_name *name, struct pin *ret_home, struct err *err);
/* The same, made and marked if need be. A marker with another ID is replaced. -ENOENT: the root is gone. On failure what it made is gone. */
int home_make(const struct pin *root, const struct pod_name *name, const char *id, struct pin *ret_home, struct err *err);
/* `claim` is called when a new home is complete, before it gets its name; when it fails, that is the error, and there is no home. */
typedef int home_claim(void *context, const struct pin *home, struct err *err);
int home_make_claimed(const struct pin *root, const struct pod_name *name, const char *id, home_claim *claim, void *context, struct pin *ret_home,
		      struct err *err);
/* -ENOENT: no marker; -EINVAL: there is one that no `up` has written. */
int home_marker_read(const struct pin *home, char ret_id[37], struct err *err);

/* Kiro home with its settings, workspace, run, and the os-home tree with its empty cache for what the pod mints itself. Idempotent. */
int home_furnish(const struct pin *home, struct err *err);
/* One of those; -ENOENT, and what stands in its place meanwhile is refused as above. */
#define HOME_WORKSPACE "workspace"
int home_room(const struct pin *home, const char *room, struct pin *ret_room, struct err *err);
/* All of them are what `up` made: each is where something of the pod will write. */
int home_check_rooms(const struct pin *home, struct err *err);

/* Moves the home, the entry `home` of the root, aside under the name of a home on its way out, whatever its type. *ret_moved false: there
 * was none. -EEXIST: one is there. */
int home_retire(const struct pin *root, const char *home, const struct pod_name *name, bool *ret_moved, struct err *err);
