/* One MCP server in its sandbox, for the probe and for `mcp run`: both get words, environment, temp and seal from mcp_prepare, so that a green
 * probe is the truth about a run (contract, section 12). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/environment.h"
#include "pod/model/mcp_result.h"
#include "pod/model/mcp_spec.h"
#include "pod/system/sandbox.h"
#include "pod/system/scratch.h"

#define MCP_REPLY_MS 15000
#define MCP_AT_ONCE 5

struct mcp_context {
	const struct pin *home;
	const char *home_path;                 /* as the pod spells it */
	const char *cwd;                       /* where a server without `cwd` runs: the workspace */
	const struct environment *environment; /* environment_for_agent's: servers are started by the agent */
	const struct sandbox_program *sandbox;
};

/* Ready to be started. */
struct mcp_prepared {
	char command[PLANE_PATH_MAX];
	char cwd[PLANE_PATH_MAX];
	struct words argv;
	struct environment environment;
	struct temp_declaration declaration; /* with the answers */
	enum temp_source temp;
	char temp_path[PLANE_PATH_MAX + 64]; /* "" none */
	char temp_problem[320];              /* why there is no managed directory, escaped, "" none */
	struct scratch scratch;              /* SCRATCH_NONE when a clear declaration is honoured */
};
#define MCP_PREPARED_NONE ((struct mcp_prepared){.scratch = SCRATCH_NONE})
/* Fails when the specification cannot be run (its problem; a command that is not found or cannot be executed). A managed directory is made
 * here; mcp_prepared_free leaves it to scratch_remove, or to the sweep. */
int mcp_prepare(const struct mcp_context *context, const struct mcp_server *server, struct deadline until, struct mcp_prepared *ret_prepared,
		struct err *err);
void mcp_prepared_free(struct mcp_prepared *prepared);
/* The sandbox request of it; borrowed from both. */
struct sandbox_request mcp_request(const struct mcp_context *context, const struct mcp_prepared *prepared);

/* A server that is not well is a result, not a failure. `reply_ms` is the limit of each reply; `version` is ours, for clientInfo. */
int mcp_probe(const struct mcp_context *context, const struct mcp_server *server, const char *version, int64_t reply_ms,
	      struct mcp_result *ret_result, struct err *err);
/* All of `servers`, MCP_AT_ONCE at a time, after a sweep; ret_results has room for as many, in the same order. On failure none is left. */
int mcp_probe_all(const struct mcp_context *context, const struct mcp_server *const *servers, size_t count, const char *version, int64_t reply_ms,
		  struct mcp_result *ret_results, struct err *err);

/* Becomes the server as far as its caller can tell: it has our descriptors 0, 1 and 2, gets our signals, and *ret_status is the exit status
 * as a shell would tell it. The caller prints the warnings (of refused temps) before, from `warn`. */
int mcp_run(const struct mcp_context *context, const struct mcp_server *server, void (*warn)(const char *text, void *to), void *to, int *ret_status,
	    struct err *err);
