#include "model_test.h"

#include <errno.h>
#include <jansson.h>

#include "alloc_fail.h"
#include "fsops/cleanup.h"
#include "pod/model/claims.h"
#include "pod/model/environment.h"
#include "pod/model/floor.h"
#include "pod/model/ini.h"
#include "pod/model/json.h"
#include "pod/model/mcp_client.h"
#include "pod/model/mcp_result.h"
#include "pod/model/mcp_spec.h"
#include "pod/model/record.h"
#include "pod/model/sandbox_plan.h"
#include "pod/model/table.h"
#include "pod/model/temp.h"
#include "pod/model/unit_text.h"

static const char ini_text[] = "[plane]\nroot=/r\n[payload]\nexec=a 'b c'\nhealth=tcp\n[agent]\nexec=x\n[identity a]\nsource=/x\nstaged=y\n[identity b]\nsource=/x\nstaged=y\n";
static const char record_text[] = "CHECKOUT='/c'\nEXEC='[\"sh\",\"-c\",\"it\\u0027s\"]'\nPORT='1'\nFUTURE='x'\nFUTURE='y'\n";

static int said(int r, const struct err *err)
{
	return r < 0 && err->code != r ? -1 : r; /* what is returned is what is said */
}

static int split(void *context)
{
	AUTO_WORDS struct words words = {0};
	struct err err = {0};
	return said(words_split(context, &words, &err), &err);
}

static int fill_and_copy(void *context)
{
	static const struct placeholders values = {.port = "1", .home = "/h", .os_home = "/o", .name = "n"};
	AUTO_WORDS struct words filled = {0}, copy = {0};
	struct err err = {0};
	int r = words_fill(context, &values, &filled, &err);
	if (r == 0)
		r = words_copy(filled.v, filled.n, &copy, &err);
	return said(r, &err);
}

static int quote(void *context)
{
	AUTO_FREE char *quoted = shell_quote(context);
	return quoted ? 0 : -ENOMEM;
}

static int read_ini(void *context)
{
	AUTO_INI struct ini ini = {.file = NULL}, over = {.file = NULL};
	struct err err = {0};
	(void)context;
	int r = ini_read("f", ini_text, sizeof ini_text - 1, INI_SCOPE_OPERATOR, &ini, &err);
	if (r == 0)
		r = ini_read("g", ini_text, sizeof ini_text - 1, INI_SCOPE_OPERATOR, &over, &err);
	if (r == 0)
		r = ini_merge(&ini, &over, &err);
	return said(r, &err);
}

static int read_record(void *context)
{
	AUTO_RECORD struct record record = {.count = 0}, copy = {.count = 0};
	AUTO_FREE char *text = NULL;
	size_t len;
	struct err err = {0};
	(void)context;
	int r = record_parse(record_text, sizeof record_text - 1, &record, &err);
	if (r == 0)
		r = record_copy(&record, &copy, &err);
	if (r == 0)
		r = record_set(&copy, "NEW", "1", &err);
	if (r == 0)
		r = record_render(&copy, &text, &len, &err);
	return said(r, &err);
}

static int spec_there_and_back(void *context)
{
	AUTO_SPEC struct spec spec = {.port = 0};
	AUTO_RECORD struct record out = {.count = 0};
	struct err err = {0};
	int r = spec_from_record(context, &spec, &err);
	if (r == 0)
		r = spec_to_record(&spec, &out, &err);
	return said(r, &err);
}

static int keep_claims(void *context)
{
	struct claim one = {.port = 1};
	AUTO_CLAIMS struct claims again = {0};
	AUTO_FREE char *bytes = NULL;
	size_t len;
	struct err err = {0};
	(void)context;
	int r = claims_render(&(struct claims){.v = &one, .n = 1}, &bytes, &len, &err);
	if (r == 0)
		r = claims_parse(bytes, len, &again, &err);
	return said(r, &err);
}

static int parse_json(void *context)
{
	AUTO_JSON struct json *json = NULL;
	struct err err = {0};
	return said(json_parse(context, strlen(context), &json, &err), &err);
}

