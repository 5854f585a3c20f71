#include "fuzz.h"

#include "pod/model/json.h"
#include "pod/model/text.h"

static void walk(const struct json *json, unsigned depth)
{
	MUST(depth <= JSON_DEPTH_MAX + 1);
	size_t count = json_count(json);
	const char *text = json_text(json);
	if (text)
		MUST(strlen(text) == json_text_len(json) && text_is_utf8(text, strlen(text)));
	if (json_kind(json) == JSON_KIND_ARRAY)
		for (size_t i = 0; i < count; i++)
			walk(json_at(json, i), depth + 1);
	if (json_kind(json) == JSON_KIND_OBJECT)
		for (size_t i = 0; i < count; i++) {
			MUST(json_get(json, json_key_at(json, i)) == json_value_at(json, i));
			walk(json_value_at(json, i), depth + 1);
		}
}

static char *dumped(const struct json *json, unsigned indent)
{
	char *text = json_dump(json, indent);
	MUST(text && text_is_utf8(text, strlen(text)));
	return text;
}

/* What is dumped parses to the same, and on one line nothing is hostile. */
static void check_round(const struct json *json)
{
	char *line = dumped(json, 0), *lines = dumped(json, 2);
	AUTO_JSON struct json *again = NULL, *pretty = NULL;
	MUST(json_parse(line, strlen(line), &again, NULL) == 0 && json_parse(lines, strlen(lines), &pretty, NULL) == 0);
	char *second = dumped(again, 0), *third = dumped(pretty, 0);
	MUST(!strcmp(line, second) && !strcmp(line, third));
	char *escaped = malloc(strlen(line) * 6 + 1);
	MUST(escaped);
	(void)text_escape(line, strlen(line), escaped, strlen(line) * 6 + 1);
	MUST(!strcmp(line, escaped));
	free(escaped);
	free(third);
	free(second);
	free(lines);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_JSON struct json *json = NULL;
	struct err err = {0};
	if (json_parse((const char *)data, size, &json, &err) == 0) {
		walk(json, 0);
		check_round(json);
	} else {
		MUST(err.code < 0 && *err.text && !json);
	}
	/* Any bytes at all make a string that can be dumped. */
	AUTO_JSON struct json *string = json_new_string_len((const char *)data, size);
	MUST(string);
	check_round(string);
	return 0;
}
