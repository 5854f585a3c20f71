/* The printer: results on stdout, one line per message on stderr; text from outside escaped. A write error is remembered and told once. */
#pragma once

#include <stdio.h>
#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "pod/model/json.h"

__attribute__((format(printf, 1, 2))) void print_out(const char *format, ...);
void print_text(const char *bytes, size_t len);        /* escaped, to stdout */
void print_escaped(const char *bytes, size_t len);     /* to stdout, of text that is escaped already */
void print_blanks(size_t count);
void print_json(struct json *json);                    /* takes it; one line; NULL: out of memory */
/* A JSON array of many objects on one line, each of which is dropped once it is text; printed whole or not at all. */
struct json_line {
	FILE *stream;
	char *text;
	size_t len, count;
	bool lost;
};
void json_line_begin(struct json_line *line);
void json_line_add(struct json_line *line, struct json *item); /* takes it; NULL: out of memory */
void json_line_print(struct json_line *line);
void json_line_free(struct json_line *line);
#define AUTO_JSON_LINE __attribute__((cleanup(json_line_free)))

__attribute__((format(printf, 1, 2))) void print_note(const char *format, ...); /* "kirocrew-pod: …" to stderr, escaped */
void print_err(const struct err *err);                 /* what: why; remedy */
/* Of a command: the line, and the status as a shell, env(1) and timeout(1) have it: 127 when it is not there (-ENOENT), else 126. */
int print_not_runnable(const struct err *err);
void print_tail(const char *bytes);                    /* log lines to stderr, each escaped and indented */
/* What was printed is written now; false when it could not be. */
bool print_flush(void);
/* Flushes; -EPIPE is a quiet end, another error is told. Exit status to use instead of `status`. */
int print_end(int status);
