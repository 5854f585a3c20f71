#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/progress.h"
#include "cmd/verbs.h"
#include "fsops/cleanup.h"
#include "pod/lifecycle/down.h"
#include "pod/lifecycle/look.h"
#include "pod/model/refusal.h"

struct outcome {
	const char *word; /* "gone", "nothing to stop", "failed" */
	bool failed;
	struct err err; /* when it failed */
};

static void print_left(const struct down_report *report)
{
	for (size_t i = 0; i < report->left.count && i < TREE_LEFT_NAMED; i++)
		print_note("left: %s: %s", report->left.named[i].path, strerror(-report->left.named[i].code));
	if (report->left.count > TREE_LEFT_NAMED)
		print_note("left: +%zu more", report->left.count - TREE_LEFT_NAMED);
}

static struct json *outcome_json(const char *name, const struct outcome *outcome)
{
	char sentence[4608] = "";
	struct json *object = json_new_object();
	if (outcome->failed)
		err_sentence(&outcome->err, sentence, sizeof sentence);
	if (object) {
		(void)json_set(object, "name", json_new_string(name));
		(void)json_set(object, "status", json_new_string(outcome->word));
		(void)json_set(object, "reason", *sentence ? json_new_string(sentence) : json_new_null());
	}
	return object;
}

/* One operand: a pod, or why it cannot be one. Judged before anything is opened. */
struct target {
	const char *word;
	struct pod_name name;
	struct outcome outcome;
};

static bool judge_words(char *const *words, size_t count, struct target *targets)
{
	bool any = false;
	for (size_t i = 0; i < count; i++) {
		struct target *target = &targets[i];
		target->word = words[i];
		target->outcome.failed = pod_name_parse(words[i], strlen(words[i]), &target->name, &target->outcome.err) < 0;
		any |= !target->outcome.failed;
	}
	return any;
}

static int down_one(struct session *session, struct target *target, struct down_options options)
{
	struct outcome *outcome = &target->outcome;
	struct down_report report = {0};
	struct progress_line line;
	if (!outcome->failed) {
		progress_begin(&line, session);
		outcome->failed = down(session, &target->name, options, &report, &outcome->err) < 0;
		progress_end(&line);
	}
	outcome->word = outcome->failed ? "failed" : report.nothing ? "nothing to stop" : "gone";
	if (!outcome->failed)
		return EXIT_DONE;
	print_err(&outcome->err);
	print_left(&report);
	return (int)err_exit_status(&outcome->err);
}

/* The gravest status of all, so that the order of the names does not matter. */
static int graver(int a, int b)
{
	return a > b ? a : b;
}

static void tell(bool json, struct json *array, const char *word, const struct outcome *outcome)
{
	if (json) {
		(void)json_append(array, outcome_json(word, outcome));
	} else if (!outcome->failed) {
		print_text(word, strlen(word));
		print_out(": %s\n", outcome->word);
	}
}

static int down_targets(struct session *session, struct target *targets, size_t count, struct down_options options, bool json)
{
	AUTO_JSON struct json *array = json_new_array();
	int status = EXIT_DONE;
	for (size_t i = 0; i < count; i++) {
		status = graver(status, down_one(session, &targets[i], options));
		tell(json, array, targets[i].word, &targets[i].outcome);
	}
	if (json)
		print_json(TAKE_PTR(array));
	return status;
}

static int every_name(struct session *session, struct words *ret_names, struct err *err)
{
	AUTO_SIGHTS struct sights sights = {0};
	AUTO_WORDS struct words names = {0};
	int r = look_all(session, (struct look_options){0}, &sights, err);
	for (size_t i = 0; r == 0 && i < sights.n; i++)
		if (!pod_is_stranger(&sights.v[i].facts))
			r = words_append(&names, sights.v[i].facts.name.text);
	if (r < 0)
		return r;
	*ret_names = names;
	names = (struct words){0};
	return 0;
}

static int down_words(struct session *session, const char *config, char *const *words, size_t count, struct down_options options, bool json,
		      struct err *err)
{
	AUTO_FREE struct target *targets = calloc(count + 1, sizeof *targets);
	if (!targets)
		return err_code(err, -ENOMEM, "down", NULL);
	int r = judge_words(words, count, targets) && !session->around.program[0] ? session_open(config, session, err) : 0;
	return r < 0 ? r : down_targets(session, targets, count, options, json);
}

static int down_all(struct session *session, const char *config, struct down_options options, bool json, struct err *err)
{
	AUTO_WORDS struct words all = {0};
	int r = session_open(config, session, err);
	if (r == 0)
		r = every_name(session, &all, err);
	return r < 0 ? r : down_words(session, config, all.v, all.n, options, json, err);
}

static int run_down(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	int secs = 0;
	bool everything = arguments->value[FLAG_ALL], json = arguments->value[FLAG_JSON];
	if (everything == (arguments->name_count > 0))
		return refuse(err, REFUSAL_USAGE, "down", "give names, or --all");
	int r = argument_number(arguments, FLAG_STOP_SECS, 1, 3600, 0, &secs, err);
	if (r < 0)
		return r;
	struct down_options options = {.stop_secs = (unsigned)secs};
	return everything ? down_all(&session, arguments->config, options, json, err)
			  : down_words(&session, arguments->config, arguments->names, arguments->name_count, options, json, err);
}

const struct verb verb_down = {
	.name = "down",
	.operands = "NAME...",
	.summary = "Take pods away: stopped, drained, deleted, verified",
	.details = "An unknown name is \"nothing to stop\", status 0. What cannot be removed is named, and the status is 1.",
	.flags = FLAG(ALL) | FLAG(STOP_SECS) | FLAG(JSON),
	.names_max = 100000,
	.run = run_down,
};
