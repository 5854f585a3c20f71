/* The MCP servers of a pod: probed, run, and edited in <home>/kiro/settings/mcp.json. */
#pragma once

#include "pod/lifecycle/residence.h"
#include "pod/model/mcp_result.h"
#include "pod/model/mcp_spec.h"
#include "pod/system/viability.h"

struct probe_options {
	bool agent_only;             /* --agent */
	char *const *servers;        /* names that narrow it; none: all */
	size_t server_count;
	int64_t reply_ms;
	bool unsandboxed;            /* --no-sandbox */
};
struct probe_report {
	struct viability *agent;     /* NULL when it was not probed */
	struct mcp_result *servers;
	size_t server_count;
};
void probe_report_free(struct probe_report *report);
#define AUTO_PROBE_REPORT __attribute__((cleanup(probe_report_free)))

/* The agent, if the pod has one, and its servers. Every refused temp is a WARNING line in the pod's log. REFUSAL_USAGE: no such server. */
int servers_probe(struct session *session, const struct pod_name *name, struct probe_options options, struct probe_report *ret_report, struct err *err);
bool probe_report_well(const struct probe_report *report);

/* Becomes the server on our own descriptors; *ret_status is its exit status. Warnings go to stderr and to the pod's log. */
int server_run(struct session *session, const struct pod_name *name, const char *server, int *ret_status, struct err *err);

int servers_list(struct session *session, const struct pod_name *name, struct mcp_servers *ret_servers, struct err *err);
/* The file is replaced whole, its order and unknown keys kept. -ENOENT for a server that is not there. */
struct server_wish {
	const char *server;
	char *const *argv;
	const struct environment *env;
	bool replace; /* else one that is there with other words is REFUSAL_SERVER_EXISTS */
};
/* *ret_before: what was declared until now. One that says the same already is left as it is. */
int server_add(struct session *session, const struct pod_name *name, const struct server_wish *wish, struct mcp_servers *ret_before, struct err *err);
int server_remove(struct session *session, const struct pod_name *name, const char *server, struct err *err);
