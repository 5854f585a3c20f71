#include "pod/model/json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/text.h"
#include "pod/model/utf8.h"

/* struct json is never defined: it is jansson's value under a name of ours. */
static json_t *in(const struct json *json)
{
	return (json_t *)(uintptr_t)json;
}

static struct json *out(json_t *json)
{
	return (struct json *)json;
}

/* jansson recurses 2048 levels deep, which a small stack does not hold. */
static bool too_deep(const char *text, size_t len)
{
	size_t depth = 0;
	bool string = false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			string = !string;
		else if (string)
			i += text[i] == '\\';
		else if (text[i] == '[' || text[i] == '{')
			depth++;
		else if ((text[i] == ']' || text[i] == '}') && depth)
			depth--;
		if (depth > JSON_DEPTH_MAX)
			return true;
	}
	return false;
}

static bool too_wide(json_t *json)
{
	const char *key;
	json_t *value;
	size_t index;
	if (json_object_size(json) > JSON_MEMBERS_MAX)
		return true;
	json_object_foreach(json, key, value) if (too_wide(value)) return true;
	json_array_foreach(json, index, value) if (too_wide(value)) return true;
	return false;
}

static _Thread_local bool starved;

static void *noting_malloc(size_t size)
{
	void *memory = malloc(size);
	starved |= !memory;
	return memory;
}

/* Out of memory, jansson's lexer drops a byte and goes on or calls the text malformed, its deep copy leaves members out and its writer
 * leaves bytes out: only the allocator knows. */
__attribute__((constructor)) static void set_allocator(void)
{
	json_set_alloc_funcs(noting_malloc, free); /* for all threads, and before there is a second one */
}

static void watch_memory(void)
{
	starved = false;
}

int json_parse(const char *text, size_t len, struct json **ret_json, struct err *err)
{
	if (len > JSON_BYTES_MAX)
		return err_set(err, -EINVAL, "json", NULL, "more than %d bytes", JSON_BYTES_MAX);
	if (too_deep(text, len))
		return err_set(err, -EINVAL, "json", NULL, "nested deeper than %d levels", JSON_DEPTH_MAX);
	json_error_t why = {0};
	watch_memory();
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (starved) {
		json_decref(json);
		return err_code(err, -ENOMEM, "json", NULL);
	}
	if (!json)
		return err_set(err, -EINVAL, "json", NULL, "line %d, column %d: %s", why.line, why.column, why.text);
	if (too_wide(json)) {
		json_decref(json);
		return err_set(err, -EINVAL, "json", NULL, "an object of more than %d members", JSON_MEMBERS_MAX);
	}
	*ret_json = out(json);
	return 0;
}

void json_free(struct json *json)
{
	json_decref(in(json));
}

enum json_kind json_kind(const struct json *json)
{
	static const enum json_kind kinds[] = {
	    [JSON_OBJECT] = JSON_KIND_OBJECT,	[JSON_ARRAY] = JSON_KIND_ARRAY, [JSON_STRING] = JSON_KIND_STRING,
	    [JSON_INTEGER] = JSON_KIND_INTEGER, [JSON_REAL] = JSON_KIND_REAL,	[JSON_TRUE] = JSON_KIND_BOOL,
	    [JSON_FALSE] = JSON_KIND_BOOL,	[JSON_NULL] = JSON_KIND_NULL,
	};
	return json ? kinds[json_typeof(in(json))] : JSON_KIND_NULL;
}

struct json *json_get(const struct json *object, const char *key)
{
	return out(json_object_get(in(object), key));
}

struct json *json_at(const struct json *array, size_t index)
{
	return out(json_array_get(in(array), index));
}

const char *json_text(const struct json *json)
{
	return json_string_value(in(json));
}

size_t json_text_len(const struct json *json)
{
	return json_string_length(in(json));
}

int64_t json_number(const struct json *json, int64_t otherwise)
{
	return json_is_integer(in(json)) ? json_integer_value(in(json)) : otherwise;
}

bool json_truth(const struct json *json)
{
	return json_is_true(in(json));
}

size_t json_count(const struct json *container)
{
	json_t *json = in(container);
	return json_is_object(json) ? json_object_size(json) : json_array_size(json);
}

static void *member_at(const struct json *object, size_t index)
{
	void *member = json_object_iter(in(object));
	for (; member && index; index--)
		member = json_object_iter_next(in(object), member);
	return member;
}