static int build_json(void *context)
{
	AUTO_JSON struct json *object = json_new_object(), *copy = NULL;
	AUTO_FREE char *text = NULL;
	(void)context;
	struct json *array = json_new_array();
	int r = json_append(array, json_new_string("a\xff"));
	if (r == 0)
		r = json_append(array, json_new_integer(7));
	if (r < 0) {
		json_free(array);
		return object && array && r != -ENOMEM ? -1 : -ENOMEM;
	}
	if (!object) {
		json_free(array);
		return -ENOMEM;
	}
	r = json_set(object, "list\xfe", array);
	if (r == 0)
		r = json_set(object, "long enough to need a larger table", json_new_string("text"));
	if (r < 0)
		return r;
	copy = json_clone(object);
	text = copy ? json_dump(copy, 1) : NULL;
	return text ? 0 : -ENOMEM;
}

static const struct plane plane = {.home = "/home/op",
				   .root = "/pods",
				   .pods_dir = "/home/op/.kiro/crew/pods",
				   .artifacts = "/pods/.e2e-artifacts",
				   .config_home = "/home/op/config",
				   .data_home = "/home/op/data",
				   .base_port = 7810,
				   .port_span = 199,
				   .live_port = 5476,
				   .prefix = "kirocrew-pod",
				   .path = "/usr/bin:/bin",
				   .repo = "/src",
				   .worktrees_root = "/trees",
				   .kiro_bin = "/usr/bin/kiro",
				   .health_secs = 90};

static int environments(void *context)
{
	char *host[] = {(char[]){"PATH=/bin"}, (char[]){"LD_PRELOAD=/x.so"}, (char[]){"AWS_SECRET_KEY=x"}, (char[]){"SLACK_X=y"}, NULL};
	AUTO_ENVIRONMENT struct environment base = {0}, payload = {0}, agent = {0}, own = {0}, of_plane = {0};
	struct pod_paths paths;
	struct pod_name name;
	struct err err = {0};
	int r = pod_name_parse("demo", 4, &name, &err);
	if (r == 0)
		r = pod_paths_make(&plane, &name, &paths, &err);
	if (r == 0)
		r = environment_copy(host, &base, &err);
	if (r == 0)
		r = environment_for_payload(&plane, &name, context, &paths, &base, &payload, &err);
	if (r == 0)
		r = environment_for_agent(&payload, &paths, &agent, &err);
	if (r == 0)
		r = environment_of_pod(&plane, &name, context, &paths, &own, &err);
	if (r == 0)
		r = environment_of_plane(&plane, &of_plane, &err);
	return said(r, &err);
}

static int units(void *context)
{
	const struct unit_input input = {.plane = &plane, .program = "/usr/bin/kirocrew-pod", .config_file = "/c.ini", .stop_secs = 15};
	AUTO_FREE char *text = NULL, *plist = NULL;
	struct pod_name name;
	struct err err = {0};
	(void)context;
	int r = pod_name_parse("demo", 4, &name, &err);
	if (r == 0)
		r = unit_text_template(&input, &text, &err);
	if (r == 0)
		r = unit_text_plist(&input, &name, &plist, &err);
	return said(r, &err);
}

static int sandbox_words(void *context)
{
	char *command[] = {(char[]){"/bin/server"}, (char[]){"-x"}, NULL};
	AUTO_WORDS struct words bwrap = {0}, seatbelt = {0};
	AUTO_ENVIRONMENT struct environment outer = {0};
	struct err err = {0};
	const struct sandbox_plan plan = {.program = "/usr/bin/bwrap",
					  .by_descriptor = true,
					  .new_session = true,
					  .home = "/h",
					  .run = "/h/run",
					  .run_canonical = "/h/run",
					  .scratch = "/h/run/s",
					  .scratch_canonical = "/h/run/s",
					  .cwd = "/h",
					  .argv = command,
					  .environment = context};
	int r = sandbox_plan_bwrap(&plan, &bwrap, &outer, &err);
	if (r == 0)
		r = sandbox_plan_seatbelt(&plan, &seatbelt, &err);
	return said(r, &err);
}

static const char mcp_json[] = "{\"mcpServers\":{\"a\":{\"command\":\"c\",\"args\":[\"x\",\"y\"],\"cwd\":\"/w\",\"env\":{\"K\":\"v\",\"TMPDIR\":\"/t\"}},"
			       "\"b\":{\"command\":\"d\"}}}";

