/* The floor of a seeded config.json (contract, section 7): no channel to the outside is on, the agent's sandbox is. Pure. */
#pragma once

#include <stddef.h>

#include "fsops/err.h"

/* What a blank KiroCrew pod gets. */
extern const char floor_blank_config[];

/* *ret_text is malloc'ed, the config with the floor laid over it; whatever else it says is kept. A section of the floor that is not an
 * object is replaced by one. -EINVAL: not JSON (line and column), or no object at the top. */
int floor_apply(const char *text, size_t len, char **ret_text, size_t *ret_len, struct err *err);
