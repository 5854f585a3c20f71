/* Ports: the preferred one from the name, the walk through the band, the grammar (contract, section 4). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/err.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"

uint32_t posix_cksum(const char *bytes, size_t len); /* cksum(1) */
int port_preferred(const struct plane *plane, const struct pod_name *name);
int port_parse(const char *text, int *ret_port, struct err *err); /* decimal digits only, 1..65535 */

struct port_set {
	uint64_t bits[1024];
};
void port_set_add(struct port_set *set, int port);
bool port_set_has(const struct port_set *set, int port);

/* The k-th candidate (0 .. span-1) upward from the preferred port, wrapping; 0 past the end. The live port and `taken` are skipped by the caller's loop
 * through port_next, which returns the next candidate not in `taken` and not live, advancing *step. */
int port_next(const struct plane *plane, const struct pod_name *name, const struct port_set *taken, int *step);
