/* MCP servers of a pod, <home>/kiro/settings/mcp.json: {"mcpServers": {NAME: {"command", "args", "env", "disabled", "cwd", …}}}. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "pod/model/environment.h"
#include "pod/model/text.h"

#define MCP_SPEC_BYTES_MAX (1 << 20)

struct mcp_server {
	char *name;
	char *command;
	struct words args;
	struct environment env; /* as declared, in order */
	char *cwd;              /* NULL: not given */
	bool disabled;
	char problem[160]; /* why it cannot be run although the file can be read, "" none */
};
struct mcp_servers {
	struct mcp_server *v; /* in file order */
	size_t n;
};
/* An entry that cannot be used is listed with its problem; only a file that is no such document is an error (-EINVAL, what and where).
 * An empty text has no servers. */
int mcp_spec_read(const char *text, size_t len, struct mcp_servers *ret_servers, struct err *err);
const struct mcp_server *mcp_servers_find(const struct mcp_servers *servers, const char *name);
/* Does it run these words with this environment? */
bool mcp_server_says(const struct mcp_server *server, char *const *argv, const struct environment *env);
void mcp_servers_free(struct mcp_servers *servers);
#define AUTO_MCP_SERVERS __attribute__((cleanup(mcp_servers_free)))

/* The file with the entry added, or its command, args and env replaced: order and every other key stay. malloc'ed, with a last newline. */
int mcp_spec_add(const char *text, size_t len, const char *name, char *const *argv, const struct environment *env, char **ret_text, struct err *err);
int mcp_spec_remove(const char *text, size_t len, const char *name, char **ret_text, struct err *err); /* -ENOENT: there is none */
