/* From a held directory to what a relative name below it means, without following a link, leaving the directory or crossing a mount.
 * Two ways with one answer: openat2(2), and a component walk for kernels and filters that have no openat2. */
#pragma once

#include <sys/types.h>

#include "fsops/pin.h"

/* `relative` holds no ".." and is not absolute. `flags` as for open(2); O_CLOEXEC is added. With O_PATH_ITSELF a link at the
 * end is held itself. A descriptor or -errno: -ELOOP a link, -EXDEV a mount, -ENOTDIR, -ENOENT, … */
int resolve_beneath(const struct pin *at, const char *relative, int flags, mode_t mode);

/* The same by one call of the kernel: openat2(2). -ENOSYS where there is none, -EPERM also from a filter, -EAGAIN when somebody renames all the
 * time: then the walk has to do. Internal to resolve. */
int resolve_by_kernel(int at_fd, const char *relative, int flags, mode_t mode);
