/* What the records of the pods claim of the plane. Read as any record is: no-follow, never blocking; one that cannot be read claims nothing. */
#pragma once

#include "pod/lifecycle/session.h"
#include "pod/model/port.h"

/* Adds the ports of all `but` one (NULL: of all) to *claimed. Fails as session_check_root does when one of them has its home in another root than
 * is there now. `plane`: the plane's lock, which remembers what was read (claims_file.h), or NULL. */
int peers_look(struct session *session, const struct pod_name *but, const struct lock *plane, struct port_set *claimed, struct err *err);
