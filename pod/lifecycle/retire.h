/* A home on its way out: renamed to .<name>@retired first, so that a killed `down` is seen as unfinished and completed by the next. */
#pragma once

#include "fsops/tree.h"
#include "pod/lifecycle/session.h"

struct process_list;

/* Retires the entry `home` of the root (NULL or not there: none) and deletes everything retired. Looked at again after a while: 0 only if it stays
 * away; who makes it anew is outlasted for some seconds and then named. -ENOTEMPTY: *ret_left says what stays. */
int retire_home(struct session *session, const struct pod_name *name, const char *home, struct tree_left *ret_left, struct err *err);
/* Only what an earlier `down` had retired. */
int retire_remove(struct session *session, const struct pod_name *name, struct deadline until, struct tree_left *ret_left, struct err *err);
/* "pid 12 (sh), pid 14 (nginx)", raw bytes, cut to size. */
void retire_names(const struct process_list *list, char *out, size_t size);
