#include "pod/lifecycle/servers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "pod/lifecycle/agent.h"
#include "pod/model/refusal.h"
#include "pod/system/mcp_probe.h"

#define SETTINGS "kiro/settings"
#define MCP_FILE "mcp.json"
#define NAME_LOCK_WAIT_MS 2000

static struct mcp_context context_of(const struct residence *residence, const struct sandbox_program *sandbox)
{
	return (struct mcp_context){
		.home = &residence->home,
		.home_path = residence->paths.home,
		.cwd = residence->paths.workspace,
		.environment = &residence->agent,
		.sandbox = sandbox,
	};
}

/* --- the file ----------------------------------------------------------------------------------------------------------- */

static int settings_pin(const struct residence *residence, struct pin *ret_settings, struct err *err)
{
	int r = pin_descend(&residence->home, SETTINGS, ret_settings, err);
	return r < 0 ? err_prepend(err, "the settings of the pod") : 0;
}

/* No file is an empty one. */
static int file_of(const struct pin *settings, char **ret_text, size_t *ret_len, struct err *err)
{
	struct err why = {0};
	int r = file_read(settings, MCP_FILE, MCP_SPEC_BYTES_MAX, ret_text, ret_len, &why);
	if (r == -ENOENT) {
		*ret_len = 0;
		*ret_text = calloc(1, 1);
		return *ret_text ? 0 : err_code(err, -ENOMEM, "mcp", MCP_FILE);
	}
	if (r < 0)
		*err = why;
	return r;
}

/* What is wrong inside the file says where, and this says in which. */
static int named(int r, struct err *err)
{
	return r == -EINVAL ? err_prepend(err, MCP_FILE) : r;
}

static int read_servers(const struct residence *residence, struct mcp_servers *ret_servers, struct err *err)
{
	AUTO_PIN struct pin settings = PIN_NONE;
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = settings_pin(residence, &settings, err);
	if (r == 0)
		r = file_of(&settings, &text, &len, err);
	return r < 0 ? r : named(mcp_spec_read(text, len, ret_servers, err), err);
}

int servers_list(struct session *session, const struct pod_name *name, struct mcp_servers *ret_servers, struct err *err)
{
	AUTO_RESIDENCE struct residence residence = RESIDENCE_NONE;
	int r = residence_open(session, name, &residence, err);
	return r < 0 ? r : read_servers(&residence, ret_servers, err);
}

struct edit {
	const char *remove;             /* NULL: adds */
	const struct server_wish *wish;
	struct mcp_servers *before;
};

/* *ret_text stays NULL where nothing is to be written. */
static int added(const struct edit *edit, const char *text, size_t len, char **ret_text, struct err *err)
{
	const struct server_wish *wish = edit->wish;
	int r = mcp_spec_read(text, len, edit->before, err);
	const struct mcp_server *there = r < 0 ? NULL : mcp_servers_find(edit->before, wish->server);
	if (there && mcp_server_says(there, wish->argv, wish->env))
		return 0;
	if (there && !wish->replace)
		return refuse(err, REFUSAL_SERVER_EXISTS, wish->server, "it runs %s", there->command ? there->command : "no command");
	return r < 0 ? r : mcp_spec_add(text, len, wish->server, wish->argv, wish->env, ret_text, err);
}

static int edited(const struct edit *edit, const char *text, size_t len, char **ret_text, struct err *err)
{
	return edit->remove ? mcp_spec_remove(text, len, edit->remove, ret_text, err) : added(edit, text, len, ret_text, err);
}

static int edit_file(struct session *session, const struct pod_name *name, const struct edit *edit, struct err *err)
{
	AUTO_RESIDENCE struct residence residence = RESIDENCE_NONE;
	AUTO_LOCK struct lock lock = LOCK_NONE;
	AUTO_PIN struct pin settings = PIN_NONE;
	AUTO_FREE char *text = NULL, *after = NULL;
	size_t len = 0;
	int r = residence_open(session, name, &residence, err);
	if (r == 0)
		r = session_lock_name(session, name, NAME_LOCK_WAIT_MS, &lock, err);
	if (r == 0)
		r = settings_pin(&residence, &settings, err);
	if (r == 0)
		r = file_of(&settings, &text, &len, err);
	if (r == 0)
		r = named(edited(edit, text, len, &after, err), err);
	return r < 0 || !after ? r : file_replace(&settings, MCP_FILE, after, strlen(after), 0600, err);
}

int server_add(struct session *session, const struct pod_name *name, const struct server_wish *wish, struct mcp_servers *ret_before, struct err *err)
{
	struct edit edit = {.wish = wish, .before = ret_before};
	return edit_file(session, name, &edit, err);
}

int server_remove(struct session *session, const struct pod_name *name, const char *server, struct err *err)
{
	struct edit edit = {.remove = server};
	return edit_file(session, name, &edit, err);
}

/* --- the pod's log ------------------------------------------------------------------------------------------------------ */

struct log {
	struct session *session;
	const struct residence *residence;
};

/* A log that cannot be written must not change what a probe finds. */
static void log_warning(const struct log *log, const char *text)
{
	struct service *service = NULL;
	struct err lost = {0};
	char line[2048];
	(void)snprintf(line, sizeof line, "WARNING: %s", text);
	if (session_service(log->session, log->residence->spec.backend, &service, &lost) == 0)
		(void)service->ops->log_line(service, &log->residence->name, line, &lost);
}

