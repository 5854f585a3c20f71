#include <errno.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/screen.h"
#include "cmd/sight.h"
#include "cmd/verbs.h"
#include "pod/model/refusal.h"

/* What is to be shown. */
struct choice {
	const struct arguments *arguments;
	bool states[POD_STATES]; /* of them if any is set */
	bool any_state;
};

static int choose_state(struct choice *choice, const char *word, struct err *err)
{
	for (int state = 0; state < POD_STATES; state++)
		if (strcmp(pod_state_name((enum pod_state)state), word) == 0) {
			choice->states[state] = choice->any_state = true;
			return 0;
		}
	return refuse(err, REFUSAL_USAGE, word, "a state is one of up, starting, restarting, failed, refused, foreign, stopped, orphan, unfinished");
}

static int choose(const struct arguments *arguments, struct choice *ret_choice, struct err *err)
{
	struct choice choice = {.arguments = arguments};
	struct pod_name name;
	int r = 0;
	for (size_t i = 0; r == 0 && i < arguments->name_count; i++)
		r = argument_name(arguments, i, &name, err);
	for (size_t i = 0; r == 0 && i < arguments->repeated_count; i++)
		r = choose_state(&choice, arguments->repeated[i], err);
	if (r == 0)
		*ret_choice = choice;
	return r;
}

static bool is_named(const struct choice *choice, const char *name)
{
	for (size_t i = 0; i < choice->arguments->name_count; i++)
		if (strcmp(choice->arguments->names[i], name) == 0)
			return true;
	return choice->arguments->name_count == 0;
}

static bool is_chosen(const struct choice *choice, const struct sight *sight)
{
	return is_named(choice, sight->facts.name.text) && (!choice->any_state || choice->states[sight->state]);
}

static bool strangers_are_chosen(const struct choice *choice)
{
	return !choice->arguments->name_count && (!choice->any_state || choice->states[POD_FOREIGN]);
}

static void print_array(const struct session *session, const struct sights *sights, const struct choice *choice)
{
	struct json *array = json_new_array();
	for (size_t i = 0; array && i < sights->n; i++)
		if (is_chosen(choice, &sights->v[i]))
			(void)json_append(array, sight_json(session, &sights->v[i]));
	for (size_t i = 0; array && strangers_are_chosen(choice) && i < sights->stranger_count; i++)
		(void)json_append(array, stranger_json(session, sights->strangers[i]));
	print_json(array);
}

static int fill_table(const struct sights *sights, const struct choice *choice, struct table *table, struct err *err)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < sights->n; i++)
		if (is_chosen(choice, &sights->v[i]))
			r = sight_row(table, &sights->v[i]);
	for (size_t i = 0; r == 0 && strangers_are_chosen(choice) && i < sights->stranger_count; i++)
		r = stranger_row(table, sights->strangers[i]);
	return r < 0 ? err_code(err, r, "ls", NULL) : 0;
}

static int print_table(const struct session *session, const struct sights *sights, const struct choice *choice, struct err *err)
{
	AUTO_TABLE struct table table = sight_table();
	struct screen screen = screen_look();
	int r = fill_table(sights, choice, &table, err);
	if (r < 0)
		return r;
	if (table.count)
		table_print(&table, &screen, screen.terminal, 0);
	else if (!sights->n && !sights->stranger_count)
		print_note("there are no pods in %s", session->around.plane.root);
	else if (!choice->arguments->name_count)
		print_note("no pod is in that state");
	return 0;
}

static bool is_there(const struct sights *sights, const char *name)
{
	for (size_t i = 0; i < sights->n; i++)
		if (strcmp(sights->v[i].facts.name.text, name) == 0)
			return true;
	return false;
}

/* The others are shown all the same. */
static int missing_names(const struct sights *sights, const struct arguments *arguments)
{
	int status = EXIT_DONE;
	for (size_t i = 0; i < arguments->name_count; i++) {
		struct err none = {0};
		if (is_there(sights, arguments->names[i]))
			continue;
		(void)refuse(&none, REFUSAL_NO_SUCH_POD, arguments->names[i], NULL);
		print_err(&none);
		status = (int)err_exit_status(&none);
	}
	return status;
}

static int run_ls(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_SIGHTS struct sights sights = {0};
	struct choice choice = {0};
	int r = choose(arguments, &choice, err);
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	if (r == 0)
		r = look_all(&session, (struct look_options){0}, &sights, err);
	if (r < 0)
		return r;
	if (arguments->value[FLAG_JSON])
		print_array(&session, &sights, &choice);
	else
		r = print_table(&session, &sights, &choice, err);
	return r < 0 ? r : missing_names(&sights, arguments);
}

const struct verb verb_ls = {
	.name = "ls",
	.operands = "[NAME...]",
	.summary = "Every pod that has a record, a home, a unit or a note, one line each",
	.flags = FLAG(JSON) | FLAG(STATE),
	.names_max = 100000,
	.run = run_ls,
};
