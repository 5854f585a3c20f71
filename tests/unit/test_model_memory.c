#include "model_test.h"

#include <errno.h>
#include <jansson.h>

#include "alloc_fail.h"
#include "fsops/cleanup.h"
#include "pod/model/ini.h"
#include "pod/model/json.h"
#include "pod/model/record.h"

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
	assert_done(record_parse(record_text, sizeof record_text - 1, &record, &err), &err);
	walk(spec_there_and_back, &record, 20);
}

static void X52_json(void **state)
{
	(void)state;
	walk(parse_json, (char[]){"{\"a\":[1,\"x\",{\"b\":2.5}],\"c\":\"a longer string\"}"}, 10);
	walk(build_json, NULL, 10);
}

int main(void)
{
	/* Objects take their seed once: outside of the walks, so that each run allocates alike. */
	json_object_seed(0);
	json_set_alloc_funcs(__wrap_malloc, free);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X52_words),
		cmocka_unit_test(X52_configuration),
		cmocka_unit_test(X52_records),
		cmocka_unit_test(X52_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
