#include "pod/lifecycle/intent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fsops/cleanup.h"
#include "pod/model/environment.h"
#include "pod/model/port.h"
#include "pod/model/refusal.h"
#include "pod/system/command.h"
#include "pod/system/records.h"
#include "pod/system/seeds.h"
#include "pod/system/worktree.h"

struct intent {
	struct session *session;
	const struct up_request *request;
	struct ini *settings; /* the operator's, the checkout's on top */
	struct spec spec;
};

static void cleanup_intent(struct intent *intent)
{
	spec_free(&intent->spec);
}

static int absolute(const struct session *session, const char *text, char out[PLANE_PATH_MAX], struct err *err)
{
	const struct surroundings *around = &session->around;
	return path_absolute(text, around->plane.home, *around->cwd ? around->cwd : NULL, out, err);
}

static int find_checkout(struct intent *in, struct err *err)
{
	const struct up_request *request = in->request;
	char path[PLANE_PATH_MAX];
	int r = 0;
	if (request->checkout)
		r = absolute(in->session, request->checkout, path, err);
	else if (in->spec.checkout || in->spec.exec.n || request->command_count)
		return 0;
	else
		r = worktree_find(&in->session->around.plane, &request->name, path, sizeof path, err);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : spec_set_text(&in->spec.checkout, path, err);
}

static int read_settings(struct intent *in, struct err *err)
{
	AUTO_INI struct ini own = {0};
	if (!in->spec.checkout)
		return 0;
	int r = checkout_ini_read(in->spec.checkout, &own, err);
	return r < 0 ? r : ini_merge(in->settings, &own, err);
}

/* Words after `--`, else what is recorded, else the INI's [payload] exec, else the checkout's gateway. */
static int choose_command(struct intent *in, struct err *err)
{
	struct words chosen = {0};
	int r = 0;
	if (in->request->command_count)
		r = words_copy(in->request->command, in->request->command_count, &chosen, err);
	else if (in->request->checkout && !in->settings->payload_exec)
		r = words_copy(NULL, 0, &chosen, err);
	else if (in->spec.exec.n || (in->spec.checkout && !in->settings->payload_exec))
		return 0;
	else if (in->settings->payload_exec)
		r = words_split(in->settings->payload_exec, &chosen, err);
	if (r < 0)
		return err_prepend(err, "the payload's words");
	words_free(&in->spec.exec);
	in->spec.exec = chosen;
	return 0;
}

static int fill_words(const struct words *words, const struct spec *spec, const struct pod_name *name, const struct pod_paths *paths,
		      struct words *ret_words, struct err *err)
{
	char port[16];
	(void)snprintf(port, sizeof port, "%d", spec->port);
	struct placeholders values = {.port = port, .home = paths->home, .os_home = paths->os_home, .name = name->text};
	return words_fill(words, &values, ret_words, err);
}

/* A command is found on the caller's PATH now and recorded absolute, so that the boot runs the same one. */
static int resolve_command(struct intent *in, struct err *err)
{
	const struct surroundings *around = &in->session->around;
	const struct words command = {.v = in->spec.exec.v, .n = in->spec.exec.n ? 1 : 0};
	char found[PLANE_PATH_MAX];
	struct pod_paths paths;
	struct err why = {0};
	AUTO_WORDS struct words filled = {0};
	if (command.n == 0)
		return 0;
	int r = pod_paths_make(&around->plane, &in->request->name, &paths, err);
	if (r == 0)
		r = fill_words(&command, &in->spec, &in->request->name, &paths, &filled, err);
	if (r < 0)
		return r;
	if (command_find(filled.v[0], around->path ? around->path : around->plane.path, around->cwd, found, sizeof found, &why) < 0)
		return refuse(err, REFUSAL_NOT_PROVISIONED, filled.v[0], "%s", why.text);
	char *copy = word_without_placeholders(found);
	if (!copy)
		return err_code(err, -ENOMEM, "payload", NULL);
	free(in->spec.exec.v[0]);
	in->spec.exec.v[0] = copy;
	return 0;
}

static int take_text(const char *what, const char *text, bool (*valid)(const char *), char *out, size_t size, struct err *err)
{
	if (!text)
		return 0;
	if (!valid(text) || strlen(text) >= size)
		return refuse(err, REFUSAL_USAGE, text, "%s", what);
	(void)snprintf(out, size, "%s", text);
	return 0;
}

static const char *first(const char *flag, const char *recorded, const char *setting)
{
	return flag ? flag : *recorded ? NULL : setting;
}

static int choose_limits(struct intent *in, struct err *err)
{
	const struct up_request *request = in->request;
	struct spec *spec = &in->spec;
	int r = take_text("not a memory limit: use a size such as 512M or 4G", first(request->memory_max, spec->memory_max, in->settings->payload_memory_max),
			  memory_max_valid, spec->memory_max, sizeof spec->memory_max, err);
	if (r == 0)
		r = take_text("not a processor quota: use a percentage such as 150%", first(request->cpu_quota, spec->cpu_quota, in->settings->payload_cpu_quota),
			      cpu_quota_valid, spec->cpu_quota, sizeof spec->cpu_quota, err);
	if (r == 0)
		r = take_text("not a number of seconds", first(NULL, spec->stop_secs, in->settings->payload_stop_secs), stop_secs_valid, spec->stop_secs,
			      sizeof spec->stop_secs, err);
	return r;
}

