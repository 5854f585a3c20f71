/* Where the user manager of this uid can be reached, whether or not the environment says so. Part of the systemd backend. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"

#define MANAGER_ADDRESSES 3

struct manager_address {
	char text[512]; /* D-Bus address */
	char path[108]; /* of the socket; "": it is another kind of address, or longer than a socket's name may be */
	bool peer;      /* the manager's own socket: no broker, no names */
};
struct manager_addresses {
	struct manager_address v[MANAGER_ADDRESSES];
	size_t n;
};
/* In order: the manager's private socket, the bus beside it, the bus that the environment names; with `crowd` the bus comes first: on the private socket
 * every caller is sent every signal of every unit, so many callers at once cost their square. The runtime directory is XDG_RUNTIME_DIR when that
 * is absolute, else /run/user/<uid>. REFUSAL_NO_MANAGER when it belongs to another user or none of them is there. */
int manager_find(bool crowd, struct manager_addresses *ret_addresses, struct err *err);

/* The refusal for a manager that was found and does not answer: `why` is the negative errno. Returns -EPERM. */
int manager_refuse(int why, struct err *err);