static void log_refusals(const struct log *log, const struct mcp_result *result)
{
	for (size_t i = 0; i < result->refusals.n; i++) {
		char text[1900];
		if (result->refusals.v[i].answer.cause == CONTAIN_CLEAR)
			continue;
		temp_warning(result->server, &result->refusals.v[i], text, sizeof text);
		log_warning(log, text);
	}
}

/* --- probing ------------------------------------------------------------------------------------------------------------ */

void probe_report_free(struct probe_report *report)
{
	for (size_t i = 0; i < report->server_count; i++)
		mcp_result_free(&report->servers[i]);
	free(report->servers);
	free(report->agent);
	*report = (struct probe_report){0};
}

static int choose_server(const struct mcp_servers *all, const char *name, const struct mcp_server **ret_server, struct err *err)
{
	*ret_server = mcp_servers_find(all, name);
	return *ret_server ? 0 : refuse(err, REFUSAL_USAGE, name, "the pod has no MCP server of this name; `kirocrew-pod mcp ls NAME` shows them");
}

static int choose(const struct mcp_servers *all, struct probe_options options, const struct mcp_server **ret_chosen, size_t *ret_count, struct err *err)
{
	size_t count = options.server_count ? options.server_count : all->n;
	for (size_t i = 0; i < count; i++) {
		ret_chosen[i] = options.server_count ? NULL : &all->v[i];
		int r = options.server_count ? choose_server(all, options.servers[i], &ret_chosen[i], err) : 0;
		if (r < 0)
			return r;
	}
	*ret_count = count;
	return 0;
}

static int probe_servers(const struct log *log, const struct sandbox_program *sandbox, struct probe_options options, struct probe_report *report,
			 struct err *err)
{
	AUTO_MCP_SERVERS struct mcp_servers all = {0};
	struct mcp_context context = context_of(log->residence, sandbox);
	size_t count = 0;
	int r = read_servers(log->residence, &all, err);
	if (r < 0)
		return r;
	size_t room = all.n + options.server_count + 1;
	AUTO_FREE const struct mcp_server **chosen = calloc(room, sizeof *chosen);
	struct mcp_result *results = calloc(room, sizeof *results);
	r = chosen && results ? choose(&all, options, chosen, &count, err) : err_code(err, -ENOMEM, "probe", NULL);
	if (r == 0)
		r = mcp_probe_all(&context, chosen, count, KIROCREW_POD_VERSION, options.reply_ms, results, err);
	if (r < 0) {
		free(results);
		return r;
	}
	report->servers = results;
	report->server_count = count;
	for (size_t i = 0; i < count; i++)
		log_refusals(log, &results[i]);
	return 0;
}

static int probe_agent(struct session *session, const struct residence *residence, const struct sandbox_program *sandbox, struct probe_report *report,
		       struct err *err)
{
	report->agent = calloc(1, sizeof *report->agent);
	return report->agent ? agent_probe(residence, &session->around.ini, sandbox, report->agent, err) : err_code(err, -ENOMEM, "probe", NULL);
}

static int probe_into(struct session *session, const struct residence *residence, struct probe_options options, struct probe_report *report,
		      struct err *err)
{
	struct log log = {session, residence};
	struct sandbox_program sandbox = sandbox_none();
	bool has_agent = agent_expected(&residence->spec, &session->around.ini);
	if (!options.unsandboxed)
		sandbox_find(&sandbox);
	if (options.agent_only && !has_agent)
		return refuse(err, REFUSAL_USAGE, residence->name.text, "it is a command payload and no INI names an agent for it");
	int r = 0;
	if (options.agent_only || (has_agent && !options.server_count))
		r = probe_agent(session, residence, &sandbox, report, err);
	return r < 0 || options.agent_only ? r : probe_servers(&log, &sandbox, options, report, err);
}

int servers_probe(struct session *session, const struct pod_name *name, struct probe_options options, struct probe_report *ret_report, struct err *err)
{
	AUTO_RESIDENCE struct residence residence = RESIDENCE_NONE;
	AUTO_PROBE_REPORT struct probe_report report = {0};
	int r = residence_open(session, name, &residence, err);
	if (r == 0)
		r = probe_into(session, &residence, options, &report, err);
	if (r < 0)
		return r;
	*ret_report = report;
	report = (struct probe_report){0};
	return 0;
}

bool probe_report_well(const struct probe_report *report)
{
	bool well = !report->agent || report->agent->verdict != VERDICT_DEAD;
	for (size_t i = 0; i < report->server_count; i++)
		well &= report->servers[i].status != MCP_STATUS_ERROR;
	return well;
}

/* --- running ------------------------------------------------------------------------------------------------------------ */

static void warn_both(const char *text, void *to)
{
	char line[2048];
	int n = snprintf(line, sizeof line, "kirocrew-pod: WARNING: %s\n", text);
	(void)write_all(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
	log_warning(to, text);
}

int server_run(struct session *session, const struct pod_name *name, const char *server, int *ret_status, struct err *err)
{
	AUTO_RESIDENCE struct residence residence = RESIDENCE_NONE;
	AUTO_MCP_SERVERS struct mcp_servers all = {0};
	const struct mcp_server *chosen = NULL;
	struct sandbox_program sandbox;
	int r = residence_open(session, name, &residence, err);
	if (r == 0)
		r = read_servers(&residence, &all, err);
	if (r == 0)
		r = choose_server(&all, server, &chosen, err);
	if (r < 0)
		return r;
	struct log log = {session, &residence};
	struct mcp_context context = context_of(&residence, &sandbox);
	sandbox_find(&sandbox);
	return mcp_run(&context, chosen, warn_both, &log, ret_status, err);
}