static int choose_approval(struct intent *in, struct err *err)
{
	const char *text = in->request->approval;
	static const struct {
		const char *name;
		enum approval approval;
	} known[] = {{"reads", APPROVAL_READS}, {"yolo", APPROVAL_YOLO}, {"interactive", APPROVAL_INTERACTIVE}};
	for (size_t i = 0; text && i < sizeof known / sizeof *known; i++)
		if (strcmp(text, known[i].name) == 0) {
			in->spec.approval = known[i].approval;
			return 0;
		}
	return text ? refuse(err, REFUSAL_USAGE, text, "--approval is one of reads, yolo, interactive") : 0;
}

/* The same grammar as in the record and the INI, but here the fault is in the command line. */
static int of_command_line(int r, struct err *err)
{
	if (r < 0 && err->refusal == REFUSAL_BAD_CONFIG)
		err->refusal = REFUSAL_USAGE;
	return r;
}

static int choose_port(struct intent *in, struct err *err)
{
	if (!in->request->port)
		return 0;
	in->spec.port_auto = false;
	return of_command_line(port_parse(in->request->port, &in->spec.port, err), err);
}

static int choose_health(struct intent *in, struct err *err)
{
	struct spec *spec = &in->spec;
	const char *text = in->request->health ? in->request->health : in->request->command_count || !*spec->id ? in->settings->payload_health : NULL;
	if (text) {
		int r = health_parse(text, &spec->health, err);
		return in->request->health ? of_command_line(r, err) : r;
	}
	bool kept = *spec->id && !in->request->command_count && !in->request->checkout;
	if (!kept)
		health_default(spec, &spec->health);
	return 0;
}

static bool is_directory_seed(const char *seed)
{
	return strchr(seed, '/') || seed[0] == '~' || seed[0] == '.';
}

static int choose_seed(struct intent *in, struct err *err)
{
	const char *seed = in->request->seed;
	if (!seed)
		return 0;
	char path[PLANE_PATH_MAX];
	int r = is_directory_seed(seed) ? absolute(in->session, seed, path, err) : 0;
	if (r == 0)
		r = spec_set_text(&in->spec.seed, is_directory_seed(seed) ? path : seed, err);
	return r < 0 ? r : seed_check(in->spec.seed ? in->spec.seed : "", err);
}

static int choose_identity(struct intent *in, struct err *err)
{
	if (*in->spec.id)
		return 0;
	if (!in->spec.created)
		in->spec.created = (int64_t)time(NULL);
	return id_new(in->spec.id, err);
}

static int payload_is_there(struct intent *in, struct err *err)
{
	const struct surroundings *around = &in->session->around;
	if (in->spec.exec.n == 0 && !in->spec.checkout)
		return refuse(err, REFUSAL_NO_PAYLOAD, in->request->name.text, "no worktree of %s has this name", around->plane.repo);
	AUTO_WORDS struct words argv = {0};
	AUTO_ENVIRONMENT struct environment environment = {0};
	struct pod_paths paths;
	int r = pod_paths_make(&around->plane, &in->request->name, &paths, err);
	if (r == 0)
		r = payload_argv(&in->spec, &in->request->name, &paths, &argv, err);
	/* What boot would refuse is refused while nothing is made yet. */
	return r < 0 ? r : environment_of_pod(&around->plane, &in->request->name, &in->spec, &paths, &environment, err);
}

int intent_make(struct session *session, const struct up_request *request, const struct spec *recorded, struct spec *ret_spec, struct err *err)
{
	__attribute__((cleanup(cleanup_intent))) struct intent in = {.session = session, .request = request, .settings = &session->around.ini};
	static int (*const steps[])(struct intent *, struct err *) = {
		find_checkout, read_settings,  choose_command, resolve_command, choose_limits,    choose_approval,
		choose_port,   choose_health, choose_seed,    choose_identity, payload_is_there,
	};
	int r = spec_copy(recorded, &in.spec, err);
	for (size_t i = 0; r >= 0 && i < sizeof steps / sizeof *steps; i++)
		r = steps[i](&in, err);
	if (r < 0)
		return r;
	in.spec.crons |= request->crons;
	in.spec.embeddings = in.spec.embeddings && !request->no_embeddings;
	*ret_spec = in.spec;
	in.spec = (struct spec){0};
	return 0;
}

int payload_argv(const struct spec *spec, const struct pod_name *name, const struct pod_paths *paths, struct words *ret_argv, struct err *err)
{
	char gateway[PLANE_PATH_MAX + 32], found[PLANE_PATH_MAX + 32];
	(void)snprintf(gateway, sizeof gateway, "%s/.venv/bin/kirocrew", spec->checkout ? spec->checkout : "");
	char *kirocrew[] = {gateway, (char[]){"gateway"}};
	AUTO_WORDS struct words words = {0};
	int r = spec->exec.n ? fill_words(&spec->exec, spec, name, paths, &words, err) : words_copy(kirocrew, 2, &words, err);
	if (r < 0)
		return r;
	struct err why = {0};
	if (command_find(words.v[0], "", "/", found, sizeof found, &why) < 0)
		return refuse(err, REFUSAL_NOT_PROVISIONED, words.v[0], "%s", why.text);
	*ret_argv = words;
	words = (struct words){0};
	return 0;
}
