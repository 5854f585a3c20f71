/* The client's side of an MCP handshake: initialize → notifications/initialized → tools/list with its pages. Events in, lines out. Pure.
 * Model Context Protocol, lifecycle and tools. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/err.h"
#include "pod/model/jsonrpc.h"

#define MCP_PROTOCOL_NEWEST "2025-11-25"
#define MCP_PAGES_MAX 64
#define MCP_TOOLS_MAX 4096

enum mcp_progress { MCP_GOES_ON, MCP_OK, MCP_FAILED };

struct mcp_client {
	enum mcp_progress progress;
	int64_t id; /* of the request that waits for its response; each new one starts a new time limit */
	bool initialized;
	char protocol[32];        /* as agreed, "" before */
	struct json *server_info; /* as the server says, or NULL */
	struct json *tools;       /* names */
	struct json *warnings;    /* escaped texts */
	struct json *cursors;     /* seen */
	size_t pages;
	unsigned long long junk;
	char junk_sample[128];
	char detail[512];         /* why it failed, escaped */
};

/* *ret_send is the first line to send, owned by the caller. */
int mcp_client_start(struct mcp_client *client, const char *version, char **ret_send, struct err *err);
/* *ret_send: lines to send, owned, or NULL. After anything but MCP_GOES_ON there is no more to ask. */
int mcp_client_take(struct mcp_client *client, const struct jsonrpc_event *event, char **ret_send, struct err *err);
/* Adds the warnings that are counted: once, at the end. */
int mcp_client_finish(struct mcp_client *client, struct err *err);
int mcp_client_warn(struct mcp_client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mcp_client_free(struct mcp_client *client);
#define AUTO_MCP_CLIENT __attribute__((cleanup(mcp_client_free)))
