#include <string.h>

#include "cmd/pod_of.h"
#include "cmd/print.h"
#include "fsops/cleanup.h"
#include "pod/model/environment.h"
#include "pod/model/refusal.h"

static int print_pairs(const struct environment *environment, struct err *err)
{
	for (size_t i = 0; i < environment->n; i++) {
		const char *equals = strchr(environment->v[i], '=');
		AUTO_FREE char *quoted = equals ? shell_quote(equals + 1) : NULL;
		if (!quoted)
			return err_set(err, -12, "env", NULL, "there is no memory");
		print_out("%.*s=%s\n", (int)(equals - environment->v[i]), environment->v[i], quoted);
	}
	return EXIT_DONE;
}

static int run_env(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_SPEC struct spec spec = {0};
	AUTO_ENVIRONMENT struct environment environment = {0};
	struct pod_paths paths;
	struct pod_name name;
	int r = pod_of(arguments, &session, &name, &spec, err);
	if (r == 0)
		r = pod_paths_make(&session.around.plane, &name, &paths, err);
	if (r == 0)
		r = environment_of_pod(&session.around.plane, &name, &spec, &paths, &environment, err);
	return r < 0 ? r : print_pairs(&environment, err);
}

const struct verb verb_env = {
	.name = "env", .operands = "NAME", .summary = "Print the pod's variables as KEY='value' lines for a shell", .names_min = 1, .names_max = 1, .run = run_env};
