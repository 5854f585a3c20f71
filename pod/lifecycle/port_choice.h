/* Which port a pod gets (contract, section 4). The caller holds the plane lock. */
#pragma once

#include "pod/lifecycle/session.h"
#include "pod/model/port.h"

/* Sets spec->port and port_auto. `avoid` are ports that were lost in a race. *ret_moved: the former or preferred port was not to be had. */
int port_choose(struct session *session, const struct pod_name *name, const struct port_set *avoid, struct spec *spec, bool *ret_moved, struct err *err);
bool port_is_taken(int port); /* somebody listens there now */
