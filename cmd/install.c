#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/lifecycle/up.h"
#include "pod/model/refusal.h"

static int run_install(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	struct service *service = NULL;
	int r = session_open(arguments->config, &session, err);
	if (r == 0)
		r = session_make_plane(&session, err);
	if (r == 0)
		r = session_service(&session, BACKEND_AUTO, &service, err);
	if (r == 0)
		r = service->ops->install(service, &(struct service_unit){0}, err);
	if (r < 0)
		return r;
	print_out("root %s\npods dir %s\nbackend %s\nports %d to %d\n", session.around.plane.root, session.around.plane.pods_dir, service->ops->name,
		  session.around.plane.base_port + 1, session.around.plane.base_port + session.around.plane.port_span);
	return EXIT_DONE;
}

const struct verb verb_install = {
	.name = "install",
	.operands = "",
	.summary = "Make the plane's directories and its unit template; `up` does it by itself",
	.run = run_install,
};
