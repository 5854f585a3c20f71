/* What a unit must carry so that `_run` resolves the caller's plane; shared by both unit formats. Pure. */
#pragma once

#include "pod/model/environment.h"
#include "pod/model/plane.h"

int unit_environment(const struct plane *plane, enum backend backend, struct environment *ret_environment, struct err *err);
