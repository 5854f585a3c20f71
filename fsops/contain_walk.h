/* The walk behind fsops/contain.h: one path, component by component, links first and ".." afterwards, in the calling process. Internal to fsops. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "fsops/contain.h"

#define CONTAIN_DEPTH_MAX 8192
#define CONTAIN_TEXT_MAX ((CONTAIN_LINKS_MAX + 2) * CONTAIN_PATH_MAX) /* a path and all that its links may add */

struct contain_identity {
	dev_t dev;
	ino_t ino;
	uint64_t mount;
};

/* What differs between systems; all set errno. */
int contain_identify(int fd, struct contain_identity *ret_identity, mode_t *ret_type); /* -1 */
int contain_is_magic(int link); /* 1: a link of procfs, whose text does not say where it leads; 0; -1 */
ssize_t contain_link_text(int link, char *out, size_t size); /* readlink of the link that is held; -1 */
ssize_t contain_path_of(int fd, char out[CONTAIN_PATH_MAX]); /* where a held directory is, without a NUL; -1 */

/* Where a path leads. Large: allocate it, nothing in it is touched before it is needed. */
struct contain_place {
	enum contain_cause cause;
	char detail[160];
	size_t missing; /* components behind the deepest one that exists */
	size_t depth;   /* of chain: the root and every existing component below it */
	struct contain_identity chain[CONTAIN_DEPTH_MAX];
	size_t len;
	char text[CONTAIN_TEXT_MAX]; /* canonical, folded */
	char rest[CONTAIN_TEXT_MAX]; /* of the walk: what is still to be resolved, at the end of the buffer */
};
/* `path` is absolute and shorter than CONTAIN_PATH_MAX. Allocates nothing, so that it may run after a fork. */
void contain_walk(const char *path, struct contain_place *place);
