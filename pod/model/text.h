/* Bytes from outside, made fit for a terminal or a JSON string: one line, valid UTF-8, no control characters (C0, DEL, C1, bidi
 * controls, line separators); each offending byte or code point is written \xNN or \u{…}, and a backslash as itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes at most size-1 bytes and a NUL, never cutting inside a character or an escape; returns the bytes written. */
size_t text_escape(const char *bytes, size_t len, char *out, size_t size);
/* How many bytes from the start on are printable ASCII. */
size_t text_plain_run(const char *bytes, size_t len);
bool text_is_utf8(const char *bytes, size_t len);

/* Shell words: splits `text` with POSIX quoting (spaces, ' " \), expands nothing. */
#include "fsops/err.h"
struct words {
	char **v; /* NULL-terminated, owned */
	size_t n;
};
void words_free(struct words *words);
#define AUTO_WORDS __attribute__((cleanup(words_free)))
int words_split(const char *text, struct words *ret_words, struct err *err);
int words_copy(char *const *v, size_t n, struct words *ret_words, struct err *err);
int words_append(struct words *words, const char *word); /* copies the word; -ENOMEM */
/* {port} {home} {os_home} {name} replaced, {{ a literal {. An unknown placeholder or a lone { is kept as it is written. */
struct placeholders {
	const char *port, *home, *os_home, *name;
};
int words_fill(const struct words *in, const struct placeholders *values, struct words *ret_words, struct err *err);
/* The word that words_fill makes `text` of; malloc'ed, NULL when memory is out. */
char *word_without_placeholders(const char *text);
bool words_use_port(const struct words *words); /* {port} or $PORT occurs */
/* KEY='value' fit for a POSIX shell; malloc'ed. NULL when memory is out. */
char *shell_quote(const char *value);
