/* The client's side of an MCP handshake, line by line. */
#include "model_test.h"

#include "fsops/cleanup.h"
#include "pod/model/mcp_client.h"
#include "pod/model/mcp_result.h"
#include "pod/model/mcp_spec.h"

#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",\"serverInfo\":{\"name\":\"s\"}}}\n"

static struct mcp_client client;
static char sent[4096]; /* the last lines that went out */

static void hear(const char *text)
{
	struct jsonrpc_reader reader = {0};
	for (size_t len = strlen(text), taken; len; text += taken, len -= taken) {
		AUTO_JSONRPC_EVENT struct jsonrpc_event event = {0};
		AUTO_FREE char *line = NULL;
		assert_int_equal(jsonrpc_read(&reader, text, len, &taken, &event, NULL), 0);
		assert_int_equal(mcp_client_take(&client, &event, &line, NULL), 0);
		(void)snprintf(sent, sizeof sent, "%s", line ? line : "");
	}
	jsonrpc_reader_free(&reader);
}

static int begin(void **state)
{
	AUTO_FREE char *line = NULL;
	(void)state;
	return mcp_client_start(&client, "0", &line, NULL);
}
static int end(void **state)
{
	(void)state;
	mcp_client_free(&client);
	return 0;
}

static bool warned(const char *part)
{
	for (size_t i = 0; i < json_count(client.warnings); i++)
		if (strstr(json_text(json_at(client.warnings, i)), part))
			return true;
	return false;
}

static void a_tool_without_a_name_hides_no_other(void **state)
{
	(void)state;
	hear(INITIALIZED);
	hear("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"a\"},{\"name\":7},{},{\"name\":\"b\"}]}}\n");
	assert_int_equal(client.progress, MCP_OK);
	assert_int_equal(json_count(client.tools), 2);
	assert_string_equal(json_text(json_at(client.tools, 1)), "b");
	assert_true(warned("a tool without a name"));
}

static void what_makes_it_fail(void **state)
{
	static const struct {
		const char *lines, *detail;
	} rows[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", "no protocolVersion"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1999-01-01\"}}\n", "speaks protocol 1999-01-01"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"no\"}}\n", "`initialize` was answered with an error: no (-32603)"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}\n", "an error without a message (0)"},
		{INITIALIZED "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":{}}}\n", "no list of tools"},
		{INITIALIZED "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32603,\"message\":\"later\"}}\n", "`tools/list` was answered with an error: later"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		hear(rows[i].lines);
		assert_int_equal(client.progress, MCP_FAILED);
		if (!strstr(client.detail, rows[i].detail))
			fail_msg("expected \"%s\" in \"%s\"", rows[i].detail, client.detail);
		hear(INITIALIZED); /* it is over */
		assert_int_equal(client.progress, MCP_FAILED);
		(void)end(state);
		assert_int_equal(begin(state), 0);
	}
}

static void other_messages_are_answered_or_passed_over(void **state)
{
	(void)state;
	hear("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n");
	assert_non_null(strstr(sent, "\"result\":{}"));
	hear("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"sampling/createMessage\"}\n");
	assert_non_null(strstr(sent, "-32601"));
	hear("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n");
	hear("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n");
	hear("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n");
	assert_int_equal(client.progress, MCP_GOES_ON);
	assert_string_equal(sent, "");
	assert_int_equal(mcp_client_finish(&client, NULL), 0);
	assert_int_equal(json_count(client.warnings), 0);
}

/* Neither a request nor a response (JSON-RPC 2.0, section 4 and 5). */
static void what_is_no_message_is_counted(void **state)
{
	static const char *const junk[] = {
		"Listening.\n",
		"\n",
		"[]\n",
		"{\"id\":1,\"result\":{}}\n",
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":{}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"error\":{}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}\n",
		"{\"jsonrpc\":\"2.0\",\"result\":{}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"text\"}\n",
	};
	(void)state;
	hear(junk[0]);
	assert_int_equal(mcp_client_finish(&client, NULL), 0);
	assert_true(warned("1 line on stdout that is no message, the first: Listening."));
	for (size_t i = 0; i < COUNT(junk); i++) {
		unsigned long long before = client.junk;
		hear(junk[i]);
		if (client.junk != before + 1)
			fail_msg("taken for a message: %s", junk[i]);
	}
	assert_int_equal(mcp_client_finish(&client, NULL), 0);
	assert_true(warned("13 lines on stdout that are no message"));
}

static void a_server_without_tools_is_well(void **state)
{
	(void)state;
	hear(INITIALIZED "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"none\"}}\n");
	assert_int_equal(client.progress, MCP_OK);
	assert_true(warned("it has no tools"));
}

static void a_server_need_not_say_who_it_is(void **state)
{
	(void)state;
	hear("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2024-11-05\",\"serverInfo\":\"text\"}}\n");
	assert_int_equal(client.progress, MCP_GOES_ON);
	assert_null(client.server_info);
	hear("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[],\"nextCursor\":\"\"}}\n");
	assert_int_equal(client.progress, MCP_OK);
}

