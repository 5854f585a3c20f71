#include "pod/model/mcp_result.h"

#include <stdlib.h>

#include "fsops/cleanup.h"

const char *mcp_status_name(enum mcp_status status)
{
	static const char *const names[] = {[MCP_STATUS_OK] = "ok", [MCP_STATUS_ERROR] = "error", [MCP_STATUS_DISABLED] = "disabled"};
	return names[status];
}

static struct json *text_or_null(const char *text)
{
	return *text ? json_new_string(text) : json_new_null();
}

static struct json *clone_or(const struct json *value, struct json *(*otherwise)(void))
{
	return value ? json_clone(value) : otherwise();
}

static struct json *temp_json(const struct mcp_result *result)
{
	AUTO_JSON struct json *temp = json_new_object();
	if (!temp || json_set(temp, "source", json_new_string(temp_source_name(result->temp))) < 0 ||
	    json_set(temp, "path", text_or_null(result->temp_path)) < 0)
		return NULL;
	return TAKE_PTR(temp);
}

static struct json *refusals_json(const struct temp_declaration *declaration)
{
	AUTO_JSON struct json *list = json_new_array();
	for (size_t i = 0; list && i < declaration->n; i++) {
		const struct temp_declared *one = &declaration->v[i];
		if (one->answer.cause == CONTAIN_CLEAR)
			continue;
		struct json *refusal = json_new_object();
		if (!refusal || json_set(refusal, "key", json_new_string(one->key)) < 0 || json_set(refusal, "path", json_new_string(one->value)) < 0 ||
		    json_set(refusal, "cause", json_new_string(contain_cause_name(one->answer.cause))) < 0) {
			json_free(refusal);
			return NULL;
		}
		if (json_append(list, refusal) < 0)
			return NULL;
	}
	return TAKE_PTR(list);
}

struct json *mcp_result_json(const struct mcp_result *result)
{
	AUTO_JSON struct json *object = json_new_object();
	if (!object || json_set(object, "server", json_new_string(result->server)) < 0 ||
	    json_set(object, "status", json_new_string(mcp_status_name(result->status))) < 0 ||
	    json_set(object, "detail", text_or_null(result->detail)) < 0 || json_set(object, "protocol_version", text_or_null(result->protocol)) < 0 ||
	    json_set(object, "server_info", clone_or(result->server_info, json_new_null)) < 0 ||
	    json_set(object, "tools", clone_or(result->tools, json_new_array)) < 0 ||
	    json_set(object, "warnings", clone_or(result->warnings, json_new_array)) < 0 || json_set(object, "temp", temp_json(result)) < 0 ||
	    json_set(object, "temp_refusals", refusals_json(&result->refusals)) < 0 ||
	    json_set(object, "sandbox", json_new_string(sandbox_kind_name(result->sandbox))) < 0 ||
	    json_set(object, "ms", json_new_integer(result->ms)) < 0)
		return NULL;
	return TAKE_PTR(object);
}

void mcp_result_free(struct mcp_result *result)
{
	free(result->server);
	json_free(result->server_info);
	json_free(result->tools);
	json_free(result->warnings);
	temp_declaration_free(&result->refusals);
	*result = (struct mcp_result){0};
}
