#include "pod/system/viability.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fsops/cleanup.h"
#include "pod/model/refusal.h"
#include "pod/system/dialogue.h"
#include "pod/system/command.h"

#define INITIALIZE_ID 0
#define PROTOCOL_VERSION 1
#define START_MS 10000
#define END_MS 10000
#define TAIL_CHARACTERS 500

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[VERDICTS] = {"viable", "viable", "viable", "signed-out", "dead", "unavailable"};
	return verdict < VERDICTS ? names[verdict] : "dead";
}

bool verdict_warns(enum verdict verdict)
{
	return verdict != VERDICT_VIABLE && verdict != VERDICT_DEAD;
}

static char *initialize_request(void)
{
	struct json *params = json_new_object(), *can = json_new_object(), *files = json_new_object();
	int r = params && can && files ? 0 : -ENOMEM;
	if (r == 0)
		r = json_set(files, "readTextFile", json_new_bool(false)) | json_set(files, "writeTextFile", json_new_bool(false));
	if (r == 0) {
		r = json_set(params, "protocolVersion", json_new_integer(PROTOCOL_VERSION)) | json_set(can, "fs", files) |
		    json_set(params, "clientCapabilities", can);
		files = can = NULL;
	}
	if (r == 0)
		return jsonrpc_request(INITIALIZE_ID, "initialize", params);
	json_free(files);
	json_free(can);
	json_free(params);
	return NULL;
}

static bool is_login_gate(const struct tail *tail, const char *further)
{
	return tail_mentions(tail, "not logged in") || tail_mentions(tail, "kiro-cli login") || tail_mentions(tail, further);
}

static void say_dead(struct viability *v, const char *how, const char *argv0, const struct tail *complained)
{
	char tail[2600], word[600], home[600];
	tail_text(complained, TAIL_CHARACTERS, tail, sizeof tail);
	(void)text_escape(argv0, strlen(argv0), word, sizeof word);
	(void)text_escape(v->home, strlen(v->home), home, sizeof home);
	v->verdict = VERDICT_DEAD;
	(void)snprintf(v->detail, sizeof v->detail, "%s (argv[0] %s, HOME %s)%s%s", how, word, home, *tail ? ": " : "", tail);
}

static void judge_end(const struct viability_input *input, const struct dialogue *d, int status, struct viability *v)
{
	char how[96], text[64];
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		v->verdict = VERDICT_EXITED;
		(void)snprintf(v->detail, sizeof v->detail, "the agent ended with status 0 and did not answer");
		return;
	}
	status_text(status, text, sizeof text);
	(void)snprintf(how, sizeof how, "the agent ended with %s", text);
	if (WIFEXITED(status) && strncmp(text, "signal", 6) && (is_login_gate(&d->complained, input->signed_out) || is_login_gate(&d->said, input->signed_out))) {
		v->verdict = VERDICT_SIGNED_OUT;
		(void)snprintf(v->detail, sizeof v->detail, "the agent is not logged in (%s)", text);
		return;
	}
	char cause[600];
	bool not_started = exec_failed(&d->complained, v->child, cause, sizeof cause);
	say_dead(v, not_started ? cause : how, input->exec->v[0], &d->complained);
}

/* True when the event decides it. */
static bool judge_event(struct dialogue *d, const struct jsonrpc_event *event, struct viability *v)
{
	if (event->kind == JSONRPC_REQUEST)
		(void)dialogue_answer(d, event, NULL);
	if (!jsonrpc_answers(event, INITIALIZE_ID))
		return false;
	if (event->error) {
		char text[600];
		jsonrpc_error_text(event, text, sizeof text);
		v->verdict = VERDICT_SILENT;
		(void)snprintf(v->detail, sizeof v->detail, "the agent answered `initialize` with an error: %s", text);
		return true;
	}
	v->verdict = VERDICT_VIABLE;
	return json_kind(event->result) == JSON_KIND_OBJECT && json_kind(json_get(event->result, "protocolVersion")) == JSON_KIND_INTEGER;
}