static void more_tools_than_anybody_has(void **state)
{
	static char page[64 * (MCP_TOOLS_MAX + 2)];
	size_t len = (size_t)snprintf(page, sizeof page, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"nextCursor\":\"next\",\"tools\":[");
	for (int i = 0; i <= MCP_TOOLS_MAX; i++)
		len += (size_t)snprintf(page + len, sizeof page - len, "%s{\"name\":\"t%d\"}", i ? "," : "", i);
	(void)snprintf(page + len, sizeof page - len, "]}}\n");
	(void)state;
	hear(INITIALIZED);
	hear(page);
	assert_int_equal(client.progress, MCP_OK);
	assert_int_equal(json_count(client.tools), MCP_TOOLS_MAX);
	assert_true(warned("`tools/list` has no end; stopped after 1 pages"));
}

/* --- the specification --- */

static void expect_problem(const char *entry, const char *problem)
{
	char text[1024];
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	struct err err = {0};
	(void)snprintf(text, sizeof text, "{\"mcpServers\":{\"srv\":%s}}", entry);
	assert_done(mcp_spec_read(text, strlen(text), &servers, &err), &err);
	if (servers.n != 1 || !strstr(servers.v[0].problem, problem))
		fail_msg("%s: expected \"%s\", got \"%s\"", entry, problem, servers.v[0].problem);
}

static void an_entry_that_cannot_be_used_is_listed_with_its_problem(void **state)
{
	(void)state;
	expect_problem("[]", "not an object");
	expect_problem("{\"url\":\"https://x\"}", "reached by a URL");
	expect_problem("{}", "`command` is missing");
	expect_problem("{\"command\":\"\"}", "`command` is missing");
	expect_problem("{\"command\":\"c\",\"cwd\":7}", "`cwd` is not a string");
	expect_problem("{\"command\":\"c\",\"args\":{}}", "`args` is not a list");
	expect_problem("{\"command\":\"c\",\"args\":[\"a\",7]}", "an entry of `args`");
	expect_problem("{\"command\":\"c\",\"env\":[]}", "`env` is not an object");
	expect_problem("{\"command\":\"c\",\"env\":{\"A\":1}}", "a value of `env`");
	expect_problem("{\"command\":\"c\",\"env\":{\"A=B\":\"1\"}}", "cannot be carried");
	expect_problem("{\"command\":\"c\",\"cwd\":7,\"args\":{}}", "`cwd` is not a string"); /* the first is said */
	expect_problem("{\"command\":\"c\",\"url\":\"https://x\"}", "");
}

static void a_file_that_is_no_such_document_is_an_error(void **state)
{
	static char big[MCP_SPEC_BYTES_MAX + 2];
	static const char *const texts[] = {"[]", "{\"mcpServers\":[]}", "{", "\f", "x"};
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	AUTO_FREE char *edited = NULL;
	struct err err = {0};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_int_equal(mcp_spec_read(texts[i], strlen(texts[i]), &servers, &err), -EINVAL);
		assert_int_equal(mcp_spec_remove(texts[i], strlen(texts[i]), "srv", &edited, &err), -EINVAL);
	}
	assert_int_equal(mcp_spec_read("\0", 1, &servers, &err), -EINVAL);
	memset(big, ' ', sizeof big);
	assert_int_equal(mcp_spec_read(big, sizeof big, &servers, &err), -EFBIG);
	assert_done(mcp_spec_read(" \t\r\n", 4, &servers, &err), &err);
	assert_int_equal(servers.n, 0);
	assert_null(mcp_servers_find(&servers, "srv"));
}

static void what_cannot_be_edited_is_refused(void **state)
{
	char *argv[] = {(char[]){"c"}, NULL};
	const struct environment none = {0};
	AUTO_FREE char *edited = NULL;
	struct err err = {0};
	static const char odd[] = "{\"mcpServers\":{\"srv\":[]}}";
	(void)state;
	assert_int_equal(mcp_spec_add(odd, strlen(odd), "srv", argv, &none, &edited, &err), -EINVAL);
	assert_refused(mcp_spec_add("", 0, "", argv, &none, &edited, &err), &err, REFUSAL_USAGE, "no name");
	assert_refused(mcp_spec_add("", 0, "a\xff", argv, &none, &edited, &err), &err, REFUSAL_USAGE, "no name");
	assert_refused(mcp_spec_add("", 0, "srv", (char *[]){(char[]){""}, NULL}, &none, &edited, &err), &err, REFUSAL_USAGE, "empty");
	assert_refused(mcp_spec_add("", 0, "srv", (char *[]){(char[]){"c"}, (char[]){"\xff"}, NULL}, &none, &edited, &err), &err, REFUSAL_USAGE, "UTF-8");
	assert_int_equal(mcp_spec_add("{", 1, "srv", argv, &none, &edited, &err), -EINVAL);
	assert_int_equal(mcp_spec_remove("{}", 2, "srv", &edited, &err), -ENOENT);
	assert_null(edited);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tool_without_a_name_hides_no_other),
		TEST(what_makes_it_fail),
		TEST(other_messages_are_answered_or_passed_over),
		TEST(what_is_no_message_is_counted),
		TEST(a_server_without_tools_is_well),
		TEST(a_server_need_not_say_who_it_is),
		TEST(more_tools_than_anybody_has),
		TEST(an_entry_that_cannot_be_used_is_listed_with_its_problem),
		TEST(a_file_that_is_no_such_document_is_an_error),
		TEST(what_cannot_be_edited_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
