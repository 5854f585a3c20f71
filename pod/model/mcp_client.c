#include "pod/model/mcp_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pod/model/text.h"

static const char *const known_protocols[] = {MCP_PROTOCOL_NEWEST, "2025-06-18", "2025-03-26", "2024-11-05"};

static int out_of_memory(struct err *err)
{
	return err_code(err, -ENOMEM, "mcp", NULL);
}

static void failed(struct mcp_client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void failed(struct mcp_client *client, const char *format, ...)
{
	client->progress = MCP_FAILED;
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(client->detail, sizeof client->detail, format, arguments);
	va_end(arguments);
}

int mcp_client_warn(struct mcp_client *client, const char *format, ...)
{
	char text[1536];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return json_append(client->warnings, json_new_string(text));
}

static char *initialize_request(int64_t id, const char *version)
{
	struct json *params = json_new_object(), *info = json_new_object();
	int r = params && info ? 0 : -ENOMEM;
	if (r == 0)
		r = json_set(info, "name", json_new_string("kirocrew-pod")) | json_set(info, "version", json_new_string(version)) |
		    json_set(params, "protocolVersion", json_new_string(MCP_PROTOCOL_NEWEST)) | json_set(params, "capabilities", json_new_object());
	if (r == 0) {
		r = json_set(params, "clientInfo", info);
		info = NULL;
	}
	if (r == 0)
		return jsonrpc_request(id, "initialize", params);
	json_free(info);
	json_free(params);
	return NULL;
}

int mcp_client_start(struct mcp_client *client, const char *version, char **ret_send, struct err *err)
{
	*client = (struct mcp_client){.id = 1, .tools = json_new_array(), .warnings = json_new_array(), .cursors = json_new_object()};
	char *line = client->tools && client->warnings && client->cursors ? initialize_request(client->id, version) : NULL;
	if (!line)
		return out_of_memory(err);
	*ret_send = line;
	return 0;
}

static char *list_request(struct mcp_client *client, const char *cursor)
{
	struct json *params = cursor ? json_new_object() : NULL;
	if (cursor && (!params || json_set(params, "cursor", json_new_string(cursor)) < 0)) {
		json_free(params);
		return NULL;
	}
	return jsonrpc_request(++client->id, "tools/list", params);
}

static bool is_known(const char *protocol)
{
	for (size_t i = 0; i < sizeof known_protocols / sizeof *known_protocols; i++)
		if (!strcmp(known_protocols[i], protocol))
			return true;
	return false;
}

static int take_initialized(struct mcp_client *client, const struct jsonrpc_event *event, char **ret_send, struct err *err)
{
	const char *protocol = json_text(json_get(event->result, "protocolVersion"));
	const struct json *info = json_get(event->result, "serverInfo");
	char text[160] = "";
	if (!protocol) {
		failed(client, "the response to `initialize` has no protocolVersion");
		return 0;
	}
	(void)text_escape(protocol, strlen(protocol), text, sizeof text);
	if (!is_known(protocol)) {
		failed(client, "it speaks protocol %s, which is not known here", text);
		return 0;
	}
	(void)snprintf(client->protocol, sizeof client->protocol, "%s", protocol);
	if (json_kind(info) == JSON_KIND_OBJECT && !(client->server_info = json_clone(info)))
		return out_of_memory(err);
	client->initialized = true;
	char *told = jsonrpc_notification("notifications/initialized", NULL), *asked = list_request(client, NULL), *both = NULL;
	if (!told || !asked || asprintf(&both, "%s%s", told, asked) < 0)
		both = NULL;
	free(told);
	free(asked);
	*ret_send = both;
	return both ? 0 : out_of_memory(err);
}

static int add_tools(struct mcp_client *client, const struct json *tools)
{
	for (size_t i = 0; i < json_count(tools); i++) {
		const struct json *name = json_get(json_at(tools, i), "name");
		if (json_count(client->tools) == MCP_TOOLS_MAX)
			return mcp_client_warn(client, "more than %d tools; the rest is not counted", MCP_TOOLS_MAX);
		int r = json_text(name) ? json_append(client->tools, json_clone(name)) : mcp_client_warn(client, "a tool without a name");
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_page(struct mcp_client *client, const struct jsonrpc_event *event, char **ret_send, struct err *err)
{
	const struct json *tools = json_get(event->result, "tools");
	const char *cursor = json_text(json_get(event->result, "nextCursor"));
	if (json_kind(tools) != JSON_KIND_ARRAY) {
		failed(client, "the response to `tools/list` has no list of tools");
		return 0;
	}
	int r = add_tools(client, tools);
	client->pages++;
	bool more = cursor && *cursor, full = client->pages == MCP_PAGES_MAX || json_count(client->tools) == MCP_TOOLS_MAX;
	if (r == 0 && more && json_get(client->cursors, cursor)) {
		r = mcp_client_warn(client, "`tools/list` repeats a cursor; stopped after %zu pages", client->pages);
		more = false;
	} else if (r == 0 && more && full) {
		r = mcp_client_warn(client, "`tools/list` has no end; stopped after %zu pages and %zu tools", client->pages, json_count(client->tools));
		more = false;
	}
	if (r == 0 && more)
		r = json_set(client->cursors, cursor, json_new_bool(true));
	if (r < 0)
		return out_of_memory(err);
	if (!more)
		client->progress = MCP_OK;
	else if (!(*ret_send = list_request(client, cursor)))
		return out_of_memory(err);
	return 0;
}

static int take_response(struct mcp_client *client, const struct jsonrpc_event *event, char **ret_send, struct err *err)
{
	char text[400];
	if (!jsonrpc_answers(event, client->id))
		return 0;
	if (!event->error)
		return client->initialized ? take_page(client, event, ret_send, err) : take_initialized(client, event, ret_send, err);
	jsonrpc_error_text(event, text, sizeof text);
	if (client->initialized && json_number(json_get(event->error, "code"), 0) == JSONRPC_METHOD_NOT_FOUND) {
		client->progress = MCP_OK;
		return mcp_client_warn(client, "it has no tools") < 0 ? out_of_memory(err) : 0;
	}
	failed(client, "`%s` was answered with an error: %s", client->initialized ? "tools/list" : "initialize", text);
	return 0;
}

/* A flood after the handshake's first answer does not take that answer back. */
static int take_too_long(struct mcp_client *client, struct err *err)
{
	if (!client->initialized) {
		failed(client, "line too long: more than %d bytes", JSONRPC_LINE_MAX);
		return 0;
	}
	client->progress = MCP_OK;
	return mcp_client_warn(client, "line too long after `initialize`, the tools may be incomplete") < 0 ? out_of_memory(err) : 0;
}

int mcp_client_take(struct mcp_client *client, const struct jsonrpc_event *event, char **ret_send, struct err *err)
{
	*ret_send = NULL;
	if (client->progress != MCP_GOES_ON)
		return 0;
	switch (event->kind) {
	case JSONRPC_RESPONSE:
		return take_response(client, event, ret_send, err);
	case JSONRPC_REQUEST:
		*ret_send = !strcmp(event->method, "ping") ? jsonrpc_result(event->id, NULL)
							    : jsonrpc_error(event->id, JSONRPC_METHOD_NOT_FOUND, "Method not found");
		return *ret_send ? 0 : out_of_memory(err);
	case JSONRPC_JUNK:
		if (!client->junk++)
			memcpy(client->junk_sample, event->sample, sizeof client->junk_sample);
		return 0;
	case JSONRPC_TOO_LONG:
		return take_too_long(client, err);
	case JSONRPC_NOTIFICATION:
	case JSONRPC_MORE:
		break;
	}
	return 0;
}

int mcp_client_finish(struct mcp_client *client, struct err *err)
{
	int r = !client->junk ? 0 : mcp_client_warn(client, "%llu line%s on stdout that %s no message, the first: %s", client->junk,
						    client->junk == 1 ? "" : "s", client->junk == 1 ? "is" : "are", client->junk_sample);
	client->junk = 0;
	return r < 0 ? out_of_memory(err) : 0;
}

void mcp_client_free(struct mcp_client *client)
{
	json_free(client->server_info);
	json_free(client->tools);
	json_free(client->warnings);
	json_free(client->cursors);
	*client = (struct mcp_client){0};
}
