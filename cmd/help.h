/* Help text, printed from the verb table. */
#pragma once

#include "cmd/verbs.h"

void help_all(void);
void help_verb(const struct verb *verb);
