#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/print.h"
#include "cmd/screen.h"
#include "cmd/sight.h"
#include "cmd/verbs.h"
#include "fsops/cleanup.h"
#include "pod/lifecycle/outlook.h"
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
	AUTO_JSON_LINE struct json_line line;
	json_line_begin(&line);
	for (size_t i = 0; i < sights->n; i++)
		if (is_chosen(choice, &sights->v[i]))
			json_line_add(&line, sight_json(session, &sights->v[i]));
	for (size_t i = 0; strangers_are_chosen(choice) && i < sights->stranger_count; i++)
		json_line_add(&line, stranger_json(session, sights->strangers[i]));
	json_line_print(&line);
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
	else if (!sights->n && !sights->stranger_count && !choice->arguments->name_count)
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

/* One look at it, with what is needed to wait for the next change. */
static int look(const struct arguments *arguments, struct session *session, struct outlook *outlook, struct sights *sights, struct err *err)
{
	int r = session_open(arguments->config, session, err);
	session->context.crowd = outlook != NULL; /* one who listens to all is not to hear of all that happens elsewhere */
	if (r == 0 && outlook)
		r = outlook_open(session, STDOUT_FILENO, outlook, err);
	return r < 0 ? r : look_all(session, (struct look_options){0}, sights, err);
}

static int print_sights(const struct session *session, const struct sights *sights, const struct choice *choice, struct err *err)
{
	if (!choice->arguments->value[FLAG_JSON])
		return print_table(session, sights, choice, err);
	print_array(session, sights, choice);
	return 0;
}

static int list_once(const struct arguments *arguments, const struct choice *choice, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_SIGHTS struct sights sights = {0};
	int r = look(arguments, &session, NULL, &sights, err);
	if (r == 0)
		r = print_sights(&session, &sights, choice, err);
	return r < 0 ? r : missing_names(&sights, arguments);
}

/* ---- watching ---- */

static void no_more_than_an_interruption(int signal)
{
	(void)signal;
}

static void hear_of_new_sizes(void)
{
	struct sigaction action = {.sa_handler = no_more_than_an_interruption};
	(void)sigaction(SIGWINCH, &action, NULL);
}

/* One for each keeper that is heard. */
static void allow_many_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int picture_draw(const struct session *session, const struct table *table, const struct screen *screen)
{
	size_t room = screen->height > 2 ? screen->height - 2 : 1;
	print_out("\033[H\033[2J");
	if (!table->count)
		print_out("there are no pods in %s\n", session->around.plane.root);
	else
		table_print(table, screen, true, room);
	if (table->count > room)
		print_out("+%zu more", table->count - room);
	return 0;
}

/* What is no terminal gets a picture only when it differs by more than the time that has passed. */
static int picture_show(char **last, const struct session *session, const struct sights *sights, const struct choice *choice, struct err *err)
{
	AUTO_TABLE struct table table = sight_table();
	struct screen screen = screen_look();
	int r = fill_table(sights, choice, &table, err);
	if (r < 0)
		return r;
	if (screen.terminal && !choice->arguments->value[FLAG_JSON])
		return picture_draw(session, &table, &screen);
	AUTO_FREE char *now = sight_substance(&table);
	if (!now)
		return err_code(err, -ENOMEM, "ls", NULL);
	if (*last && strcmp(*last, now) == 0)
		return 0;
	bool again = *last && !choice->arguments->value[FLAG_JSON];
	free(*last);
	*last = TAKE_PTR(now);
	if (again)
		print_out("\n");
	return print_sights(session, sights, choice, err);
}

/* Everything is opened anew for each picture, so that nothing that was moved, made or mended meanwhile is missed. */
static int list_and_wait(const struct arguments *arguments, const struct choice *choice, char **last, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_OUTLOOK struct outlook outlook = OUTLOOK_NONE;
	AUTO_SIGHTS struct sights sights = {0};
	int r = look(arguments, &session, &outlook, &sights, err);
	if (r == 0)
		r = picture_show(last, &session, &sights, choice, err);
	if (r == 0 && !print_flush())
		r = -EPIPE; /* nobody reads it any more */
	return r < 0 ? r : outlook_await(&session, &outlook, &sights, err);
}

static int list_for_ever(const struct arguments *arguments, const struct choice *choice, struct err *err)
{
	AUTO_FREE char *last = NULL;
	int r = 0;
	(void)setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* a picture at once */
	hear_of_new_sizes();
	allow_many_descriptors();
	while (r == 0)
		r = list_and_wait(arguments, choice, &last, err);
	return r == -EPIPE && !err->code ? EXIT_DONE : r;
}

static int run_ls(const struct arguments *arguments, struct err *err)
{
	struct choice choice = {0};
	int r = choose(arguments, &choice, err);
	if (r < 0)
		return r;
	return arguments->value[FLAG_WATCH] ? list_for_ever(arguments, &choice, err) : list_once(arguments, &choice, err);
}

const struct verb verb_ls = {
	.name = "ls",
	.operands = "[NAME...]",
	.summary = "Every pod that has a record, a home, a unit or a note, one line each",
	.details = "With --watch it is shown again when a pod comes, goes or changes; every second while one is on its way, and every 30 s for whether\n"
		   "the others still answer.",
	.flags = FLAG(JSON) | FLAG(STATE) | FLAG(WATCH),
	.names_max = 100000,
	.run = run_ls,
};
