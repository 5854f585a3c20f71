/* What a directory in the root is, its birth included: that and its inode number tell it from another one of the same name. Part of home_look. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct home_stat {
	mode_t mode;
	uid_t uid;
	uint64_t ino, mount; /* mount: 0 unknown */
	bool has_birth;
	int64_t birth_secs, changed_secs;
	unsigned birth_nsecs;
};
/* Never follows a link or triggers a mount. `name` "" is the descriptor itself. 0 or -errno. */
int home_stat(int at, const char *name, struct home_stat *ret_stat);
