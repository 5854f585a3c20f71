#include "pod/model/mcp_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/json.h"
#include "pod/model/refusal.h"

#define INDENT 2

static int out_of_memory(struct err *err)
{
	return err_code(err, -ENOMEM, "mcp.json", NULL);
}

static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", text[i]) || !text[i])
			return false;
	return true;
}

static int parse(const char *text, size_t len, struct json **ret_root, struct err *err)
{
	AUTO_JSON struct json *root = NULL;
	if (len > MCP_SPEC_BYTES_MAX)
		return err_set(err, -EFBIG, "mcp.json", NULL, "more than %d bytes", MCP_SPEC_BYTES_MAX);
	if (is_blank(text, len)) {
		root = json_new_object();
		if (!root)
			return out_of_memory(err);
	} else {
		int r = json_parse(text, len, &root, err);
		if (r < 0)
			return r;
	}
	const struct json *servers = json_get(root, "mcpServers");
	if (json_kind(root) != JSON_KIND_OBJECT || (servers && json_kind(servers) != JSON_KIND_OBJECT))
		return err_set(err, -EINVAL, "mcp.json", NULL, "not an object with an object `mcpServers`");
	*ret_root = TAKE_PTR(root);
	return 0;
}

static void problem(struct mcp_server *server, const char *text)
{
	if (!*server->problem)
		(void)snprintf(server->problem, sizeof server->problem, "%s", text);
}

static int read_args(const struct json *args, struct mcp_server *server)
{
	size_t n = json_count(args);
	if (!args)
		return 0;
	if (json_kind(args) != JSON_KIND_ARRAY) {
		problem(server, "`args` is not a list");
		return 0;
	}
	server->args.v = calloc(n + 1, sizeof *server->args.v);
	if (!server->args.v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *word = json_text(json_at(args, i));
		if (!word) {
			problem(server, "an entry of `args` is not a string");
			return 0;
		}
		if (!(server->args.v[server->args.n] = strdup(word)))
			return -ENOMEM;
		server->args.n++;
	}
	return 0;
}

static int read_env(const struct json *env, struct mcp_server *server, struct err *err)
{
	char *none[] = {NULL};
	int r = environment_copy(none, &server->env, err);
	if (r < 0 || !env)
		return r;
	if (json_kind(env) != JSON_KIND_OBJECT) {
		problem(server, "`env` is not an object");
		return 0;
	}
	for (size_t i = 0; i < json_count(env); i++) {
		const char *key = json_key_at(env, i), *value = json_text(json_value_at(env, i));
		struct err why = {0};
		if (!value) {
			problem(server, "a value of `env` is not a string");
		} else if ((r = environment_set(&server->env, key, value, &why)) == -ENOMEM) {
			return out_of_memory(err);
		} else if (r < 0) {
			problem(server, "an entry of `env` cannot be carried in an environment");
		}
	}
	return 0;
}

