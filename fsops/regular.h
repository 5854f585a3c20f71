/* Opening regular files and nothing else: the type is judged on an O_PATH descriptor, so that a FIFO is never waited for and a device
 * never opened. */
#pragma once

#include <sys/stat.h>

#include "fsops/err.h"
#include "fsops/pin.h"

/* A descriptor or -errno: -ELOOP a link, -EINVAL another type, -ENOENT. `flags`: O_RDONLY or O_RDWR. *ret_stat may be NULL. */
int regular_open(const struct pin *at, const char *name, int flags, struct stat *ret_stat, struct err *err);

/* The same where readdir(3) has just told that it is a regular file: opened, and judged then. */
int regular_open_listed(const struct pin *at, const char *name, int flags, struct stat *ret_stat, struct err *err);

/* A new regular file, O_CREAT | O_EXCL, open for writing, whose mode is settled before it holds a byte. -EEXIST. */
int regular_create(const struct pin *at, const char *name, mode_t mode, struct err *err);

/* unlink of a name that regular_create made, unless it has become another file. */
void regular_take_back(const struct pin *at, const char *name, int fd);
