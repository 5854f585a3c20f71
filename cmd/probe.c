#include <stdio.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/lifecycle/servers.h"
#include "pod/model/refusal.h"
#include "pod/system/viability.h"

static struct json *agent_json(const struct viability *agent)
{
	struct json *object = agent ? json_new_object() : json_new_null();
	if (!agent || !object)
		return object;
	(void)json_set(object, "verdict", json_new_string(verdict_name(agent->verdict)));
	(void)json_set(object, "detail", json_new_string(agent->detail));
	(void)json_set(object, "child", json_new_string(agent->child));
	(void)json_set(object, "home", json_new_string(agent->home));
	(void)json_set(object, "ms", json_new_integer(agent->ms));
	return object;
}

static void print_report_json(const struct pod_name *name, const struct probe_report *report)
{
	struct json *object = json_new_object(), *servers = json_new_array();
	for (size_t i = 0; servers && i < report->server_count; i++)
		(void)json_append(servers, mcp_result_json(&report->servers[i]));
	if (object) {
		(void)json_set(object, "name", json_new_string(name->text));
		(void)json_set(object, "agent", agent_json(report->agent));
		(void)json_set(object, "mcp", servers);
	}
	print_json(object);
}

static void agent_line(const struct viability *agent)
{
	print_out("agent: %s after %lld ms", verdict_name(agent->verdict), (long long)agent->ms);
	if (*agent->detail) {
		print_out(": ");
		print_text(agent->detail, strlen(agent->detail));
	}
	print_out("\n");
}

/* The gravest thing there is to say; the JSON has it all. */
static const char *remark(const struct mcp_result *result)
{
	const char *warning = json_text(json_at(result->warnings, 0));
	return *result->detail ? result->detail : warning ? warning : "";
}

static void server_line(const struct mcp_result *result)
{
	const char *note = remark(result);
	print_text(result->server, strlen(result->server));
	print_out("%*s %-8s %5zu %-8s  ", (int)(strlen(result->server) < 20 ? 20 - strlen(result->server) : 0), "", mcp_status_name(result->status),
		  json_count(result->tools), temp_source_name(result->temp));
	print_text(note, strlen(note));
	print_out("\n");
}

static bool lacks_sandbox(const struct probe_report *report)
{
	for (size_t i = 0; i < report->server_count; i++)
		if (report->servers[i].status == MCP_STATUS_ERROR && report->servers[i].sandbox == SANDBOX_UNAVAILABLE)
			return true;
	return false;
}

static void print_report(const struct probe_report *report)
{
	if (report->agent)
		agent_line(report->agent);
	if (report->server_count)
		print_out("%-20s %-8s %5s %-8s  %s\n", "SERVER", "STATUS", "TOOLS", "TEMP", "NOTE");
	for (size_t i = 0; i < report->server_count; i++)
		server_line(&report->servers[i]);
	if (!report->agent && !report->server_count)
		print_note("there is no agent and no MCP server to probe");
	if (lacks_sandbox(report))
		print_note("there is no sandbox to be had here, and nothing ran without it; --no-sandbox probes without one");
}

static int run_probe(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_PROBE_REPORT struct probe_report report = {0};
	struct pod_name name;
	int secs = 15;
	int r = argument_name(arguments, 0, &name, err);
	if (r == 0)
		r = argument_number(arguments, FLAG_TIMEOUT, 1, 3600, 15, &secs, err);
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	struct probe_options options = {
		.agent_only = arguments->value[FLAG_AGENT],
		.servers = arguments->names + 1,
		.server_count = arguments->name_count - 1,
		.reply_ms = (int64_t)secs * 1000,
		.unsandboxed = arguments->value[FLAG_NO_SANDBOX],
	};
	if (r == 0)
		r = servers_probe(&session, &name, options, &report, err);
	if (r < 0)
		return r;
	if (arguments->value[FLAG_JSON])
		print_report_json(&name, &report);
	else
		print_report(&report);
	return probe_report_well(&report) ? EXIT_DONE : EXIT_FAILED;
}

const struct verb verb_probe = {
	.name = "probe",
	.operands = "NAME [SERVER...]",
	.summary = "Can its agent start, and do its MCP servers answer? Exit status 1 if one does not",
	.details = "What is probed is what would run: the same command, environment, temp directory and sandbox. A server that declares its temp\n"
		   "inside the sealed run directory gets a managed one instead, and the result says so.",
	.flags = FLAG(AGENT) | FLAG(TIMEOUT) | FLAG(NO_SANDBOX) | FLAG(JSON),
	.names_min = 1,
	.names_max = 1000,
	.run = run_probe,
};
