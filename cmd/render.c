#include <string.h>

#include "cmd/pod_of.h"
#include "cmd/print.h"
#include "fsops/cleanup.h"
#include "pod/lifecycle/up.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_text.h"

static int render_systemd(const struct unit_input *input, const struct spec *spec, struct err *err)
{
	AUTO_FREE char *template = NULL, *drop_in = NULL;
	int r = unit_text_template(input, &template, err);
	if (r == 0)
		r = unit_text_drop_in(spec, &drop_in, err);
	if (r < 0)
		return r;
	print_out("%s", template);
	if (drop_in)
		print_out("\n%s", drop_in);
	return EXIT_DONE;
}

static int render_launchd(const struct unit_input *input, const struct pod_name *name, struct err *err)
{
	AUTO_FREE char *plist = NULL;
	int r = unit_text_plist(input, name, &plist, err);
	if (r == 0)
		print_out("%s", plist);
	return r < 0 ? r : EXIT_DONE;
}

/* Of a pod that is not recorded, the unit that it would get. */
static int run_render(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_SPEC struct spec spec = {0};
	struct err unknown = {0};
	struct pod_name name;
	const char *manager = arguments->value[FLAG_FOR];
	int r = argument_name(arguments, 0, &name, err);
	if (r < 0)
		return r;
	if (!manager || (strcmp(manager, "systemd") != 0 && strcmp(manager, "launchd") != 0))
		return refuse(err, REFUSAL_USAGE, manager ? manager : "render", "--for takes systemd or launchd");
	r = pod_of(arguments, &session, &name, &spec, &unknown);
	if (r < 0 && unknown.refusal != REFUSAL_NO_SUCH_POD)
		return *err = unknown, r;
	struct unit_input input = {.plane = &session.around.plane,
				   .program = session.around.program,
				   .config_file = session.context.config_file,
				   .log_directory = session.around.plane.artifacts,
				   .stop_secs = STOP_SECS_DEFAULT};
	if (strcmp(manager, "launchd") == 0)
		return render_launchd(&input, &name, err);
	input.log_directory = NULL;
	return render_systemd(&input, &spec, err);
}

const struct verb verb_render = {
	.name = "render",
	.operands = "NAME --for MANAGER",
	.summary = "Print the unit of a pod; changes nothing",
	.flags = FLAG(FOR),
	.names_min = 1,
	.names_max = 1,
	.run = run_render,
};
