#include <errno.h>

#include "cmd/log_filter.h"
#include "cmd/pod_of.h"
#include "cmd/print.h"
#include "pod/model/refusal.h"

static int copy_log(struct service *service, const struct pod_name *name, unsigned lines, bool follow, struct err *err)
{
	struct log_filter filter;
	int r = log_filter_start(&filter, err);
	if (r < 0)
		return r;
	r = service->ops->logs(service, name, lines, follow, filter.to, err);
	log_filter_end(&filter);
	return r;
}

static int run_logs(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_SPEC struct spec spec = {0};
	struct service *service = NULL;
	struct pod_name name;
	int lines = 100;
	int r = argument_number(arguments, FLAG_LINES, 0, 1000000, 100, &lines, err);
	if (r == 0)
		r = pod_of(arguments, &session, &name, &spec, err);
	if (r == 0)
		r = session_service(&session, spec.backend, &service, err);
	if (r == 0)
		r = copy_log(service, &name, (unsigned)lines, arguments->value[FLAG_FOLLOW], err);
	if (r == -ENOENT)
		print_note("%s has no log yet", name.text);
	return r < 0 && r != -ENOENT ? r : EXIT_DONE;
}

const struct verb verb_logs = {
	.name = "logs",
	.operands = "NAME",
	.summary = "What the pod wrote",
	.flags = FLAG(LINES) | FLAG(FOLLOW),
	.names_min = 1,
	.names_max = 1,
	.run = run_logs,
};
