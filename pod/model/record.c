#include "pod/model/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/refusal.h"

#define RECORD_PAIRS_MAX 1024 /* keys are looked up by walking */

static int no_memory(struct err *err)
{
	return err_code(err, -ENOMEM, "record", NULL);
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct span {
	const char *at;
	size_t len;
};

static struct span trim(struct span s)
{
	while (s.len && is_space(s.at[0]))
		s = (struct span){s.at + 1, s.len - 1};
	while (s.len && is_space(s.at[s.len - 1]))
		s.len--;
	return s;
}

static struct span unquote(struct span s)
{
	bool quoted = s.len >= 2 && (s.at[0] == '\'' || s.at[0] == '"') && s.at[s.len - 1] == s.at[0];
	return quoted ? (struct span){s.at + 1, s.len - 2} : s;
}

static struct record_pair *find(const struct record *record, const char *key)
{
	for (size_t i = 0; i < record->count; i++)
		if (!strcmp(record->pairs[i].key, key))
			return &record->pairs[i];
	return NULL;
}

/* Takes key and value over, also on failure and when they are NULL. */
static int append(struct record *record, char *key, char *value, struct err *err)
{
	struct record_pair *pairs = key && value ? realloc(record->pairs, (record->count + 1) * sizeof *pairs) : NULL;
	if (!pairs) {
		free(key);
		free(value);
		return no_memory(err);
	}
	record->pairs = pairs;
	pairs[record->count++] = (struct record_pair){key, value};
	return 0;
}

/* The last one wins, in the place of the first. */
static int put(struct record *record, struct span key, struct span value, struct err *err)
{
	AUTO_FREE char *k = strndup(key.at, key.len);
	AUTO_FREE char *v = strndup(value.at, value.len);
	if (!k || !v)
		return no_memory(err);
	struct record_pair *pair = find(record, k);
	if (pair) {
		free(pair->value);
		pair->value = TAKE_PTR(v);
		return 0;
	}
	if (record->count == RECORD_PAIRS_MAX)
		return refuse(err, REFUSAL_BAD_CONFIG, "record", "more than %d keys", RECORD_PAIRS_MAX);
	return append(record, TAKE_PTR(k), TAKE_PTR(v), err);
}

static int parse_line(struct record *record, struct span line, struct err *err)
{
	line = trim(line);
	if (!line.len || line.at[0] == '#')
		return 0;
	const char *equals = memchr(line.at, '=', line.len);
	if (!equals)
		return 0;
	size_t before = (size_t)(equals - line.at);
	struct span key = trim((struct span){line.at, before});
	struct span value = unquote(trim((struct span){equals + 1, line.len - before - 1}));
	if (!key.len)
		return 0;
	if (memchr(line.at, '\r', line.len))
		return refuse(err, REFUSAL_BAD_CONFIG, "record", "%.*s holds a carriage return", key.len < 64 ? (int)key.len : 64, key.at);
	return put(record, key, value, err);
}

int record_parse(const char *text, size_t len, struct record *ret_record, struct err *err)
{
	AUTO_RECORD struct record record = {0};
	if (len > RECORD_BYTES_MAX)
		return refuse(err, REFUSAL_BAD_CONFIG, "record", "more than %d bytes", RECORD_BYTES_MAX);
	if (len && memchr(text, '\0', len))
		return refuse(err, REFUSAL_BAD_CONFIG, "record", "it holds a NUL byte");
	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t line = end ? (size_t)(end - text) - at : len - at;
		int r = parse_line(&record, (struct span){text + at, line}, err);
		if (r < 0)
			return r;
		at += line + 1;
	}
	*ret_record = record;
	record = (struct record){0};
	return 0;
}

/* Would the reader read this pair back as it is? */
static const char *why_not_written(const char *key, const char *value)
{
	size_t len = strlen(key);
	if (!len || key[0] == '#' || strpbrk(key, "=\n\r") || is_space(key[0]) || is_space(key[len - 1]))
		return "it cannot be a key of a record";
	return strpbrk(value, "\n\r") ? "a record's value holds no newline or carriage return" : NULL;
}

static int check_written(const char *key, const char *value, struct err *err)
{
	const char *why = why_not_written(key, value);
	return why ? refuse(err, REFUSAL_VALUE, key, "%s", why) : 0;
}

int record_render(const struct record *record, char **ret_text, size_t *ret_len, struct err *err)
{
	size_t len = 0;
	for (size_t i = 0; i < record->count; i++) {
		const struct record_pair *pair = &record->pairs[i];
		int r = check_written(pair->key, pair->value, err);
		if (r < 0)
			return r;
		len += strlen(pair->key) + strlen(pair->value) + 4;
	}
	if (len > RECORD_BYTES_MAX)
		return refuse(err, REFUSAL_VALUE, "record", "more than %d bytes", RECORD_BYTES_MAX);
	char *text = malloc(len + 1), *at = text;
	if (!text)
		return no_memory(err);
	for (size_t i = 0; i < record->count; i++) {
		at = stpcpy(stpcpy(at, record->pairs[i].key), "='");
		at = stpcpy(stpcpy(at, record->pairs[i].value), "'\n");
	}
	*at = '\0';
	*ret_text = text;
	*ret_len = len;
	return 0;
}

const char *record_get(const struct record *record, const char *key)
{
	const struct record_pair *pair = find(record, key);
	return pair ? pair->value : NULL;
}

static void drop(struct record *record, const char *key)
{
	struct record_pair *pair = find(record, key);
	if (!pair)
		return;
	free(pair->key);
	free(pair->value);
	record->count--;
	memmove(pair, pair + 1, (record->count - (size_t)(pair - record->pairs)) * sizeof *pair);
}

int record_set(struct record *record, const char *key, const char *value, struct err *err)
{
	if (!value) {
		drop(record, key);
		return 0;
	}
	int r = check_written(key, value, err);
	return r < 0 ? r : put(record, (struct span){key, strlen(key)}, (struct span){value, strlen(value)}, err);
}

int record_copy(const struct record *record, struct record *ret_record, struct err *err)
{
	AUTO_RECORD struct record copy = {0};
	for (size_t i = 0; i < record->count; i++) {
		int r = append(&copy, strdup(record->pairs[i].key), strdup(record->pairs[i].value), err);
		if (r < 0)
			return r;
	}
	*ret_record = copy;
	copy = (struct record){0};
	return 0;
}

bool record_same(const struct record *one, const struct record *other)
{
	bool same = one->count == other->count;
	for (size_t i = 0; same && i < one->count; i++)
		same = strcmp(one->pairs[i].key, other->pairs[i].key) == 0 && strcmp(one->pairs[i].value, other->pairs[i].value) == 0;
	return same;
}

void record_free(struct record *record)
{
	for (size_t i = 0; i < record->count; i++) {
		free(record->pairs[i].key);
		free(record->pairs[i].value);
	}
	free(record->pairs);
	*record = (struct record){0};
}
