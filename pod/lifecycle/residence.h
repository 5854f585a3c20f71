/* Where a pod's children live: its record's meaning, its paths, its pinned home, the environments of payload and agent, the sandbox. For what is done with a
 * recorded pod from outside its unit: probe, `mcp`. */
#pragma once

#include "pod/lifecycle/session.h"
#include "pod/model/environment.h"
#include "pod/model/record.h"
#include "pod/system/sandbox.h"

struct residence {
	struct pod_name name;
	struct spec spec;
	struct pod_paths paths;
	struct pin home;
	struct environment payload, agent;
};
#define RESIDENCE_NONE ((struct residence){.home = PIN_NONE})
void residence_free(struct residence *residence);
#define AUTO_RESIDENCE __attribute__((cleanup(residence_free)))

/* REFUSAL_NO_SUCH_POD. REFUSAL_NOT_PROVISIONED: it has no home yet. REFUSAL_NOT_THE_POD: the home was replaced. The checkout's INI is laid over the session's. */
int residence_open(struct session *session, const struct pod_name *name, struct residence *ret_residence, struct err *err);

/* The environments, from this process's own. */
int residence_environment(const struct session *session, struct residence *residence, struct err *err);
