#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/progress.h"
#include "cmd/up.h"
#include "pod/model/refusal.h"

static void cleanup_report(struct up_report *report) { up_report_free(report); }

static int life_from(const struct arguments *arguments, struct life_wish *wish, struct err *err)
{
	const char *owner = arguments->value[FLAG_OWNER], *ttl = arguments->value[FLAG_TTL];
	int pid = 0, r = 0;
	wish->owner_said = owner;
	wish->ttl_said = ttl;
	if (owner && strcmp(owner, "none") != 0)
		r = argument_number(arguments, FLAG_OWNER, 1, INT_MAX, 0, &pid, err);
	wish->owner = pid;
	if (r == 0 && ttl && strcmp(ttl, "none") != 0)
		r = argument_age(ttl, &wish->ttl_s, err);
	if (r == 0 && ttl && strcmp(ttl, "none") != 0 && !wish->ttl_s)
		return refuse(err, REFUSAL_USAGE, ttl, "a pod needs some time to live; usage: --ttl AGE");
	return r;
}

int up_request_from(const struct arguments *arguments, struct up_request *request, struct err *err)
{
	int wait_secs = 0;
	int r = argument_name(arguments, 0, &request->name, err);
	if (r == 0)
		r = argument_number(arguments, FLAG_WAIT_SECS, 1, 86400, 0, &wait_secs, err);
	if (r == 0 && arguments->value[FLAG_BACKEND])
		r = backend_parse(arguments->value[FLAG_BACKEND], &request->backend, NULL);
	if (r < 0 && !err->code) /* not the name or the number */
		return refuse(err, REFUSAL_USAGE, arguments->value[FLAG_BACKEND], "--backend is one of auto, systemd, launchd, embedded");
	if (r == 0)
		r = life_from(arguments, &request->life, err);
	request->wait_secs = wait_secs;
	request->checkout = arguments->value[FLAG_CHECKOUT];
	request->port = arguments->value[FLAG_PORT];
	request->seed = arguments->value[FLAG_SEED];
	request->health = arguments->value[FLAG_HEALTH];
	request->memory_max = arguments->value[FLAG_MEMORY_MAX];
	request->cpu_quota = arguments->value[FLAG_CPU_QUOTA];
	request->approval = arguments->value[FLAG_APPROVAL];
	request->crons = arguments->value[FLAG_CRONS];
	request->no_embeddings = arguments->value[FLAG_NO_EMBEDDINGS];
	return r;
}

static struct json *warnings_json(const struct words *warnings)
{
	struct json *array = json_new_array();
	for (size_t i = 0; array && i < warnings->n; i++)
		(void)json_append(array, json_new_string(warnings->v[i]));
	return array;
}

static void print_report_json(const struct up_report *report)
{
	char url[64];
	(void)snprintf(url, sizeof url, "http://127.0.0.1:%d", report->port);
	struct json *object = json_new_object();
	if (object) {
		(void)json_set(object, "name", json_new_string(report->name.text));
		(void)json_set(object, "id", json_new_string(report->id));
		(void)json_set(object, "status", json_new_string("up"));
		(void)json_set(object, "backend", json_new_string(backend_name(report->backend)));
		(void)json_set(object, "port", json_new_integer(report->port));
		(void)json_set(object, "base_url", json_new_string(url));
		(void)json_set(object, "home", json_new_string(report->home));
		(void)json_set(object, "os_home", json_new_string(report->os_home));
		(void)json_set(object, "pid", json_new_integer(report->pid));
		(void)json_set(object, "ready_ms", json_new_integer(report->ready_ms));
		(void)json_set(object, "warnings", warnings_json(&report->warnings));
	}
	print_json(object);
}

void up_tell(const struct up_report *report)
{
	for (size_t i = 0; i < report->warnings.n; i++)
		print_note("%s", report->warnings.v[i]);
	print_tail(report->log_tail);
}

static int run_up(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	__attribute__((cleanup(cleanup_report))) struct up_report report = {0};
	struct up_request request = {0};
	struct progress_line line;
	int r = up_request_from(arguments, &request, err);
	request.command = arguments->command;
	request.command_count = arguments->command_count;
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	if (r == 0) {
		progress_begin(&line, &session);
		r = up(&session, &request, &report, err);
		progress_end(&line);
	}
	up_tell(&report);
	if (r < 0)
		return r;
	if (arguments->value[FLAG_JSON])
		print_report_json(&report);
	else
		print_out("%s is up at http://127.0.0.1:%d (%s, pid %d, ready after %lld ms)\n", report.name.text, report.port,
			  backend_name(report.backend), (int)report.pid, (long long)report.ready_ms);
	return EXIT_DONE;
}

const struct verb verb_up = {
	.name = "up",
	.operands = "NAME [-- CMD ARG...]",
	.summary = "Make a pod, or find it running, and return when it answers",
	.details = "Without a command the pod runs the KiroCrew checkout of that name. In the command's words {port}, {home}, {os_home} and\n"
		   "{name} are replaced; {{ is a literal {. A signal that asks for its end makes it take back what it made; a second one ends\n"
		   "it at once.",
	.flags = UP_FLAGS | FLAG(JSON) | FLAG(OWNER),
	.names_min = 1,
	.names_max = 1,
	.command = true,
	.run = run_up,
};
