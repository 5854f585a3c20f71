/* What the kernel can copy itself. Internal to fsops. */
#pragma once

#include <sys/types.h>

/* Shares all bytes of `from`, as they are now, with the empty `to`: FICLONE. 0 or -errno; -EOPNOTSUPP where the system has no such call. */
int bytes_kernel_clone(int from, int to);
/* copy_file_range(2). */
ssize_t bytes_kernel_range(int from, off_t *from_at, int to, off_t *to_at, size_t size);
