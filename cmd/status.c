#include <errno.h>

#include "cmd/print.h"
#include "cmd/screen.h"
#include "cmd/sight.h"
#include "cmd/verbs.h"
#include "pod/model/refusal.h"

/* The whole reason, however long. */
static int print_line(const struct sight *sight, struct err *err)
{
	AUTO_TABLE struct table table = sight_table();
	struct screen screen = screen_look();
	if (sight_row(&table, sight) < 0)
		return err_code(err, -ENOMEM, "status", NULL);
	table_print(&table, &screen, false, 0);
	return EXIT_DONE;
}

static int run_status(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_SIGHT struct sight sight = {0};
	struct pod_name name;
	int r = argument_name(arguments, 0, &name, err);
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	if (r == 0)
		r = look_one(&session, &name, (struct look_options){.deep = true}, &sight, err);
	if (r < 0)
		return r;
	if (!pod_exists(&sight.facts))
		return refuse(err, REFUSAL_NO_SUCH_POD, name.text, NULL);
	if (!arguments->value[FLAG_JSON])
		return print_line(&sight, err);
	print_json(sight_json(&session, &sight));
	return EXIT_DONE;
}

const struct verb verb_status = {
	.name = "status",
	.operands = "NAME",
	.summary = "The truth about one pod",
	.flags = FLAG(JSON),
	.names_min = 1,
	.names_max = 1,
	.run = run_status,
};
