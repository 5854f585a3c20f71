#include "model_test.h"

#include "fsops/cleanup.h"
#include "pod/model/json.h"
#include "pod/model/text.h"

static struct json *parsed(const char *text)
{
	struct json *json = NULL;
	struct err err = {0};
	assert_done(json_parse(text, strlen(text), &json, &err), &err);
	return json;
}

static void values_come_back_as_they_were(void **state)
{
	static const char *const texts[] = {
		"null", "true", "false", "0", "-1", "9223372036854775807", "-9223372036854775808", "\"\"", "\"a\\\"b\\\\c\\n\"", "[]", "{}",
		"[1,[2,[3,{}]],\"x\"]", "{\"z\":1,\"a\":{\"m\":null},\"b\":[true]}", "\"\xc3\xa4\xe2\x82\xac\"", "1.5", "\"\\u0001\"",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO_JSON struct json *json = parsed(texts[i]);
		AUTO_FREE char *dumped = json_dump(json, 0);
		assert_non_null(dumped);
		assert_string_equal(dumped, texts[i]);
	}
}

static void hostile_texts_are_refused(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} bad[] = {
#define BAD(text) {text, sizeof text - 1}
		BAD(""), BAD(" "), BAD("{"), BAD("[1"), BAD("[1,]"), BAD("{\"a\":1,\"a\":2}"), BAD("{\"a\":{\"b\":1,\"b\":1}}"), BAD("{a:1}"), BAD("'a'"),
		BAD("01"), BAD("+1"), BAD("1."), BAD(".5"), BAD("NaN"), BAD("Infinity"), BAD("1e999"), BAD("9223372036854775808"), BAD("nul"), BAD("True"),
		BAD("\"a\nb\""), BAD("\"\\u0000\""), BAD("{\"\\u0000\":1}"), BAD("\"\\ud800\""), BAD("\"\\udc00\\ud800\""), BAD("\"\\x41\""),
		BAD("\"\xff\""), BAD("\"\xc0\x80\""), BAD("\"\xed\xa0\x80\""), BAD("[] []"), BAD("1 2"), BAD("\xef\xbb\xbf{}"), BAD("{}\0"), BAD("\"a\0b\""),
		BAD("[1 2]"), BAD("// x\n1"), BAD("\"open"), BAD("\"open\\"), BAD("]"), BAD("}"),
	};
	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct json *json = (struct json *)(uintptr_t)1;
		struct err err = {0};
		assert_int_equal(json_parse(bad[i].text, bad[i].len, &json, &err), -EINVAL);
		assert_ptr_equal(json, (void *)(uintptr_t)1);
		assert_int_equal(err.code, -EINVAL);
		assert_non_null(strstr(err.text, "line "));
	}
}

static void nested(char *text, size_t depth, char open, char close)
{
	memset(text, open, depth);
	memset(text + depth, close, depth);
	text[depth * 2] = '\0';
}

static void X35_depth_is_bounded(void **state)
{
	char text[4096];
	struct json *json = NULL;
	struct err err = {0};
	(void)state;
	nested(text, JSON_DEPTH_MAX, '[', ']');
	AUTO_JSON struct json *deep = parsed(text);
	assert_int_equal(json_count(deep), 1);
	nested(text, JSON_DEPTH_MAX + 1, '[', ']');
	assert_int_equal(json_parse(text, strlen(text), &json, &err), -EINVAL);
	assert_non_null(strstr(err.text, "deeper"));
	memset(text, '[', sizeof text);
	assert_int_equal(json_parse(text, sizeof text, &json, &err), -EINVAL);
	/* brackets inside strings are no depth */
	memset(text, '[', sizeof text);
	memcpy(text, "\"\\\"", 3);
	text[1000] = '"';
	text[1001] = '\0';
	AUTO_JSON struct json *string = parsed(text);
	assert_int_equal(json_text_len(string), 998);
}

