/* Can the pod's agent start? It is run as a child of the gateway would be (resolution, environment, sandbox) and asked `initialize` of the
 * Agent Client Protocol; it is viable at the first valid answer, not after a wait (contract, section 8). Whatever it started is gone
 * when the call returns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/environment.h"
#include "pod/model/plane.h"
#include "pod/model/text.h"
#include "pod/system/sandbox.h"

#define VIABILITY_LIMIT_MS 20000

/* The rows of the contract's table. The first three are viable, the latter two of them with a warning. */
enum verdict { VERDICT_VIABLE, VERDICT_SILENT, VERDICT_EXITED, VERDICT_SIGNED_OUT, VERDICT_DEAD, VERDICT_UNAVAILABLE, VERDICTS };
const char *verdict_name(enum verdict verdict); /* "viable" "viable" "viable" "signed-out" "dead" "unavailable" */
bool verdict_warns(enum verdict verdict);       /* the detail is for stderr although boot goes on */

struct viability_input {
	const struct words *exec;              /* `[agent] exec`, placeholders filled */
	const struct environment *environment; /* environment_for_agent's */
	const char *cwd;
	const struct pin *home;
	const char *home_path;
	const struct sandbox_program *sandbox;
	const char *signed_out; /* a further text of its login gate, or NULL */
	int64_t limit_ms;       /* VIABILITY_LIMIT_MS, or `[agent] timeout` */
};

struct viability {
	enum verdict verdict;
	char detail[4096];           /* one escaped line; of DEAD: status, argv[0], HOME and the last 500 characters of stderr */
	char child[PLANE_PATH_MAX];  /* what was executed, its links left alone; "" when there is no such command */
	char home[PLANE_PATH_MAX];   /* the child's HOME */
	int64_t ms;                  /* until the verdict was known */
};

/* A verdict is success, also DEAD. Failure is ours: memory, descriptors, or something of the agent's that cannot be ended. */
int viability_probe(const struct viability_input *input, struct viability *ret_viability, struct err *err);
/* The refusal that a DEAD agent is at boot (REFUSAL_AGENT_DEAD); returns -EPERM. */
int viability_refuse(const struct viability *viability, struct err *err);
