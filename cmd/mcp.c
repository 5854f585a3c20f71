#include <stdio.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/lifecycle/servers.h"
#include "pod/model/refusal.h"

/* One action of `mcp`: its operands behind the action's own word. */
struct action {
	const char *name;
	const char *usage;
	size_t operands;
	bool command;
	int (*run)(const struct arguments *arguments, struct session *session, const struct pod_name *name, struct err *err);
};

static int declared(const struct arguments *arguments, struct environment *env, struct err *err)
{
	for (size_t i = 0; i < arguments->repeated_count; i++) {
		char key[256];
		const char *equals = strchr(arguments->repeated[i], '=');
		if (!equals || equals == arguments->repeated[i] || (size_t)(equals - arguments->repeated[i]) >= sizeof key)
			return refuse(err, REFUSAL_USAGE, arguments->repeated[i], "--env takes NAME=value");
		(void)snprintf(key, sizeof key, "%.*s", (int)(equals - arguments->repeated[i]), arguments->repeated[i]);
		int r = environment_set(env, key, equals + 1, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void tell_what_it_was(const struct mcp_server *before, const struct server_wish *wish)
{
	char words[1024];
	size_t used = (size_t)snprintf(words, sizeof words, "%s", before->command ? before->command : "no command");
	for (size_t i = 0; i < before->args.n && used < sizeof words; i++)
		used += (size_t)snprintf(words + used, sizeof words - used, " %s", before->args.v[i]);
	if (mcp_server_says(before, wish->argv, wish->env))
		print_note("%s: it is declared so already; nothing was changed", wish->server);
	else
		print_note("%s: it is replaced; until now it ran %s", wish->server, words);
}

static int run_add(const struct arguments *arguments, struct session *session, const struct pod_name *name, struct err *err)
{
	AUTO_ENVIRONMENT struct environment env = {0};
	AUTO_MCP_SERVERS struct mcp_servers before = {0};
	struct server_wish wish = {
	    .server = arguments->names[2], .argv = arguments->command, .env = &env, .replace = arguments->value[FLAG_REPLACE]};
	int r = declared(arguments, &env, err);
	if (r == 0)
		r = server_add(session, name, &wish, &before, err);
	const struct mcp_server *there = r < 0 ? NULL : mcp_servers_find(&before, wish.server);
	if (there)
		tell_what_it_was(there, &wish);
	return r < 0 ? r : EXIT_DONE;
}

static int run_rm(const struct arguments *arguments, struct session *session, const struct pod_name *name, struct err *err)
{
	int r = server_remove(session, name, arguments->names[2], err);
	return r < 0 ? r : EXIT_DONE;
}

static struct json *server_json(const struct mcp_server *server)
{
	struct json *object = json_new_object(), *args = json_new_array();
	for (size_t i = 0; args && i < server->args.n; i++)
		(void)json_append(args, json_new_string(server->args.v[i]));
	if (object) {
		(void)json_set(object, "server", json_new_string(server->name));
		(void)json_set(object, "command", json_new_string(server->command));
		(void)json_set(object, "args", args);
		(void)json_set(object, "disabled", json_new_bool(server->disabled));
		(void)json_set(object, "problem", *server->problem ? json_new_string(server->problem) : json_new_null());
	}
	return object;
}

static void server_line(const struct mcp_server *server)
{
	print_text(server->name, strlen(server->name));
	print_out("%s: ", server->disabled ? " (disabled)" : "");
	print_text(server->command ? server->command : "", server->command ? strlen(server->command) : 0);
	for (size_t i = 0; i < server->args.n; i++) {
		print_out(" ");
		print_text(server->args.v[i], strlen(server->args.v[i]));
	}
	if (*server->problem) {
		print_out("  # ");
		print_text(server->problem, strlen(server->problem));
	}
	print_out("\n");
}

static int run_ls(const struct arguments *arguments, struct session *session, const struct pod_name *name, struct err *err)
{
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	bool as_json = arguments->value[FLAG_JSON];
	int r = servers_list(session, name, &servers, err);
	if (r < 0)
		return r;
	struct json *array = as_json ? json_new_array() : NULL;
	for (size_t i = 0; i < servers.n; i++) {
		if (array)
			(void)json_append(array, server_json(&servers.v[i]));
		else if (!as_json)
			server_line(&servers.v[i]);
	}
	if (as_json)
		print_json(array);
	return EXIT_DONE;
}

static int run_server(const struct arguments *arguments, struct session *session, const struct pod_name *name, struct err *err)
{
	int status = 0;
	int r = server_run(session, name, arguments->names[2], &status, err);
	return r < 0 ? r : status;
}

static const struct action actions[] = {
	{"add", "add NAME SERVER [--env K=V]... [--replace] -- CMD ARG...", 2, true, run_add},
	{"rm", "rm NAME SERVER", 2, false, run_rm},
	{"ls", "ls NAME [--json]", 1, false, run_ls},
	{"run", "run NAME SERVER", 2, false, run_server},
};

static const struct action *action_of(const char *word)
{
	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (strcmp(actions[i].name, word) == 0)
			return &actions[i];
	return NULL;
}

static int run_mcp(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	const struct action *action = action_of(arguments->names[0]);
	struct pod_name name;
	if (!action)
		return refuse(err, REFUSAL_USAGE, arguments->names[0], "`mcp` does add, rm, ls and run");
	if (arguments->name_count != action->operands + 1 || arguments->has_command != action->command)
		return refuse(err, REFUSAL_USAGE, "mcp", "usage: kirocrew-pod mcp %s", action->usage);
	if ((arguments->repeated_count || arguments->value[FLAG_REPLACE]) && !action->command)
		return refuse(err, REFUSAL_USAGE, arguments->repeated_count ? "--env" : "--replace", "it belongs to `mcp add`");
	int r = argument_name(arguments, 1, &name, err);
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	return r < 0 ? r : action->run(arguments, &session, &name, err);
}

const struct verb verb_mcp = {
	.name = "mcp",
	.operands = "ACTION NAME [SERVER] [-- CMD...]",
	.summary = "The MCP servers of a pod: add, rm, ls, run",
	.details = "mcp add NAME SERVER [--env K=V]... [--replace] -- CMD ARG...\n"
		   "                       declares a server; one that is there with other words is left alone without --replace\n"
		   "mcp rm NAME SERVER     takes it out\n"
		   "mcp ls NAME [--json]   what is declared\n"
		   "mcp run NAME SERVER    becomes the server on its own stdio, sandboxed as `probe` does it",
	.actions = "add rm ls run",
	.flags = FLAG(ENV) | FLAG(REPLACE) | FLAG(JSON),
	.names_min = 2,
	.names_max = 3,
	.command = true,
	.run = run_mcp,
};
