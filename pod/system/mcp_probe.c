#include "pod/system/mcp_probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/mcp_client.h"
#include "pod/system/dialogue.h"

#define PREPARE_MS 10000
#define START_MS 10000
#define END_MS 10000
#define TAIL_CHARACTERS 500
#define LAST_WORDS_MS 500

static void say(struct mcp_result *result, const char *what, const struct dialogue *d)
{
	char tail[2600] = "";
	result->status = MCP_STATUS_ERROR;
	if (d)
		tail_text(&d->complained, TAIL_CHARACTERS, tail, sizeof tail);
	(void)snprintf(result->detail, sizeof result->detail, "%s%s%s", what, *tail ? "; stderr: " : "", tail);
}

static void say_err(struct mcp_result *result, const struct err *why, const struct dialogue *d)
{
	char escaped[1200], text[sizeof why->subject + sizeof why->text + 2];
	bool named = !*why->subject || strstr(why->text, why->subject);
	(void)snprintf(text, sizeof text, "%s%s%s", named ? "" : why->subject, named ? "" : ": ", why->text);
	(void)text_escape(text, strlen(text), escaped, sizeof escaped);
	say(result, escaped, d);
}

static int warn_temp(const struct mcp_prepared *p, const char *server, struct json *warnings)
{
	char line[2048];
	for (size_t i = 0; i < p->declaration.n; i++) {
		if (p->declaration.v[i].answer.cause == CONTAIN_CLEAR)
			continue;
		temp_warning(server, &p->declaration.v[i], line, sizeof line);
		if (json_append(warnings, json_new_string(line)) < 0)
			return -ENOMEM;
	}
	return *p->temp_problem ? json_append(warnings, json_new_string(p->temp_problem)) : 0;
}

/* Whoever ends closes its stdout first; only who stays has closed it on purpose. */
static int wait_for_the_end(struct dialogue *d, enum dialogue_turn *turn, struct err *err)
{
	AUTO_JSONRPC_EVENT struct jsonrpc_event event = {0};
	enum dialogue_turn next = DIALOGUE_TIMEOUT;
	int r = dialogue_next(d, deadline_in_ms(LAST_WORDS_MS), &next, &event, err);
	if (r == 0 && next == DIALOGUE_ENDED)
		*turn = next;
	return r;
}

/* Until the handshake is decided; what is said about the end needs the status, which is had afterwards. */
static int converse(struct dialogue *d, struct mcp_client *client, const char *version, int64_t reply_ms, enum dialogue_turn *turn, struct err *err)
{
	char *line = NULL;
	int r = mcp_client_start(client, version, &line, err);
	int64_t id = client->id;
	struct deadline until = deadline_in_ms(reply_ms);
	while (r == 0 && client->progress == MCP_GOES_ON) {
		AUTO_JSONRPC_EVENT struct jsonrpc_event event = {0};
		if (line)
			r = dialogue_send(d, line, err);
		line = NULL;
		if (client->id != id)
			until = deadline_in_ms(reply_ms);
		id = client->id;
		*turn = DIALOGUE_TIMEOUT;
		if (r == 0)
			r = dialogue_next(d, until, turn, &event, err);
		if (r == 0 && *turn == DIALOGUE_CLOSED)
			r = wait_for_the_end(d, turn, err);
		if (r < 0 || *turn != DIALOGUE_EVENT)
			return r;
		r = mcp_client_take(client, &event, &line, err);
	}
	free(line);
	return r;
}

static void judge(struct mcp_result *result, struct mcp_client *client, enum dialogue_turn turn, int status, int64_t reply_ms, const char *command,
		  const struct dialogue *d)
{
	const char *waited_for = client->initialized ? "tools/list" : "initialize";
	char text[700], cause[600], ended[64];
	if (client->progress == MCP_OK) {
		result->status = MCP_STATUS_OK;
		return;
	}
	status_text(status, ended, sizeof ended);
	if (client->progress == MCP_FAILED)
		(void)snprintf(text, sizeof text, "%s", client->detail);
	else if (turn == DIALOGUE_CLOSED)
		(void)snprintf(text, sizeof text, "it closed its stdout before it answered `%s`", waited_for);
	else if (turn == DIALOGUE_TIMEOUT)
		(void)snprintf(text, sizeof text, "it did not answer `%s` within %lld ms", waited_for, (long long)reply_ms);
	else if (exec_failed(&d->complained, command, cause, sizeof cause))
		(void)snprintf(text, sizeof text, "it cannot be executed: %s", cause);
	else
		(void)snprintf(text, sizeof text, "it ended with %s before it answered `%s`", ended, waited_for);
	say(result, text, d);
}

static int take_over(struct mcp_result *result, struct mcp_client *client, struct err *err)
{
	int r = mcp_client_finish(client, err);
	for (size_t i = 0; r == 0 && i < json_count(client->warnings); i++)
		r = json_append(result->warnings, json_clone(json_at(client->warnings, i)));
	if (r < 0)
		return err_code(err, -ENOMEM, "mcp", NULL);
	memcpy(result->protocol, client->protocol, sizeof result->protocol);
	result->server_info = TAKE_PTR(client->server_info);
	json_free(result->tools);
	result->tools = TAKE_PTR(client->tools);
	return 0;
}

