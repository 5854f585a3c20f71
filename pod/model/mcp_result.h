/* What a probe of one MCP server found, as data and as the JSON of the contract, section 12. Pure. */
#pragma once

#include <stdint.h>

#include "fsops/err.h"
#include "pod/model/json.h"
#include "pod/model/plane.h"
#include "pod/model/sandbox_plan.h"
#include "pod/model/temp.h"

enum mcp_status { MCP_STATUS_OK, MCP_STATUS_ERROR, MCP_STATUS_DISABLED };
const char *mcp_status_name(enum mcp_status status);

struct mcp_result {
	char *server;
	enum mcp_status status;
	char detail[4096];        /* escaped, "" none */
	char protocol[32];
	struct json *server_info; /* or NULL */
	struct json *tools;       /* names */
	struct json *warnings;    /* escaped texts, those of refused temps included */
	enum temp_source temp;
	char temp_path[PLANE_PATH_MAX + 64]; /* raw bytes, "" none */
	struct temp_declaration refusals;    /* empty, or the declaration of which at least one key has a cause */
	enum sandbox_kind sandbox;
	int64_t ms;
};
/* NULL when memory is out. */
struct json *mcp_result_json(const struct mcp_result *result);
void mcp_result_free(struct mcp_result *result);
