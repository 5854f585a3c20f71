#include <string.h>

#include "cmd/print.h"
#include "cmd/progress.h"
#include "cmd/verbs.h"
#include "pod/lifecycle/down.h"
#include "pod/model/refusal.h"

static void cleanup_pruned(struct pruned *pruned) { pruned_free(pruned); }

static struct json *pod_json(const struct pruned_pod *pod, bool dry_run)
{
	char sentence[4608] = "";
	struct json *object = json_new_object();
	if (pod->failed.code)
		err_sentence(&pod->failed, sentence, sizeof sentence);
	if (object) {
		(void)json_set(object, "name", json_new_string(pod->name.text));
		(void)json_set(object, "status", json_new_string(pod->failed.code ? "failed" : dry_run ? "would go" : "gone"));
		(void)json_set(object, "age_s", json_new_integer(pod->age_s));
		(void)json_set(object, "reason", *sentence ? json_new_string(sentence) : json_new_null());
	}
	return object;
}

static int tell(const struct pruned *pruned, bool dry_run, bool json)
{
	int status = EXIT_DONE;
	struct json *array = json ? json_new_array() : NULL;
	for (size_t i = 0; i < pruned->n; i++) {
		const struct pruned_pod *pod = &pruned->v[i];
		if (pod->failed.code) {
			status = EXIT_FAILED;
			print_err(&pod->failed);
		} else if (!json) {
			print_out("%s: %s\n", pod->name.text, dry_run ? "would go" : "gone");
		}
		if (json)
			(void)json_append(array, pod_json(pod, dry_run));
	}
	if (json)
		print_json(array);
	else if (!pruned->n)
		print_note("there is nothing to prune");
	return status;
}

static int run_prune(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	__attribute__((cleanup(cleanup_pruned))) struct pruned pruned = {0};
	struct progress_line line;
	struct prune_options options = {.older_than_secs = 3L * 86400, .dry_run = arguments->value[FLAG_DRY_RUN]};
	if (arguments->value[FLAG_ALL] && arguments->value[FLAG_OLDER_THAN])
		return refuse(err, REFUSAL_USAGE, "prune", "--all and --older-than exclude each other");
	int r = arguments->value[FLAG_OLDER_THAN] ? argument_age(arguments->value[FLAG_OLDER_THAN], &options.older_than_secs, err) : 0;
	if (arguments->value[FLAG_ALL])
		options.older_than_secs = 0;
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	if (r == 0) {
		progress_begin(&line, &session);
		r = prune(&session, options, &pruned, err);
		progress_end(&line);
	}
	return r < 0 ? r : tell(&pruned, options.dry_run, arguments->value[FLAG_JSON]);
}

const struct verb verb_prune = {
	.name = "prune",
	.operands = "",
	.summary = "Take away every dead pod that is old enough",
	.details = "Dead is what does not run, start or wait for a restart: orphans, unfinished, stopped, failed and refused pods.",
	.flags = FLAG(OLDER_THAN) | FLAG(ALL) | FLAG(DRY_RUN) | FLAG(JSON),
	.run = run_prune,
};