static int converse(struct dialogue *d, struct deadline until, int64_t limit_ms, struct viability *v, bool *ret_ended, struct err *err)
{
	int r = dialogue_send(d, initialize_request(), err);
	while (r == 0) {
		AUTO_JSONRPC_EVENT struct jsonrpc_event event = {0};
		enum dialogue_turn turn = DIALOGUE_TIMEOUT;
		r = dialogue_next(d, until, &turn, &event, err);
		if (r < 0)
			return r;
		if (turn == DIALOGUE_EVENT && judge_event(d, &event, v))
			return 0;
		if (turn == DIALOGUE_TIMEOUT) {
			v->verdict = VERDICT_SILENT;
			(void)snprintf(v->detail, sizeof v->detail, "the agent did not answer `initialize` within %lld ms", (long long)limit_ms);
			return 0;
		}
		*ret_ended = turn == DIALOGUE_ENDED;
		if (*ret_ended)
			return 0;
	}
	return r;
}

static int ask(const struct viability_input *input, struct dialogue *d, int64_t begun, struct viability *v, struct err *err)
{
	bool ended = false;
	int status = 0;
	int r = converse(d, deadline_in_ms(input->limit_ms), input->limit_ms, v, &ended, err);
	v->ms = (monotonic_ns() - begun) / 1000000;
	int end = dialogue_end(d, deadline_in_ms(END_MS), &status, r < 0 ? NULL : err);
	if (r < 0 || end < 0)
		return r < 0 ? r : end;
	if (ended)
		judge_end(input, d, status, v);
	struct err why = {0};
	if (input->sandbox->kind != SANDBOX_OFF && sandbox_still_in_place(input->home, input->home_path, &why) < 0)
		say_dead(v, why.text, input->exec->v[0], &d->complained);
	return 0;
}

static int run(const struct viability_input *input, struct viability *v, struct err *err)
{
	AUTO_WORDS struct words argv = {0};
	AUTO_FREE struct dialogue *d = malloc(sizeof *d);
	int64_t begun = monotonic_ns();
	int r = d ? words_copy(input->exec->v, input->exec->n, &argv, err) : err_code(err, -ENOMEM, "agent", NULL);
	if (r < 0)
		return r;
	/* The found path, never what it links to: a program of many names looks at its own. */
	char *found = strdup(v->child);
	if (!found)
		return err_code(err, -ENOMEM, "agent", NULL);
	free(argv.v[0]);
	argv.v[0] = found;
	struct sandbox_request request = {
		.program = input->sandbox, .home = input->home, .home_path = input->home_path, .command = v->child, .argv = argv.v,
		.environment = input->environment, .cwd = input->cwd, .new_session = true,
	};
	struct err why = {0};
	r = dialogue_start(&request, deadline_in_ms(START_MS), d, &why);
	if (r == 0)
		return ask(input, d, begun, v, err);
	if (dialogue_failure_is_ours(r)) {
		if (err)
			*err = why;
		return r;
	}
	char how[1100];
	(void)snprintf(how, sizeof how, "the agent cannot be started: %s%s%s", why.subject, *why.subject ? ": " : "", why.text);
	say_dead(v, how, input->exec->v[0], &d->complained);
	v->ms = (monotonic_ns() - begun) / 1000000;
	return 0;
}

int viability_probe(const struct viability_input *input, struct viability *ret_viability, struct err *err)
{
	AUTO_FREE struct viability *v = calloc(1, sizeof *v);
	if (!v)
		return err_code(err, -ENOMEM, "agent", NULL);
	const char *home = environment_get(input->environment, "HOME"), *path = environment_get(input->environment, "PATH");
	const char *word = input->exec->n ? input->exec->v[0] : "";
	struct err why = {0};
	(void)snprintf(v->home, sizeof v->home, "%s", home ? home : "");
	int r = command_find(word, path ? path : "/usr/bin:/bin", input->cwd, v->child, sizeof v->child, &why);
	if (r == -ENOENT) {
		v->verdict = VERDICT_UNAVAILABLE;
		v->child[0] = '\0';
		(void)text_escape(why.text, strlen(why.text), v->detail, sizeof v->detail);
	} else if (r < 0) {
		struct tail nothing = {.len = 0};
		v->child[0] = '\0';
		say_dead(v, why.text, word, &nothing);
	} else {
		r = run(input, v, err);
		if (r < 0)
			return r;
	}
	*ret_viability = *v;
	return 0;
}

int viability_refuse(const struct viability *viability, struct err *err)
{
	return refuse(err, REFUSAL_AGENT_DEAD, NULL, "%s", viability->detail);
}
