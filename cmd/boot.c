#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/lifecycle/boot.h"

static int run_boot(const struct arguments *arguments, struct err *err)
{
	AUTO_BOOT struct boot boot = BOOT_NONE;
	int r = boot_prepare(arguments->config, arguments->names[0], &boot, err);
	for (size_t i = 0; i < boot.lines.n; i++)
		print_note("%s", boot.lines.v[i]);
	size_t said = boot.lines.n;
	if (r == 0)
		(void)boot_go(&boot, err);
	int status = boot_end(&boot, err);
	print_err(err);
	for (size_t i = said; i < boot.lines.n; i++)
		print_note("%s", boot.lines.v[i]);
	return status;
}

const struct verb verb_boot = {
	.name = "_run",
	.operands = "NAME",
	.summary = "Boot a pod; started by a service manager",
	.names_min = 1,
	.names_max = 1,
	.internal = true,
	.run = run_boot,
};
