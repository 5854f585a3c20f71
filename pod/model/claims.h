/* What records claim of the plane, as it was when they were read. A record that bears the same stamp still says the same. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/err.h"

/* Of a file: one that was written since has another. */
struct stamp {
	uint64_t inode;
	int64_t changed_ns; /* time of the last change of the inode, which nobody can set */
	int64_t bytes;
};
struct claim {
	struct stamp stamp;
	int port;      /* 0 none */
	char root[64]; /* ROOT_ID, "" none */
};
/* v is sorted by inode. Owned. */
struct claims {
	struct claim *v;
	size_t n;
};
void claims_free(struct claims *claims);
#define AUTO_CLAIMS __attribute__((cleanup(claims_free)))

void claims_sort(struct claims *claims);
const struct claim *claims_find(const struct claims *claims, const struct stamp *stamp); /* NULL none */
/* For this machine and this program only; malloc'ed. -ENOMEM. */
int claims_render(const struct claims *claims, char **ret_bytes, size_t *ret_len, struct err *err);
/* -EINVAL: it was not written to its end, or by another program, or says what no claim can. */
int claims_parse(const char *bytes, size_t len, struct claims *ret_claims, struct err *err);
