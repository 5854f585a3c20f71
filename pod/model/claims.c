#include "pod/model/claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is kept: this, and the claims as they are in memory. */
struct head {
	char made_by[16];
	uint64_t count, sum;
};
static const char made_by[16] = "pod claims 1";

void claims_free(struct claims *claims)
{
	free(claims->v);
	*claims = (struct claims){0};
}

static int by_inode(const void *one, const void *other)
{
	uint64_t a = ((const struct claim *)one)->stamp.inode, b = ((const struct claim *)other)->stamp.inode;
	return a < b ? -1 : a > b;
}

void claims_sort(struct claims *claims)
{
	if (claims->n)
		qsort(claims->v, claims->n, sizeof *claims->v, by_inode);
}

const struct claim *claims_find(const struct claims *claims, const struct stamp *stamp)
{
	struct claim wanted = {.stamp = *stamp};
	const struct claim *found = claims->n ? bsearch(&wanted, claims->v, claims->n, sizeof wanted, by_inode) : NULL;
	bool same = found && found->stamp.changed_ns == stamp->changed_ns && found->stamp.bytes == stamp->bytes;
	return same ? found : NULL;
}

/* FNV-1a over words of eight bytes: that it was written whole, not who wrote it. */
static uint64_t sum_of(const struct claim *claims, size_t n)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325), word;
	const char *bytes = (const char *)claims;
	for (size_t i = 0; i + sizeof word <= n * sizeof *claims; i += sizeof word) {
		memcpy(&word, bytes + i, sizeof word);
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
	}
	return sum;
}

int claims_render(const struct claims *claims, char **ret_bytes, size_t *ret_len, struct err *err)
{
	struct head head = {.count = claims->n, .sum = sum_of(claims->v, claims->n)};
	size_t body = claims->n * sizeof *claims->v;
	char *bytes = malloc(sizeof head + body);
	if (!bytes)
		return err_code(err, -ENOMEM, "claims", NULL);
	memcpy(head.made_by, made_by, sizeof made_by);
	memcpy(bytes, &head, sizeof head);
	if (body)
		memcpy(bytes + sizeof head, claims->v, body);
	*ret_bytes = bytes;
	*ret_len = sizeof head + body;
	return 0;
}

static bool can_be(const struct claim *claim)
{
	return claim->port >= 0 && claim->port <= 65535 && memchr(claim->root, 0, sizeof claim->root);
}

int claims_parse(const char *bytes, size_t len, struct claims *ret_claims, struct err *err)
{
	struct head head;
	if (len < sizeof head)
		return err_code(err, -EINVAL, "claims", NULL);
	memcpy(&head, bytes, sizeof head);
	size_t body = len - sizeof head;
	if (memcmp(head.made_by, made_by, sizeof made_by) != 0 || body % sizeof(struct claim) || head.count != body / sizeof(struct claim))
		return err_code(err, -EINVAL, "claims", NULL);
	struct claims claims = {.v = malloc(body + 1), .n = head.count};
	if (!claims.v)
		return err_code(err, -ENOMEM, "claims", NULL);
	memcpy(claims.v, bytes + sizeof head, body);
	bool whole = sum_of(claims.v, claims.n) == head.sum;
	for (size_t i = 0; whole && i < claims.n; i++)
		whole = can_be(&claims.v[i]);
	if (!whole) {
		claims_free(&claims);
		return err_code(err, -EINVAL, "claims", NULL);
	}
	claims_sort(&claims);
	*ret_claims = claims;
	return 0;
}
