/* Bytes from one open regular file to another. */
#pragma once

#include <stdint.h>

#include "fsops/deadline.h"
#include "fsops/err.h"

/* Copies exactly `size` bytes from offset 0 of `from` to offset 0 of the empty file `to`: a reflink (FICLONE of ioctl_ficlone(2), whole
 * files only) where the file system has it, else copy_file_range(2), else pread and pwrite through one fixed buffer. Neither file position
 * is used. -EAGAIN: the source has become shorter; -ETIMEDOUT: `until` has passed; else what the system says. */
int bytes_copy(int from, int to, uint64_t size, struct deadline until, struct err *err);
