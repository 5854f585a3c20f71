#include "cmd/verbs.h"
#include "pod/lifecycle/guard.h"

static int run_watch(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	struct pod_name name;
	int r = argument_name(arguments, 0, &name, err);
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	return r < 0 ? r : guard_watch(&session, &name, arguments->names[1], err);
}

const struct verb verb_watch = {
	.name = "_watch",
	.operands = "NAME ID",
	.summary = "Wait for the end of a pod's life and take it down; started by `up`",
	.names_min = 2,
	.names_max = 2,
	.internal = true,
	.run = run_watch,
};
