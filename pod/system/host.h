/* What this host offers to pods: looked at, nothing is made or changed. credentials(7), cgroups(7), user_namespaces(7), loginctl(1). */
#pragma once

#include "pod/model/doctor.h"

/* Who we are, package manager, init, session manager, control groups, user namespaces, git: everything that needs no plane. Fills those
 * members only. What cannot be found out is left as absent. */
void host_look(struct host_facts *facts);

/* One directory of a plane by its absolute path; `check` and `variable` are the caller's. */
void place_look(struct place_facts *place);