const char *json_key_at(const struct json *object, size_t index)
{
	void *member = member_at(object, index);
	return member ? json_object_iter_key(member) : NULL;
}

struct json *json_value_at(const struct json *object, size_t index)
{
	void *member = member_at(object, index);
	return member ? out(json_object_iter_value(member)) : NULL;
}

struct json *json_new_object(void)
{
	return out(json_object());
}

struct json *json_new_array(void)
{
	return out(json_array());
}

/* *ret_len bytes that jansson takes; *ret_owned holds them if they had to be made. NULL: memory is out. */
static const char *storable(const char *text, size_t len, char **ret_owned, size_t *ret_len)
{
	*ret_len = len;
	if (text_is_utf8(text, len) && !memchr(text, '\0', len))
		return text;
	char *escaped = malloc(len * 4 + 1); /* a byte becomes \xNN at most; longer characters gain less */
	if (escaped)
		*ret_len = text_escape(text, len, escaped, len * 4 + 1);
	return *ret_owned = escaped;
}

struct json *json_new_string_len(const char *text, size_t len)
{
	AUTO_FREE char *owned = NULL;
	const char *bytes = storable(text, len, &owned, &len);
	return bytes ? out(json_stringn(bytes, len)) : NULL;
}

struct json *json_new_string(const char *text)
{
	return text ? json_new_string_len(text, strlen(text)) : json_new_null();
}

struct json *json_new_integer(int64_t value)
{
	return out(json_integer(value));
}

struct json *json_new_bool(bool value)
{
	return out(json_boolean(value));
}

struct json *json_new_null(void)
{
	return out(json_null());
}

struct json *json_clone(const struct json *json)
{
	watch_memory();
	json_t *copy = json_deep_copy(in(json));
	if (!starved)
		return out(copy);
	json_decref(copy);
	return NULL;
}

static _Thread_local bool lost;

bool json_lost_something(void)
{
	return lost;
}

static int put_into(struct json *object, const char *key, struct json *value)
{
	AUTO_FREE char *owned = NULL;
	size_t len;
	const char *bytes = storable(key, strlen(key), &owned, &len);
	if (!json_is_object(in(object)) || !bytes || !value) {
		json_free(value);
		return value && bytes ? -EINVAL : -ENOMEM;
	}
	return json_object_set_new(in(object), bytes, in(value)) < 0 ? -ENOMEM : 0;
}

int json_set(struct json *object, const char *key, struct json *value)
{
	int r = put_into(object, key, value);
	lost |= r < 0;
	return r;
}

static int append_to(struct json *array, struct json *value)
{
	if (!json_is_array(in(array)) || !value) {
		json_free(value);
		return value ? -EINVAL : -ENOMEM;
	}
	return json_array_append_new(in(array), in(value)) < 0 ? -ENOMEM : 0;
}

int json_append(struct json *array, struct json *value)
{
	int r = append_to(array, value);
	lost |= r < 0;
	return r;
}

int json_remove(struct json *object, const char *key)
{
	return json_object_del(in(object), key) < 0 ? -ENOENT : 0;
}

/* jansson escapes C0 only. The others can stand nowhere but inside a string, where \uNNNN means the same. Returns the length; writes when
 * `to` is not NULL. */
static size_t escape_hostile(const char *text, size_t len, char *to)
{
	size_t written = 0;
	for (size_t i = 0; i < len;) {
		uint32_t code_point = 0;
		char escape[8];
		size_t n = text_plain_run(text + i, len - i);
		if (!n)
			n = utf8_next(text + i, len - i, &code_point);
		n += !n;
		bool escaped = code_point >= 0x7f && utf8_hostile(code_point);
		size_t size = escaped ? (size_t)snprintf(escape, sizeof escape, "\\u%04X", (unsigned)code_point) : n;
		if (to)
			memcpy(to + written, escaped ? escape : text + i, size);
		written += size;
		i += n;
	}
	return written;
}

char *json_dump(const struct json *json, unsigned indent)
{
	size_t flags = JSON_ENCODE_ANY | (indent ? JSON_INDENT(indent) : JSON_COMPACT);
	watch_memory();
	AUTO_FREE char *raw = json_dumps(in(json), flags);
	if (!raw || starved)
		return NULL;
	size_t len = strlen(raw);
	if (text_plain_run(raw, len) == len)
		return TAKE_PTR(raw);
	char *text = malloc(escape_hostile(raw, len, NULL) + 1);
	if (text)
		text[escape_hostile(raw, len, text)] = '\0';
	return text;
}
