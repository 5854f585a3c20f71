/* What a new home begins with: a blank configuration, the config.json of a directory, or a scenario (contract, section 7). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "fsops/pin.h"

/* Published last, it says that a scenario is all there. */
#define SEED_MANIFEST "fixture.yaml"
#define SEED_CONFIG "config.json"
#define SCENARIO_NAME_MAX 63

struct scenario_listing {
	struct scenario {
		char name[SCENARIO_NAME_MAX + 1];
		char description[256]; /* raw bytes, "" none */
	} * v;			       /* sorted by name */
	size_t n;
};
void scenario_listing_free(struct scenario_listing *listing);
#define AUTO_SCENARIOS __attribute__((cleanup(scenario_listing_free)))

/* The scenarios that ship with the tool: $KIROCREW_POD_SCENARIOS, else share/kirocrew-pod/scenarios beside the directory of this program,
 * else the same in it (a build directory, which has a link there). -ENOENT: none of them is there. */
int scenarios_list(struct scenario_listing *ret_listing, struct err *err);

/* Before anything is made. `seed` is "", an absolute directory or a scenario name. REFUSAL_SEED: an unknown scenario (with the list), a
 * directory without a config.json that can be used. */
int seed_check(const char *seed, struct err *err);

/* At every boot, before the home is furnished. `home_path` fills {home} in kiro/settings/mcp.json. Idempotent once it is complete: a
 * config.json that is there is left alone, if it is a file (else REFUSAL_HOME). REFUSAL_SEED as above. REFUSAL_SEED_INCOMPLETE: a home with
 * something in it and without this scenario's manifest; it is never completed, repaired or overwritten. A command payload without a seed
 * gets nothing. */
int seed_apply(const struct pin *home, const char *home_path, const char *seed, bool kirocrew, struct err *err);
