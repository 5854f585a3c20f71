/* Which file we run from: the one part of the surroundings that every platform answers in its own way. */
#pragma once

#include "pod/model/plane.h"

/* Absolute and executable, or "". `cwd` (NULL: gone) is the working directory at the start. */
void surroundings_program(const char *cwd, char out[PLANE_PATH_MAX]);
