/* JSON through jansson, duplicates rejected, depth, size and members bounded, no NUL in a string. A value owns its children; borrowed pointers live as
 * long as the root. No name here may be one that libjansson exports (json_string, json_integer, json_true, json_copy, …): the program's would take
 * its place inside the library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/err.h"

struct json; /* one value */

#define JSON_BYTES_MAX (16 << 20)
#define JSON_DEPTH_MAX 128
#define JSON_MEMBERS_MAX 8192 /* of one object: its members are found by walking */

int json_parse(const char *text, size_t len, struct json **ret_json, struct err *err); /* any top-level value; -EINVAL with line and column */
void json_free(struct json *json);
static inline void cleanup_json(struct json **slot) { json_free(*slot); }
#define AUTO_JSON __attribute__((cleanup(cleanup_json)))

enum json_kind { JSON_KIND_NULL, JSON_KIND_BOOL, JSON_KIND_INTEGER, JSON_KIND_REAL, JSON_KIND_STRING, JSON_KIND_ARRAY, JSON_KIND_OBJECT };
enum json_kind json_kind(const struct json *json); /* NULL pointer: JSON_KIND_NULL */

/* Borrowed; NULL when it is not there or of another kind. */
struct json *json_get(const struct json *object, const char *key);
struct json *json_at(const struct json *array, size_t index);
const char *json_text(const struct json *json);
size_t json_text_len(const struct json *json);
int64_t json_number(const struct json *json, int64_t otherwise);
bool json_truth(const struct json *json);
size_t json_count(const struct json *container);
const char *json_key_at(const struct json *object, size_t index); /* in file order */
struct json *json_value_at(const struct json *object, size_t index);

/* Builders return a new value or NULL when memory is out; strings that are not UTF-8 are escaped as text_escape does. */
struct json *json_new_object(void);
struct json *json_new_array(void);
struct json *json_new_string(const char *text); /* NULL → null */
struct json *json_new_string_len(const char *text, size_t len);
struct json *json_new_integer(int64_t value);
struct json *json_new_bool(bool value);
struct json *json_new_null(void);
struct json *json_clone(const struct json *json); /* deep */
/* Both take `value` over, also on failure and when it is NULL (then -ENOMEM). */
int json_set(struct json *object, const char *key, struct json *value);
int json_append(struct json *array, struct json *value);
/* Whether one of them has ever failed in this thread: who puts many members together may ask once, before the whole is shown. */
bool json_lost_something(void);
int json_remove(struct json *object, const char *key);

/* Compact, key order kept, what text_escape would escape written \uNNNN, malloc'ed; NULL when memory is out. indent 0: one line. */
char *json_dump(const struct json *json, unsigned indent);
