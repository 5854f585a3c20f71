/* A directory in which others may keep files, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "fsops/pin.h"

/* Removes these files from the directory `name` in `at`, and itself when nothing is left in it. Success, too: it is not there, or something else than a
 * directory stands in its place, which stays. *ret_removed (may be NULL): one of the files was there. */
int folder_forget(const struct pin *at, const char *name, const char *const *files, size_t count, bool *ret_removed, struct err *err);
