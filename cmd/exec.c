#include "cmd/pod_of.h"
#include "cmd/print.h"
#include "pod/lifecycle/boot.h"
#include "pod/model/refusal.h"

static int run_exec(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_PASSAGE struct passage passage = PASSAGE_NONE;
	struct pod_name name;
	if (!arguments->command_count)
		return refuse(err, REFUSAL_USAGE, "exec", "the command stands after `--`");
	int r = argument_name(arguments, 0, &name, err);
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	if (r == 0)
		r = passage_for_command(&session, &name, arguments->command, arguments->command_count, &passage, err);
	if (r == 0)
		r = passage_enter(&passage, err);
	if (r < 0)
		return r;
	(void)passage_go(&passage, err);
	return print_not_runnable(err);
}

const struct verb verb_exec = {
	.name = "exec",
	.operands = "NAME -- CMD ARG...",
	.summary = "Run a command in the pod's environment and workspace; its status is passed on",
	.details = "The status is 127 for a command that is not there and 126 for one that cannot be executed.",
	.names_min = 1,
	.names_max = 1,
	.command = true,
	.run = run_exec,
};
