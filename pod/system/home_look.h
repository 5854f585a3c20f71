/* What stands at a pod's home, from statx(2) alone: nothing is opened and no link followed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/facts.h"

/* Inode and birth time ("-" where the file system has none) of a directory: who it is, whatever its name. Device numbers change over reboots. */
int directory_identity(const struct pin *pin, char out[64], struct err *err);

/* `identity` is the record's, "" unknown; `recorded` is whether a record exists. *ret_made: epoch seconds, 0 unknown. */
int home_look(const struct pin *root, const struct pod_name *name, const char *identity, bool recorded, enum home_kind *ret_kind,
	      int64_t *ret_made, struct err *err);

/* The name in the root of the directory with this identity, malloc'ed, NULL when there is none: whoever renamed it, it is what was made. An
 * error when not all could be looked at. */
int home_find(const struct pin *root, const char *identity, char **ret_entry, struct err *err);

int home_stands(const struct pin *root, const char *entry, bool *ret_stands, struct err *err); /* anything, of any type */

/* Is `parent` of the root safe: not writable by others without the sticky bit, owned by us or root (X06)? */
int root_parent_check(const char *root, struct err *err);
