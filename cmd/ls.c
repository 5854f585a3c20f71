#include "cmd/print.h"
#include "cmd/sight.h"
#include "cmd/verbs.h"
#include "pod/model/refusal.h"

static void print_array(const struct session *session, const struct sights *sights)
{
	struct json *array = json_new_array();
	for (size_t i = 0; array && i < sights->n; i++)
		(void)json_append(array, sight_json(session, &sights->v[i]));
	for (size_t i = 0; array && i < sights->stranger_count; i++)
		(void)json_append(array, stranger_json(session, sights->strangers[i]));
	print_json(array);
}

static void print_table(const struct sights *sights)
{
	sight_heading();
	for (size_t i = 0; i < sights->n; i++)
		sight_line(&sights->v[i]);
	for (size_t i = 0; i < sights->stranger_count; i++)
		stranger_line(sights->strangers[i]);
}

static int run_ls(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_SIGHTS struct sights sights = {0};
	int r = session_open(arguments->config, &session, err);
	if (r == 0)
		r = look_all(&session, (struct look_options){0}, &sights, err);
	if (r < 0)
		return r;
	if (arguments->value[FLAG_JSON])
		print_array(&session, &sights);
	else if (sights.n + sights.stranger_count)
		print_table(&sights);
	else
		print_note("there are no pods in %s", session.around.plane.root);
	return EXIT_DONE;
}

const struct verb verb_ls = {
	.name = "ls",
	.operands = "",
	.summary = "Every pod that has a record, a home, a unit or a note, one line each",
	.flags = FLAG(JSON),
	.run = run_ls,
};
