/* The floor under a seeded config.json. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fsops/cleanup.h"
#include "pod/model/floor.h"
#include "pod/model/json.h"

static struct json *floored(const char *text)
{
	AUTO_FREE char *out = NULL;
	size_t len = 0;
	struct json *json = NULL;
	struct err err = {0};
	assert_int_equal(floor_apply(text, strlen(text), &out, &len, &err), 0);
	assert_int_equal(strlen(out), len);
	assert_int_equal(json_parse(out, len, &json, &err), 0);
	return json;
}

static void assert_floor(const struct json *config)
{
	static const char *const channels[] = {"tunnel", "wecom",  "telegram", "discord",  "webex",
					       "teams",	 "weixin", "imessage", "whatsapp", "feishu"};
	static const char *const closed[] = {"sandbox_allow_unsandboxed_exec", "sandbox_allow_no_isolation"};
	for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
		struct json *enabled = json_get(json_get(config, channels[i]), "enabled");
		assert_int_equal(json_kind(enabled), JSON_KIND_BOOL);
		assert_false(json_truth(enabled));
	}
	struct json *agent = json_get(config, "agent");
	assert_string_equal(json_text(json_get(agent, "sandbox")), "auto");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(json_kind(json_get(agent, closed[i])), JSON_KIND_BOOL);
		assert_false(json_truth(json_get(agent, closed[i])));
	}
}

static void an_empty_config_gets_all_of_it(void **state)
{
	(void)state;
	AUTO_JSON struct json *config = floored("{}");
	assert_floor(config);
	assert_int_equal(json_count(config), 11);
}

static void what_was_on_is_off_and_the_rest_stays(void **state)
{
	(void)state;
	AUTO_JSON struct json *config =
	    floored("{\"telegram\":{\"enabled\":true,\"token\":\"t\"},\"agent\":{\"sandbox\":\"off\",\"model\":\"m\","
		    "\"sandbox_allow_no_isolation\":true},\"mine\":[1,2.5,null,\"\xc3\xa9\"],\"big\":9007199254740993}");
	assert_floor(config);
	assert_string_equal(json_text(json_get(json_get(config, "telegram"), "token")), "t");
	assert_string_equal(json_text(json_get(json_get(config, "agent"), "model")), "m");
	assert_int_equal(json_count(json_get(config, "mine")), 4);
	assert_string_equal(json_text(json_at(json_get(config, "mine"), 3)), "\xc3\xa9");
	assert_true(json_number(json_get(config, "big"), 0) == 9007199254740993);
}

static void a_section_that_is_no_object_becomes_one(void **state)
{
	(void)state;
	static const char *const values[] = {"true", "\"on\"", "[{\"enabled\":true}]", "null", "1"};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		char text[128];
		(void)snprintf(text, sizeof text, "{\"tunnel\":%s,\"agent\":%s}", values[i], values[i]);
		AUTO_JSON struct json *config = floored(text);
		assert_floor(config);
	}
}

static void the_floor_is_stable(void **state)
{
	(void)state;
	AUTO_FREE char *once = NULL, *twice = NULL;
	size_t len = 0;
	assert_int_equal(floor_apply("{\"a\":1}", 7, &once, &len, NULL), 0);
	assert_int_equal(floor_apply(once, len, &twice, &len, NULL), 0);
	assert_string_equal(once, twice);
}

static void what_is_no_config_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "[]", "null", "\"x\"", "{", "{\"a\":1,\"a\":2}", "{\"a\":\"\xff\"}", "{}x"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *out = NULL;
		size_t len = 0;
		struct err err = {0};
		assert_int_equal(floor_apply(bad[i], strlen(bad[i]), &out, &len, &err), -EINVAL);
		assert_null(out);
		assert_true(*err.text);
	}
}

static void the_blank_config_is_json_and_closed(void **state)
{
	(void)state;
	AUTO_JSON struct json *config = NULL;
	assert_int_equal(json_parse(floor_blank_config, strlen(floor_blank_config), &config, NULL), 0);
	assert_int_equal(json_count(config), 1);
	assert_int_equal(json_kind(json_get(json_get(config, "tunnel"), "enabled")), JSON_KIND_BOOL);
	assert_false(json_truth(json_get(json_get(config, "tunnel"), "enabled")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_empty_config_gets_all_of_it),
	    cmocka_unit_test(what_was_on_is_off_and_the_rest_stays),
	    cmocka_unit_test(a_section_that_is_no_object_becomes_one),
	    cmocka_unit_test(the_floor_is_stable),
	    cmocka_unit_test(what_is_no_config_is_refused),
	    cmocka_unit_test(the_blank_config_is_json_and_closed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
