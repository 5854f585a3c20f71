#include "cmd/pod_of.h"
#include "cmd/print.h"
#include "pod/model/refusal.h"

static int run_url(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_SPEC struct spec spec = {0};
	struct pod_name name;
	int r = pod_of(arguments, &session, &name, &spec, err);
	if (r < 0)
		return r;
	print_out("http://127.0.0.1:%d\n", spec.port);
	return EXIT_DONE;
}

const struct verb verb_url = {
	.name = "url", .operands = "NAME", .summary = "Print the base URL of a pod", .names_min = 1, .names_max = 1, .run = run_url};