static int mcp_specs(void *context)
{
	char *command[] = {(char[]){"c"}, (char[]){"x"}, NULL};
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	AUTO_FREE char *added = NULL, *fresh = NULL, *removed = NULL;
	struct err err = {0};
	int r = mcp_spec_read(mcp_json, strlen(mcp_json), &servers, &err);
	if (r == 0)
		r = mcp_spec_add(mcp_json, strlen(mcp_json), "new", command, context, &added, &err);
	if (r == 0)
		r = mcp_spec_add("\n", 1, "new", command, context, &fresh, &err);
	if (r == 0)
		r = mcp_spec_remove(mcp_json, strlen(mcp_json), "b", &removed, &err);
	return said(r, &err);
}

static int temps(void *context)
{
	char *declared[] = {(char[]){"tmpdir=/a"}, (char[]){"TEMP=/b"}, NULL};
	AUTO_ENVIRONMENT struct environment wanted = {0}, managed = {0}, own = {0};
	AUTO_TEMP_DECLARATION struct temp_declaration declaration = {0}, none = {0};
	enum temp_source source;
	const char *path;
	struct err err = {0};
	(void)context;
	int r = environment_copy(declared, &wanted, &err);
	if (r == 0)
		r = environment_copy(declared, &managed, &err);
	if (r == 0)
		r = environment_copy(declared, &own, &err);
	if (r == 0)
		r = temp_declaration_read(&wanted, &declaration, &err);
	if (r == 0)
		r = temp_apply(&managed, &none, "/managed", &source, &path, &err);
	if (r == 0)
		r = temp_apply(&own, &declaration, "/managed", &source, &path, &err);
	return said(r, &err);
}

static int hear(struct mcp_client *client, const char *line)
{
	struct jsonrpc_reader reader = {0};
	AUTO_JSONRPC_EVENT struct jsonrpc_event event = {0};
	AUTO_FREE char *send = NULL;
	struct err err = {0};
	size_t taken;
	int r = jsonrpc_read(&reader, line, strlen(line), &taken, &event, &err);
	if (r == 0)
		r = mcp_client_take(client, &event, &send, &err);
	jsonrpc_reader_free(&reader);
	return said(r, &err);
}

static int handshake(void *context)
{
	static const char *const lines[] = {
		"Hello.\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"serverInfo\":{\"name\":\"s\"}}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"roots/list\"}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"t\"},{}],\"nextCursor\":\"c\"}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[],\"nextCursor\":\"c\"}}\n",
	};
	AUTO_MCP_CLIENT struct mcp_client client = {0};
	AUTO_FREE char *first = NULL;
	struct err err = {0};
	(void)context;
	int r = said(mcp_client_start(&client, "0", &first, &err), &err);
	for (size_t i = 0; r == 0 && i < COUNT(lines); i++)
		r = hear(&client, lines[i]);
	return r < 0 ? r : said(mcp_client_finish(&client, &err), &err);
}

/* Ends of a handshake of which only a warning is left to say. */
static int hear_after_the_first(const char *line)
{
	AUTO_MCP_CLIENT struct mcp_client client = {0};
	AUTO_FREE char *first = NULL;
	struct err err = {0};
	int r = said(mcp_client_start(&client, "0", &first, &err), &err);
	if (r == 0)
		r = hear(&client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}\n");
	return r < 0 ? r : hear(&client, line);
}

static int no_tools(void *context)
{
	return hear_after_the_first(context);
}

static int too_long(void *context)
{
	AUTO_MCP_CLIENT struct mcp_client client = {0};
	AUTO_FREE char *first = NULL, *send = NULL;
	struct err err = {0};
	const struct jsonrpc_event event = {.kind = JSONRPC_TOO_LONG};
	(void)context;
	int r = said(mcp_client_start(&client, "0", &first, &err), &err);
	client.initialized = true;
	return r < 0 ? r : said(mcp_client_take(&client, &event, &send, &err), &err);
}

static int result_of_a_probe(void *context)
{
	AUTO_JSON struct json *json = mcp_result_json(context);
	return json ? 0 : -ENOMEM;
}

static int rows(void *context)
{
	static const struct table_column columns[] = {{.heading = "A"}, {.heading = "B"}};
	static const char *const cells[] = {"a", "b\x1b"};
	AUTO_TABLE struct table table = {.columns = columns, .n = 2};
	(void)context;
	int r = table_add(&table, cells, TONE_PLAIN);
	return r < 0 ? r : table_add(&table, cells, TONE_PLAIN);
}

