/* Which port a pod gets (contract, section 4). The caller holds the plane lock. */
#pragma once

#include "pod/model/port.h"
#include "pod/model/record.h"

/* Sets spec->port and port_auto. `taken`: the peers', and those that were lost in a race. *ret_moved: the former or preferred port was not to be had. */
int port_choose(const struct plane *plane, const struct pod_name *name, const struct port_set *taken, struct spec *spec, bool *ret_moved, struct err *err);
bool port_is_taken(int port); /* somebody listens there now */
