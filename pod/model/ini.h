/* Configuration files, read through inih with its silent cuts (199-byte lines, 49-byte section names) bounded and refused first.
 * Unknown section or key, a duplicate, a line that would be cut, a NUL: one error naming file, line and key (REFUSAL_BAD_CONFIG). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "pod/model/plane.h"

enum ini_scope {
	INI_SCOPE_OPERATOR, /* --config, XDG, /etc: all sections */
	INI_SCOPE_CHECKOUT, /* kirocrew-pod.ini of a checkout: [payload] [agent] [identity …], never [plane] */
};

struct ini_identity {
	char name[64];
	char *source, *staged;
};

struct ini {
	char *file;                 /* where [plane] was read, for messages; NULL: nowhere */
	char *plane[PLANE_SETTINGS]; /* by enum plane_setting; NULL: unset */
	char *payload_exec, *payload_health, *payload_memory_max, *payload_cpu_quota, *payload_stop_secs;
	char *agent_exec, *agent_timeout, *agent_signed_out;
	struct ini_identity *identities;
	size_t identity_count;
};
/* `file` is only for messages. */
int ini_read(const char *file, const char *text, size_t len, enum ini_scope scope, struct ini *ret_ini, struct err *err);
/* Values of `over` win; `over` is emptied. Identities are joined, the same name in `over` wins. */
int ini_merge(struct ini *base, struct ini *over, struct err *err);
void ini_free(struct ini *ini);
#define AUTO_INI __attribute__((cleanup(ini_free)))
