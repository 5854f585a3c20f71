#include "cmd/verbs.h"
#include "pod/model/refusal.h"
#include "pod/system/keeper.h"

static int run_keep(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	struct pod_name name;
	int r = argument_name(arguments, 0, &name, err);
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	if (r == 0 && session.pods_dir.fd < 0)
		r = refuse(err, REFUSAL_NOT_PROVISIONED, name.text, "there is no pods dir %s", session.around.plane.pods_dir);
	return r < 0 ? r : keeper_main(&session.context, &name, err);
}

const struct verb verb_keep = {
	.name = "_keep",
	.operands = "NAME",
	.summary = "Supervise a pod where there is no service manager",
	.names_min = 1,
	.names_max = 1,
	.internal = true,
	.run = run_keep,
};
