/* Scenario directories and their manifests. For pod/system/seeds.c alone. */
#pragma once

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/system/seeds.h"

/* The directory that holds them. -ENOENT. */
int scenarios_open(struct pin *ret_directory, struct err *err);
/* One of them. REFUSAL_SEED with the list when there is no such. */
int scenario_open(const char *name, struct pin *ret_scenario, struct err *err);
/* The manifest in `at`. -ENOENT: none; -EINVAL: without a usable fixture-name. */
int manifest_read(const struct pin *at, struct scenario *ret_scenario, struct err *err);