static int copy_text(const struct json *value, char **ret)
{
	const char *text = json_text(value);
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int read_server(const char *name, const struct json *entry, struct mcp_server *server, struct err *err)
{
	const struct json *command = json_get(entry, "command"), *cwd = json_get(entry, "cwd");
	server->name = strdup(name);
	if (!server->name || copy_text(command, &server->command) < 0 || copy_text(cwd, &server->cwd) < 0)
		return out_of_memory(err);
	if (json_kind(entry) != JSON_KIND_OBJECT)
		problem(server, "the entry is not an object");
	else if (!server->command && json_get(entry, "url"))
		problem(server, "it is reached by a URL, only commands can be run");
	else if (!server->command || !*server->command)
		problem(server, "`command` is missing or not a string");
	if (cwd && !server->cwd)
		problem(server, "`cwd` is not a string");
	server->disabled = json_truth(json_get(entry, "disabled"));
	if (read_args(json_get(entry, "args"), server) < 0)
		return out_of_memory(err);
	return read_env(json_get(entry, "env"), server, err);
}

int mcp_spec_read(const char *text, size_t len, struct mcp_servers *ret_servers, struct err *err)
{
	AUTO_JSON struct json *root = NULL;
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	int r = parse(text, len, &root, err);
	if (r < 0)
		return r;
	const struct json *entries = json_get(root, "mcpServers");
	size_t n = json_count(entries);
	if (n && !(servers.v = calloc(n, sizeof *servers.v)))
		return out_of_memory(err);
	for (; servers.n < n; servers.n++) {
		r = read_server(json_key_at(entries, servers.n), json_value_at(entries, servers.n), &servers.v[servers.n], err);
		if (r < 0) {
			servers.n++;
			return r;
		}
	}
	*ret_servers = servers;
	servers = (struct mcp_servers){0};
	return 0;
}

const struct mcp_server *mcp_servers_find(const struct mcp_servers *servers, const char *name)
{
	for (size_t i = 0; i < servers->n; i++)
		if (!strcmp(servers->v[i].name, name))
			return &servers->v[i];
	return NULL;
}

static bool same_words(const struct words *words, char *const *others)
{
	size_t i = 0;
	while (i < words->n && others[i] && !strcmp(words->v[i], others[i]))
		i++;
	return i == words->n && !others[i];
}

static bool same_environment(const struct environment *one, const struct environment *other)
{
	size_t same = 0;
	for (size_t i = 0; i < one->n; i++)
		for (size_t k = 0; k < other->n; k++)
			same += !strcmp(one->v[i], other->v[k]);
	return same == one->n && same == other->n;
}

bool mcp_server_says(const struct mcp_server *server, char *const *argv, const struct environment *env)
{
	return !*server->problem && !strcmp(server->command, argv[0]) && same_words(&server->args, argv + 1) && same_environment(&server->env, env);
}

void mcp_servers_free(struct mcp_servers *servers)
{
	for (size_t i = 0; i < servers->n; i++) {
		struct mcp_server *server = &servers->v[i];
		free(server->name);
		free(server->command);
		free(server->cwd);
		words_free(&server->args);
		environment_free(&server->env);
	}
	free(servers->v);
	*servers = (struct mcp_servers){0};
}

static struct json *args_of(char *const *argv)
{
	struct json *args = json_new_array();
	for (char *const *word = argv + 1; args && *argv && *word; word++)
		if (json_append(args, json_new_string(*word)) < 0) {
			json_free(args);
			return NULL;
		}
	return args;
}

static struct json *env_of(const struct environment *env)
{
	struct json *object = json_new_object();
	for (size_t i = 0; object && i < env->n; i++) {
		const char *equals = strchr(env->v[i], '=');
		AUTO_FREE char *key = strndup(env->v[i], (size_t)(equals - env->v[i]));
		if (!key || json_set(object, key, json_new_string(equals + 1)) < 0) {
			json_free(object);
			return NULL;
		}
	}
	return object;
}

static int render(const struct json *root, char **ret_text, struct err *err)
{
	AUTO_FREE char *text = json_dump(root, INDENT);
	char *with_newline = NULL;
	if (!text || asprintf(&with_newline, "%s\n", text) < 0)
		return out_of_memory(err);
	*ret_text = with_newline;
	return 0;
}

/* The object at key, made when it is missing. */
static struct json *child(struct json *object, const char *key)
{
	if (!json_get(object, key) && json_set(object, key, json_new_object()) < 0)
		return NULL;
	return json_get(object, key);
}

static int check_text(char *const *words, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (!text_is_utf8(words[i], strlen(words[i])))
			return refuse(err, REFUSAL_USAGE, words[i], "it is not UTF-8, and JSON carries nothing else");
	return 0;
}

static int check_words(const char *name, char *const *argv, const struct environment *env, struct err *err)
{
	size_t n = 0;
	while (argv[n])
		n++;
	if (!*name || !text_is_utf8(name, strlen(name)))
		return refuse(err, REFUSAL_USAGE, name, "this is no name for a server");
	if (!n || !*argv[0])
		return refuse(err, REFUSAL_USAGE, name, "its command is empty");
	int r = check_text(argv, n, err);
	return r < 0 ? r : check_text(env->v, env->n, err);
}

int mcp_spec_add(const char *text, size_t len, const char *name, char *const *argv, const struct environment *env, char **ret_text, struct err *err)
{
	AUTO_JSON struct json *root = NULL;
	int r = check_words(name, argv, env, err);
	if (r == 0)
		r = parse(text, len, &root, err);
	if (r < 0)
		return r;
	struct json *servers = child(root, "mcpServers");
	struct json *entry = servers ? child(servers, name) : NULL;
	if (entry && json_kind(entry) != JSON_KIND_OBJECT)
		return err_set(err, -EINVAL, "mcp.json", name, "the entry is not an object");
	if (!entry || json_set(entry, "command", json_new_string(argv[0])) < 0 || json_set(entry, "args", args_of(argv)) < 0)
		return out_of_memory(err);
	if (env->n && json_set(entry, "env", env_of(env)) < 0)
		return out_of_memory(err);
	if (!env->n)
		(void)json_remove(entry, "env");
	return render(root, ret_text, err);
}

int mcp_spec_remove(const char *text, size_t len, const char *name, char **ret_text, struct err *err)
{
	AUTO_JSON struct json *root = NULL;
	int r = parse(text, len, &root, err);
	if (r < 0)
		return r;
	struct json *servers = json_get(root, "mcpServers");
	if (!json_get(servers, name) || json_remove(servers, name) < 0)
		return err_set(err, -ENOENT, "mcp.json", name, "there is no such server; `kirocrew-pod mcp ls NAME` shows them");
	return render(root, ret_text, err);
}
