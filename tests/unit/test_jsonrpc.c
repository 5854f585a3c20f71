#include "seal_test.h"

#include "pod/model/jsonrpc.h"

/* All events of a text as one word each, fed in pieces of `step` bytes. */
static char *events_of(const char *text, size_t len, size_t step)
{
	static char out[4096];
	struct jsonrpc_reader reader = {0};
	out[0] = '\0';
	for (size_t at_byte = 0; at_byte < len;) {
		size_t taken = 0, left = len - at_byte < step ? len - at_byte : step;
		AUTO_JSONRPC_EVENT struct jsonrpc_event event = {0};
		assert_int_equal(jsonrpc_read(&reader, text + at_byte, left, &taken, &event, NULL), 0);
		assert_true(taken > 0 && taken <= left);
		at_byte += taken;
		static const char *const names[] = {"", "R", "Q", "N", "J", "L"};
		(void)strncat(out, names[event.kind], sizeof out - strlen(out) - 1);
	}
	jsonrpc_reader_free(&reader);
	return out;
}
static void assert_events(const char *text, const char *expected)
{
	for (size_t step = 1; step < 40; step += 7)
		assert_string_equal(events_of(text, strlen(text), step), expected);
	assert_string_equal(events_of(text, strlen(text), 1 << 20), expected);
}

static void messages(void **state)
{
	(void)state;
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", "R");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\r\n", "R");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"m\"}}\n", "R");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n", "QN");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", ""); /* no newline, no line */
	assert_events("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", "R");
}
static void M01_M04_junk(void **state)
{
	(void)state;
	assert_events("hello\n\n\xef\xbb\xbf\n{}\n[1\nnull\n", "JJJJJJ");
	assert_events("\xff\xfe\n{\"a\":\"\xc0\xaf\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\\ud800\"}\n", "JJJ");
	assert_events("{\"id\":1,\"result\":{}}\n", "J");
	assert_events("{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}\n", "J");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1}\n", "J");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{}}\n", "J");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}\n", "J");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}\n", "J");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":1}\n", "J");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}\n", "J");
	assert_events("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"result\":1}\n", "J");
	assert_events("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}]\n", "J");
}
static void the_sample_is_escaped(void **state)
{
	(void)state;
	struct jsonrpc_reader reader = {0};
	AUTO_JSONRPC_EVENT struct jsonrpc_event event = {0};
	size_t taken;
	const char *line = "\x1b[2J bad \xff\n";
	assert_int_equal(jsonrpc_read(&reader, line, strlen(line), &taken, &event, NULL), 0);
	assert_int_equal(event.kind, JSONRPC_JUNK);
	assert_non_null(strstr(event.sample, " bad "));
	for (const char *c = event.sample; *c; c++)
		assert_true((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7f);
	jsonrpc_reader_free(&reader);
}
static void M05_a_line_is_bounded(void **state)
{
	(void)state;
	size_t size = JSONRPC_LINE_MAX + 2;
	char *text = malloc(size);
	assert_non_null(text);
	memset(text, 'x', size);
	text[JSONRPC_LINE_MAX] = '\n';
	assert_string_equal(events_of(text, JSONRPC_LINE_MAX + 1, 65536), "J");
	text[JSONRPC_LINE_MAX] = 'x';
	text[JSONRPC_LINE_MAX + 1] = '\n';
	assert_string_equal(events_of(text, JSONRPC_LINE_MAX + 2, 1 << 21), "L");
	assert_non_null(strchr(events_of(text, JSONRPC_LINE_MAX + 2, 65536), 'L'));
	struct jsonrpc_reader reader = {0};
	struct jsonrpc_event event;
	size_t taken;
	for (int i = 0; i < 64; i++)
		assert_int_equal(jsonrpc_read(&reader, text, JSONRPC_LINE_MAX, &taken, &event, NULL), 0);
	assert_int_equal(event.kind, JSONRPC_TOO_LONG);
	assert_true(reader.size <= 2 * JSONRPC_LINE_MAX + 2);
	jsonrpc_reader_free(&reader);
	free(text);
}
static struct jsonrpc_event one(const char *line)
{
	struct jsonrpc_reader reader = {0};
	struct jsonrpc_event event = {0};
	size_t taken;
	assert_int_equal(jsonrpc_read(&reader, line, strlen(line), &taken, &event, NULL), 0);
	jsonrpc_reader_free(&reader);
	return event;
}
static void M06_own_id_only(void **state)
{
	(void)state;
	static const struct {
		const char *id;
		bool own;
	} table[] = {{"1", true}, {"2", false}, {"\"1\"", false}, {"-1", false}};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		char line[128];
		(void)snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", table[i].id);
		struct jsonrpc_event event = one(line);
		assert_int_equal(event.kind, JSONRPC_RESPONSE);
		assert_int_equal(jsonrpc_answers(&event, 1), table[i].own);
		jsonrpc_event_free(&event);
	}
}
static void built_lines_read_back(void **state)
{
	(void)state;
	struct json *params = json_new_object();
	assert_int_equal(json_set(params, "k", json_new_string("a\nb")), 0);
	char *line = jsonrpc_request(7, "initialize", params);
	struct jsonrpc_event event = one(line);
	assert_int_equal(event.kind, JSONRPC_REQUEST);
	assert_string_equal(event.method, "initialize");
	assert_int_equal(json_number(event.id, 0), 7);
	assert_string_equal(json_text(json_get(event.params, "k")), "a\nb");
	char *answer = jsonrpc_result(event.id, NULL), *no = jsonrpc_error(event.id, JSONRPC_METHOD_NOT_FOUND, "no such method");
	assert_string_equal(answer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
	struct jsonrpc_event refused = one(no);
	char text[128];
	assert_true(jsonrpc_answers(&refused, 7));
	jsonrpc_error_text(&refused, text, sizeof text);
	assert_string_equal(text, "no such method (-32601)");
	char *told = jsonrpc_notification("notifications/initialized", NULL);
	assert_string_equal(told, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
	jsonrpc_event_free(&event);
	jsonrpc_event_free(&refused);
	free(line);
	free(answer);
	free(no);
	free(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages),	       cmocka_unit_test(M01_M04_junk),	  cmocka_unit_test(the_sample_is_escaped),
		cmocka_unit_test(M05_a_line_is_bounded), cmocka_unit_test(M06_own_id_only), cmocka_unit_test(built_lines_read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
