/* Does anybody use the home of a pod that has no unit? Asked before it is deleted, and before one that no record claims is taken over. */
#pragma once

#include "pod/lifecycle/session.h"
#include "pod/model/facts.h"

#define OCCUPANTS_MAX 512
/* 0: nobody. REFUSAL_IN_USE: a process in the home, one that was started for the generation which the home bears, or one that could be it on its
 * port; ret_occupants names them ("pid 12 (sh), pid 14 (nginx)", raw bytes), where they are known. Looks through all of /proc. */
int home_vacant(struct session *session, const struct pod_facts *facts, char ret_occupants[OCCUPANTS_MAX], struct err *err);