static void bytes_and_members_are_bounded(void **state)
{
	AUTO_FREE char *text = malloc(JSON_BYTES_MAX + 2);
	struct json *json = NULL;
	struct err err = {0};
	(void)state;
	assert_non_null(text);
	memset(text, ' ', JSON_BYTES_MAX + 1);
	text[0] = '1';
	assert_int_equal(json_parse(text, JSON_BYTES_MAX + 1, &json, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bytes"));
	assert_int_equal(json_parse(text, JSON_BYTES_MAX, &json, &err), 0);
	json_free(json);
	for (int more = 0; more < 2; more++) {
		char *at = stpcpy(text, "[{\"o\":{");
		for (int i = 0; i < JSON_MEMBERS_MAX + more; i++)
			at += sprintf(at, "%s\"%d\":0", i ? "," : "", i);
		at = stpcpy(at, "}}]");
		int r = json_parse(text, (size_t)(at - text), &json, &err);
		assert_int_equal(r, more ? -EINVAL : 0);
		if (r == 0)
			json_free(json);
		else
			assert_non_null(strstr(err.text, "members"));
	}
}

static void kinds_are_told_apart(void **state)
{
	static const enum json_kind kinds[] = {JSON_KIND_NULL,	 JSON_KIND_BOOL,  JSON_KIND_BOOL,  JSON_KIND_INTEGER,
					       JSON_KIND_REAL, JSON_KIND_STRING, JSON_KIND_ARRAY, JSON_KIND_OBJECT};
	AUTO_JSON struct json *json = parsed("[null,true,false,7,1.5,\"s\",[1],{\"k\":\"v\"}]");
	(void)state;
	assert_int_equal(json_count(json), COUNT(kinds));
	for (size_t i = 0; i < COUNT(kinds); i++) {
		const struct json *value = json_at(json, i);
		assert_int_equal(json_kind(value), kinds[i]);
		assert_int_equal(json_text(value) != NULL, kinds[i] == JSON_KIND_STRING);
		assert_int_equal(json_number(value, -9), kinds[i] == JSON_KIND_INTEGER ? 7 : -9);
		assert_int_equal(json_truth(value), i == 1);
		assert_int_equal(json_count(value), i >= 6);
		assert_int_equal(json_text_len(value), i == 5);
		assert_int_equal(json_get(value, "k") != NULL, i == 7);
		assert_int_equal(json_at(value, 0) != NULL, i == 6);
		assert_int_equal(json_key_at(value, 0) != NULL, i == 7);
		assert_int_equal(json_value_at(value, 0) != NULL, i == 7);
	}
	assert_int_equal(json_kind(NULL), JSON_KIND_NULL);
	assert_null(json_get(NULL, "k"));
	assert_null(json_at(NULL, 0));
	assert_null(json_text(NULL));
	assert_int_equal(json_text_len(NULL), 0);
	assert_int_equal(json_number(NULL, 3), 3);
	assert_int_equal(json_count(NULL), 0);
	assert_false(json_truth(NULL));
	assert_null(json_key_at(NULL, 0));
	assert_null(json_value_at(NULL, 0));
	json_free(NULL);
}

static void members_are_walked_in_the_order_of_the_file(void **state)
{
	static const char *const keys[] = {"zebra", "apple", "m", "0"};
	AUTO_JSON struct json *json = parsed("{\"zebra\":0,\"apple\":1,\"m\":2,\"0\":3}");
	(void)state;
	for (size_t i = 0; i < COUNT(keys); i++) {
		assert_string_equal(json_key_at(json, i), keys[i]);
		assert_int_equal(json_number(json_value_at(json, i), -1), i);
	}
	assert_null(json_key_at(json, COUNT(keys)));
	assert_null(json_value_at(json, COUNT(keys)));
}

static void values_are_built(void **state)
{
	AUTO_JSON struct json *object = json_new_object();
	struct json *array = json_new_array();
	(void)state;
	assert_int_equal(json_append(array, json_new_integer(-5)), 0);
	assert_int_equal(json_append(array, json_new_bool(true)), 0);
	assert_int_equal(json_append(array, json_new_bool(false)), 0);
	assert_int_equal(json_append(array, json_new_null()), 0);
	assert_int_equal(json_set(object, "list", array), 0);
	assert_int_equal(json_set(object, "text", json_new_string("ä")), 0);
	assert_int_equal(json_set(object, "none", json_new_string(NULL)), 0);
	assert_int_equal(json_set(object, "text", json_new_string_len("bcd", 2)), 0);
	AUTO_FREE char *line = json_dump(object, 0), *lines = json_dump(object, 2);
	assert_string_equal(line, "{\"list\":[-5,true,false,null],\"text\":\"bc\",\"none\":null}");
	assert_string_equal(lines, "{\n  \"list\": [\n    -5,\n    true,\n    false,\n    null\n  ],\n  \"text\": \"bc\",\n  \"none\": null\n}");
	assert_int_equal(json_remove(object, "list"), 0);
	assert_int_equal(json_remove(object, "list"), -ENOENT);
	assert_int_equal(json_count(object), 2);
}

static void a_copy_is_deep(void **state)
{
	AUTO_JSON struct json *json = parsed("{\"a\":[1]}");
	AUTO_JSON struct json *copy = json_clone(json);
	(void)state;
	assert_int_equal(json_append(json_get(copy, "a"), json_new_integer(2)), 0);
	assert_int_equal(json_count(json_get(json, "a")), 1);
	assert_int_equal(json_count(json_get(copy, "a")), 2);
	assert_null(json_clone(NULL));
}

static void what_does_not_fit_is_said_and_freed(void **state)
{
	AUTO_JSON struct json *object = json_new_object(), *array = json_new_array();
	(void)state;
	assert_int_equal(json_set(array, "k", json_new_integer(1)), -EINVAL);
	assert_int_equal(json_set(NULL, "k", json_new_integer(1)), -EINVAL);
	assert_int_equal(json_set(object, "k", NULL), -ENOMEM);
	assert_int_equal(json_append(object, json_new_integer(1)), -EINVAL);
	assert_int_equal(json_append(array, NULL), -ENOMEM);
	assert_int_equal(json_count(object) + json_count(array), 0);
	assert_null(json_dump(NULL, 0));
}

static void X59_M04_no_hostile_byte_leaves(void **state)
{
	static const char hostile[] = "\x1b[31m\x7f\xc2\x9b\xe2\x80\xae\xe2\x80\xa8\xd8\x9c\xe2\x81\xa6\n\r\t";
	static const char broken[] = "a\xff\xc0\x80\xed\xa0\x80\x1b";
	AUTO_JSON struct json *object = json_new_object();
	(void)state;
	assert_int_equal(json_set(object, hostile, json_new_string(hostile)), 0);
	assert_int_equal(json_set(object, broken, json_new_string(broken)), 0);
	assert_int_equal(json_set(object, "nul", json_new_string_len("a\0b", 3)), 0);
	for (unsigned indent = 0; indent < 3; indent += 2) {
		AUTO_FREE char *text = json_dump(object, indent);
		char escaped[1024];
		assert_non_null(text);
		if (!indent) { /* on one line nothing is left for text_escape to do */
			(void)text_escape(text, strlen(text), escaped, sizeof escaped);
			assert_string_equal(escaped, text);
		}
		assert_true(text_is_utf8(text, strlen(text)));
		AUTO_JSON struct json *back = parsed(text);
		assert_string_equal(json_text(json_get(back, hostile)), hostile);
		assert_string_equal(json_text(json_get(back, "a\\xff\\xc0\\x80\\xed\\xa0\\x80\\x1b")), "a\\xff\\xc0\\x80\\xed\\xa0\\x80\\x1b");
		assert_string_equal(json_text(json_get(back, "nul")), "a\\x00b");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_back_as_they_were),
		cmocka_unit_test(hostile_texts_are_refused),
		cmocka_unit_test(X35_depth_is_bounded),
		cmocka_unit_test(bytes_and_members_are_bounded),
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(members_are_walked_in_the_order_of_the_file),
		cmocka_unit_test(values_are_built),
		cmocka_unit_test(a_copy_is_deep),
		cmocka_unit_test(what_does_not_fit_is_said_and_freed),
		cmocka_unit_test(X59_M04_no_hostile_byte_leaves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