static int talk(const struct mcp_context *context, const struct mcp_prepared *p, struct dialogue *d, const char *version, int64_t reply_ms,
		struct mcp_result *result, struct err *err)
{
	AUTO_MCP_CLIENT struct mcp_client client = {0};
	enum dialogue_turn turn = DIALOGUE_EVENT;
	int status = 0;
	int r = converse(d, &client, version, reply_ms, &turn, err);
	int end = dialogue_end(d, deadline_in_ms(END_MS), &status, r < 0 ? NULL : err);
	r = r < 0 ? r : end;
	if (r == 0)
		r = take_over(result, &client, err);
	if (r < 0)
		return r;
	judge(result, &client, turn, status, reply_ms, p->command, d);
	struct err why = {0};
	if (context->sandbox->kind != SANDBOX_OFF && sandbox_still_in_place(context->home, context->home_path, &why) < 0)
		say_err(result, &why, d);
	return 0;
}

static int start_and_talk(const struct mcp_context *context, struct mcp_prepared *p, const char *version, int64_t reply_ms,
			  struct mcp_result *result, struct err *err)
{
	AUTO_FREE struct dialogue *d = malloc(sizeof *d);
	struct sandbox_request request = mcp_request(context, p);
	struct err why = {0};
	if (!d)
		return err_code(err, -ENOMEM, "mcp", NULL);
	int r = dialogue_start(&request, deadline_in_ms(START_MS), d, &why);
	if (r == 0) {
		(void)scratch_own(&p->scratch, d->sandbox.pid, NULL);
		return talk(context, p, d, version, reply_ms, result, err);
	}
	if (dialogue_failure_is_ours(r)) {
		if (err)
			*err = why;
		return r;
	}
	if (r == -ENOTSUP)
		result->sandbox = SANDBOX_UNAVAILABLE;
	say_err(result, &why, d);
	return 0;
}

static int probe_enabled(const struct mcp_context *context, const struct mcp_server *server, const char *version, int64_t reply_ms,
			 struct mcp_result *result, struct err *err)
{
	struct mcp_prepared p;
	struct err why = {0};
	int r = mcp_prepare(context, server, deadline_in_ms(PREPARE_MS), &p, &why);
	if (r < 0 && dialogue_failure_is_ours(r)) {
		if (err)
			*err = why;
		return r;
	}
	if (r < 0) {
		say_err(result, &why, NULL);
		return 0;
	}
	result->temp = p.temp;
	(void)snprintf(result->temp_path, sizeof result->temp_path, "%s", p.temp_path);
	r = warn_temp(&p, server->name, result->warnings) < 0 ? err_code(err, -ENOMEM, "mcp", NULL) : 0;
	if (r == 0)
		r = start_and_talk(context, &p, version, reply_ms, result, err);
	if (temp_refused(&p.declaration)) {
		result->refusals = p.declaration;
		p.declaration = (struct temp_declaration){0};
	}
	if (scratch_remove(&p.scratch, deadline_in_ms(END_MS), &why) < 0 && r == 0)
		say_err(result, &why, NULL);
	mcp_prepared_free(&p);
	return r;
}

int mcp_probe(const struct mcp_context *context, const struct mcp_server *server, const char *version, int64_t reply_ms,
	      struct mcp_result *ret_result, struct err *err)
{
	struct mcp_result result = {.server = strdup(server->name), .tools = json_new_array(), .warnings = json_new_array(),
				    .sandbox = context->sandbox->kind, .status = MCP_STATUS_DISABLED};
	int64_t begun = monotonic_ns();
	int r = result.server && result.tools && result.warnings ? 0 : err_code(err, -ENOMEM, "mcp", NULL);
	if (r == 0 && !server->disabled)
		r = probe_enabled(context, server, version, reply_ms, &result, err);
	if (r < 0) {
		mcp_result_free(&result);
		return r;
	}
	result.ms = (monotonic_ns() - begun) / 1000000;
	*ret_result = result;
	return 0;
}

struct batch {
	const struct mcp_context *context;
	const struct mcp_server *const *servers;
	size_t count;
	const char *version;
	int64_t reply_ms;
	struct mcp_result *results;
	_Atomic size_t next;
	_Atomic int code;
	struct err err; /* of whoever set the code */
};

/* A sandbox ends with the thread that started it, so each probe stays in one. */
static void *work(void *argument)
{
	struct batch *batch = argument;
	for (size_t i; (i = atomic_fetch_add(&batch->next, 1)) < batch->count;) {
		struct err why = {0};
		int r = mcp_probe(batch->context, batch->servers[i], batch->version, batch->reply_ms, &batch->results[i], &why), none = 0;
		if (r < 0 && atomic_compare_exchange_strong(&batch->code, &none, r))
			batch->err = why;
	}
	return NULL;
}

int mcp_probe_all(const struct mcp_context *context, const struct mcp_server *const *servers, size_t count, const char *version, int64_t reply_ms,
		  struct mcp_result *ret_results, struct err *err)
{
	struct batch batch = {.context = context, .servers = servers, .count = count, .version = version, .reply_ms = reply_ms, .results = ret_results};
	pthread_t threads[MCP_AT_ONCE];
	size_t started = 0;
	memset(ret_results, 0, count * sizeof *ret_results);
	(void)scratch_sweep(context->home, deadline_in_ms(PREPARE_MS), NULL, NULL);
	while (started < MCP_AT_ONCE && started < count && pthread_create(&threads[started], NULL, work, &batch) == 0)
		started++;
	if (!started)
		(void)work(&batch);
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	int code = atomic_load(&batch.code);
	if (code < 0) {
		for (size_t i = 0; i < count; i++)
			mcp_result_free(&ret_results[i]);
		if (err)
			*err = batch.err;
	}
	return code;
}