static int floored(void *context)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	struct err err = {0};
	return said(floor_apply(context, strlen(context), &text, &len, &err), &err);
}

static void walk(int (*step)(void *), void *context, long at_least)
{
	long failures = alloc_walk(step, context, -ENOMEM);
	if (failures < at_least)
		fail_msg("%ld failures, at least %ld expected", failures, at_least);
}

static void X52_words(void **state)
{
	char *v[] = {(char[]){"a{port}"}, (char[]){"b"}, NULL};
	struct words words = {v, 2};
	(void)state;
	walk(split, (char[]){"a 'b c' d"}, 6);
	walk(fill_and_copy, &words, 6);
	walk(quote, (char[]){"it's"}, 1);
}

static void X52_configuration(void **state)
{
	(void)state;
	walk(read_ini, NULL, 20);
}

static void X52_records(void **state)
{
	AUTO_RECORD struct record record = {.count = 0};
	struct err err = {0};
	(void)state;
	walk(read_record, NULL, 20);
	walk(keep_claims, NULL, 2);
	assert_done(record_parse(record_text, sizeof record_text - 1, &record, &err), &err);
	walk(spec_there_and_back, &record, 20);
}

static void X52_json(void **state)
{
	(void)state;
	walk(parse_json, (char[]){"{\"a\":[1,\"x\",{\"b\":2.5}],\"c\":\"a longer string\"}"}, 10);
	walk(build_json, NULL, 10);
}

static void X52_environments_and_units(void **state)
{
	char *words[] = {(char[]){"server"}, NULL};
	struct spec command = {.id = "0b54b1f6-6d9c-4d04-8a33-0f2f3a4bd0a1", .exec = {words, 1}, .port = 7933, .approval = APPROVAL_READS, .crons = true};
	struct spec checkout = {.id = "0b54b1f6-6d9c-4d04-8a33-0f2f3a4bd0a1", .checkout = (char[]){"/src"}, .port = 7933};
	(void)state;
	walk(environments, &command, 40);
	walk(environments, &checkout, 40);
	walk(units, NULL, 10);
}

static void X52_sandboxes_and_temps(void **state)
{
	char *envp[] = {(char[]){"PATH=/bin"}, (char[]){"LD_LIBRARY_PATH=/x"}, (char[]){"A=b"}, NULL};
	AUTO_ENVIRONMENT struct environment environment = {0};
	(void)state;
	assert_int_equal(environment_copy(envp, &environment, NULL), 0);
	walk(sandbox_words, &environment, 20);
	walk(temps, NULL, 10);
}

static void X52_servers(void **state)
{
	char *envp[] = {(char[]){"K=v"}, (char[]){"L=w"}, NULL};
	AUTO_ENVIRONMENT struct environment environment = {0};
	(void)state;
	assert_int_equal(environment_copy(envp, &environment, NULL), 0);
	walk(mcp_specs, &environment, 60);
	walk(handshake, NULL, 40);
	walk(no_tools, (char[]){"{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"none\"}}\n"}, 20);
	walk(too_long, NULL, 10);
}

static void X52_results(void **state)
{
	struct temp_declared declared = {.key = (char[]){"TMPDIR"}, .value = (char[]){"/h/run/t"}, .answer = {.cause = CONTAIN_SEALED}};
	AUTO_JSON struct json *info = json_new_object();
	struct mcp_result result = {.server = (char[]){"srv"}, .protocol = "2025-11-25", .server_info = info, .temp = TEMP_MANAGED, .temp_path = "/t", .refusals = {&declared, 1}};
	(void)state;
	walk(result_of_a_probe, &result, 20);
	walk(rows, NULL, 4);
	walk(floored, (char[]){"{\"tunnel\":{\"enabled\":true},\"agent\":7}"}, 20);
}

int main(void)
{
	/* Objects take their seed once: outside of the walks, so that each run allocates alike. */
	json_object_seed(0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X52_words),
		cmocka_unit_test(X52_configuration),
		cmocka_unit_test(X52_records),
		cmocka_unit_test(X52_json),
		cmocka_unit_test(X52_environments_and_units),
		cmocka_unit_test(X52_sandboxes_and_temps),
		cmocka_unit_test(X52_servers),
		cmocka_unit_test(X52_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
