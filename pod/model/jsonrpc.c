#include "pod/model/jsonrpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pod/model/text.h"

#define FIRST_SIZE 4096
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

void jsonrpc_event_free(struct jsonrpc_event *event)
{
	json_free(event->message);
	*event = (struct jsonrpc_event){0};
}

void jsonrpc_reader_free(struct jsonrpc_reader *reader)
{
	free(reader->line);
	*reader = (struct jsonrpc_reader){0};
}

static int keep(struct jsonrpc_reader *reader, const char *bytes, size_t len)
{
	size_t need = reader->len + len + 1;
	if (need > reader->size) {
		size_t size = reader->size ? reader->size : FIRST_SIZE;
		while (size < need)
			size *= 2;
		char *grown = realloc(reader->line, size);
		if (!grown)
			return -ENOMEM;
		reader->line = grown;
		reader->size = size;
	}
	if (len)
		memcpy(reader->line + reader->len, bytes, len);
	reader->len += len;
	return 0;
}

static bool is_id(const struct json *id)
{
	enum json_kind kind = json_kind(id);
	return id && (kind == JSON_KIND_INTEGER || kind == JSON_KIND_STRING);
}

static void classify(struct jsonrpc_event *event)
{
	const struct json *message = event->message;
	const char *version = json_text(json_get(message, "jsonrpc"));
	event->id = json_get(message, "id");
	event->method = json_text(json_get(message, "method"));
	event->params = json_get(message, "params");
	event->result = json_get(message, "result");
	event->error = json_get(message, "error");
	if (!version || strcmp(version, "2.0"))
		return;
	if (event->method && !event->result && !event->error)
		event->kind = !event->id ? JSONRPC_NOTIFICATION : is_id(event->id) ? JSONRPC_REQUEST : JSONRPC_JUNK;
	else if (!event->method && is_id(event->id) && !event->result != !event->error)
		event->kind = event->error && json_kind(event->error) != JSON_KIND_OBJECT ? JSONRPC_JUNK : JSONRPC_RESPONSE;
}

/* Without memory nothing is known of the line: it is not junk for that. */
static int understand(const char *line, size_t len, struct jsonrpc_event *ret_event)
{
	struct jsonrpc_event event = {.kind = JSONRPC_JUNK};
	if (len && line[len - 1] == '\r')
		len--;
	(void)text_escape(line, len, event.sample, sizeof event.sample);
	if (len >= 3 && !memcmp(line, BYTE_ORDER_MARK, 3)) {
		line += 3;
		len -= 3;
	}
	int r = json_parse(line, len, &event.message, NULL);
	if (r == -ENOMEM)
		return r;
	if (r == 0 && json_kind(event.message) == JSON_KIND_OBJECT)
		classify(&event);
	if (event.kind == JSONRPC_JUNK) {
		json_free(event.message);
		event.message = NULL;
		event.id = event.params = event.result = event.error = NULL;
		event.method = NULL;
	}
	*ret_event = event;
	return 0;
}

int jsonrpc_read(struct jsonrpc_reader *reader, const char *bytes, size_t len, size_t *ret_taken, struct jsonrpc_event *ret_event, struct err *err)
{
	const char *end = len ? memchr(bytes, '\n', len) : NULL;
	size_t piece = end ? (size_t)(end - bytes) : len;
	if (reader->too_long || reader->len + piece > JSONRPC_LINE_MAX) {
		reader->too_long = true;
		*ret_taken = len;
		*ret_event = (struct jsonrpc_event){.kind = JSONRPC_TOO_LONG};
		return 0;
	}
	int r = keep(reader, bytes, piece);
	if (r < 0)
		return err_code(err, r, "json-rpc", NULL);
	struct jsonrpc_event event = {.kind = JSONRPC_MORE};
	if (end) {
		r = understand(reader->line, reader->len, &event);
		reader->len = 0;
	}
	if (r < 0)
		return err_code(err, r, "json-rpc", NULL);
	*ret_taken = end ? piece + 1 : len;
	*ret_event = event;
	return 0;
}

bool jsonrpc_answers(const struct jsonrpc_event *event, int64_t id)
{
	return event->kind == JSONRPC_RESPONSE && json_kind(event->id) == JSON_KIND_INTEGER && json_number(event->id, id - 1) == id;
}

void jsonrpc_error_text(const struct jsonrpc_event *event, char *out, size_t size)
{
	char escaped[512] = "";
	const struct json *message = json_get(event->error, "message");
	if (json_text(message))
		(void)text_escape(json_text(message), json_text_len(message), escaped, sizeof escaped);
	(void)snprintf(out, size, "%s (%lld)", *escaped ? escaped : "an error without a message",
		       (long long)json_number(json_get(event->error, "code"), 0));
}

/* Takes message over. */
static char *line_of(struct json *message)
{
	char *text = message ? json_dump(message, 0) : NULL;
	json_free(message);
	size_t len = text ? strlen(text) : 0;
	char *line = text ? realloc(text, len + 2) : NULL;
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + len, "\n", 2);
	return line;
}

/* Takes id and value over; NULL for what is left out. */
static struct json *message_of(struct json *id, const char *method, const char *key, struct json *value)
{
	struct json *message = json_new_object();
	int r = message ? json_set(message, "jsonrpc", json_new_string("2.0")) : -ENOMEM;
	if (r < 0)
		json_free(id);
	else if (id)
		r = json_set(message, "id", id);
	if (r == 0 && method)
		r = json_set(message, "method", json_new_string(method));
	if (r < 0 || !value)
		json_free(value);
	else
		r = json_set(message, key, value);
	if (r == 0)
		return message;
	json_free(message);
	return NULL;
}

char *jsonrpc_request(int64_t id, const char *method, struct json *params)
{
	struct json *number = json_new_integer(id);
	if (!number) {
		json_free(params);
		return NULL;
	}
	return line_of(message_of(number, method, "params", params));
}

char *jsonrpc_notification(const char *method, struct json *params)
{
	return line_of(message_of(NULL, method, "params", params));
}

static char *reply(const struct json *id, const char *key, struct json *value)
{
	struct json *copy = value ? json_clone(id) : NULL;
	if (!copy) {
		json_free(value);
		return NULL;
	}
	return line_of(message_of(copy, NULL, key, value));
}

char *jsonrpc_result(const struct json *id, struct json *result)
{
	return reply(id, "result", result ? result : json_new_object());
}

char *jsonrpc_error(const struct json *id, int code, const char *message)
{
	struct json *error = json_new_object();
	int r = error ? json_set(error, "code", json_new_integer(code)) : -ENOMEM;
	if (r == 0)
		r = json_set(error, "message", json_new_string(message));
	if (r < 0) {
		json_free(error);
		return NULL;
	}
	return reply(id, "error", error);
}
