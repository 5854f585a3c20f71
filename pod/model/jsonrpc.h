/* JSON-RPC 2.0, one message a line (Model Context Protocol, stdio transport; Agent Client Protocol). Bytes in, events out; bounded. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/err.h"
#include "pod/model/json.h"

#define JSONRPC_LINE_MAX (1 << 20) /* without its newline */
#define JSONRPC_METHOD_NOT_FOUND (-32601)

enum jsonrpc_kind {
	JSONRPC_MORE,         /* all bytes were taken, no line is complete */
	JSONRPC_RESPONSE,     /* id, and either result or error */
	JSONRPC_REQUEST,      /* id and method */
	JSONRPC_NOTIFICATION, /* method */
	JSONRPC_JUNK,         /* a line that is none of these: sample */
	JSONRPC_TOO_LONG,     /* more than JSONRPC_LINE_MAX without a newline; the reader says nothing else any more */
};

struct jsonrpc_event {
	enum jsonrpc_kind kind;
	struct json *message;                     /* owned: jsonrpc_event_free */
	const struct json *id, *params, *result, *error; /* borrowed from message; NULL where there is none */
	const char *method;
	char sample[128]; /* escaped begin of the line */
};
void jsonrpc_event_free(struct jsonrpc_event *event);
#define AUTO_JSONRPC_EVENT __attribute__((cleanup(jsonrpc_event_free)))

struct jsonrpc_reader {
	char *line;
	size_t len, size;
	bool too_long;
};
void jsonrpc_reader_free(struct jsonrpc_reader *reader);

/* Takes bytes up to the end of the first line, *ret_taken of them; call again with the rest until JSONRPC_MORE. -ENOMEM only. */
int jsonrpc_read(struct jsonrpc_reader *reader, const char *bytes, size_t len, size_t *ret_taken, struct jsonrpc_event *ret_event, struct err *err);
bool jsonrpc_answers(const struct jsonrpc_event *event, int64_t id); /* a response to this id, which is a number: "1" is another */
/* "message (code)" of an error, escaped. */
void jsonrpc_error_text(const struct jsonrpc_event *event, char *out, size_t size);

/* A line with its newline, malloc'ed, or NULL when memory is out. params, result are taken over; NULL is left out, of a result {}. */
char *jsonrpc_request(int64_t id, const char *method, struct json *params);
char *jsonrpc_notification(const char *method, struct json *params);
char *jsonrpc_result(const struct json *id, struct json *result);
char *jsonrpc_error(const struct json *id, int code, const char *message);
