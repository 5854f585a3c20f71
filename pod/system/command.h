/* Which file a command word means. */
#pragma once

#include <stddef.h>

#include "fsops/err.h"

/* `word` found in the absolute directories of a colon-separated path: absolute, executable, a regular file. A word with '/' is made
 * absolute against cwd and checked. -ENOENT "not found: X, searched …"; -EACCES what is there cannot be executed; -ENAMETOOLONG. */
int command_find(const char *word, const char *path, const char *cwd, char *out, size_t size, struct err *err);
