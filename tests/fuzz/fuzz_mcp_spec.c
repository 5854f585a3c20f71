#include "fuzz.h"

#include "pod/model/mcp_spec.h"

/* What was added is found, what is then removed is not; every other server stays as it was. */
static void check_edit(const char *text, size_t len, const struct mcp_servers *before)
{
	char command[] = "cmd", arg[] = "a\"b", *argv[] = {command, arg, NULL}, *pairs[] = {(char[]){"K=v"}, NULL};
	struct environment env = {.v = pairs, .n = 1};
	char *added = NULL, *removed = NULL;
	AUTO_MCP_SERVERS struct mcp_servers with = {0}, without = {0};
	const struct mcp_server *old = mcp_servers_find(before, "fuzz");
	if (mcp_spec_add(text, len, "fuzz", argv, &env, &added, NULL) < 0) {
		MUST(old && *old->problem);
		return;
	}
	MUST(mcp_spec_read(added, strlen(added), &with, NULL) == 0 && with.n == before->n + (old ? 0 : 1));
	const struct mcp_server *server = mcp_servers_find(&with, "fuzz");
	MUST(server && !strcmp(server->command, "cmd") && server->args.n == 1 && !strcmp(server->args.v[0], "a\"b") && server->env.n == 1);
	for (size_t i = 0; i < before->n; i++)
		MUST(!strcmp(before->v[i].name, with.v[i].name));
	MUST(mcp_spec_remove(added, strlen(added), "fuzz", &removed, NULL) == 0);
	MUST(mcp_spec_read(removed, strlen(removed), &without, NULL) == 0 && without.n + 1 == with.n && !mcp_servers_find(&without, "fuzz"));
	free(added);
	free(removed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	if (mcp_spec_read((const char *)data, size, &servers, NULL) < 0)
		return 0;
	for (size_t i = 0; i < servers.n; i++)
		MUST(servers.v[i].name && (*servers.v[i].problem || (servers.v[i].command && *servers.v[i].command)));
	if (servers.n < 4096)
		check_edit((const char *)data, size, &servers);
	return 0;
}
