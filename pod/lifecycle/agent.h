/* The agent of a pod, and whether it can start. */
#pragma once

#include "pod/lifecycle/residence.h"
#include "pod/system/viability.h"

#define AGENT_DEFAULT "kiro-cli acp" /* where no INI names one */

/* A KiroCrew checkout has one; a command payload only if an INI names it. */
bool agent_expected(const struct spec *spec, const struct ini *settings);

/* Runs it as a child would be run: `[agent] exec`, the agent's environment, the workspace, the sandbox. */
int agent_probe(const struct residence *residence, const struct ini *settings, const struct sandbox_program *sandbox, struct viability *ret_viability,
		struct err *err);
