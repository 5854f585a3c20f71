/* What a single descriptor tells and lets be done, O_PATH ones included (open(2), statx(2), fchmodat2(2)). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct identity {
	dev_t dev;
	ino_t ino;
	mode_t mode; /* type and permissions, as in struct stat */
	uid_t uid;
	uint64_t mount; /* statx mount id, else the one of /proc/self/fdinfo, 0 where unknown */
};

/* 0 or -errno. */
int descriptor_identity(int fd, struct identity *ret_identity);

/* Are both on one mount? Where a mount id is unknown, the device has to do. */
bool identity_same_mount(dev_t dev_a, uint64_t mount_a, dev_t dev_b, uint64_t mount_b);

/* chmod of what the descriptor holds, never of a name: fchmodat2(2), else through /proc/self/fd. 0 or -errno. */
int descriptor_force_mode(int fd, mode_t mode);

/* A second open of exactly the file that an O_PATH descriptor holds, through /proc/self/fd. A descriptor or -errno;
 * -EOPNOTSUPP where there is no /proc. */
int descriptor_reopen(int path_fd, int flags);

/* "a directory", "a FIFO", … */
const char *mode_type_text(mode_t mode);

/* Linux. Closes all from `first` to `last`, one by one where close_range(2) is missing or fails: then none from 65536 on. */
void descriptor_close_range(unsigned first, unsigned last);

/* May this process have so many open? RLIMIT_NOFILE of getrlimit(2). */
bool descriptor_allowed(unsigned count);
