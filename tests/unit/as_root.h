/* What another user, a chosen pid or an immutable file is needed for stands in a group of its own: `PROGRAM as-root`, `PROGRAM immutable`. ctest calls
 * it unit/PROGRAM/WORD; tests/CMakeLists.txt says who can run which. */
#pragma once

#include <stdbool.h>
#include <string.h>

static inline bool asked_for(int argc, char **argv, const char *group)
{
	return argc > 1 && strcmp(argv[1], group) == 0;
}
