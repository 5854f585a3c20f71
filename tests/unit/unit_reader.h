/* A reader of units. It knows the manual (systemd.syntax(7)), not the writer: words in quotes, C escapes, %-specifiers, $-variables. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fsops/cleanup.h"

/* The n-th line "key=…", without its key and end; fails the test when there is none. */
static inline char *line_value(const char *text, const char *key, size_t nth)
{
	size_t key_len = strlen(key);
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		if (len > key_len && strncmp(line, key, key_len) == 0 && line[key_len] == '=' && nth-- == 0)
			return strndup(line + key_len + 1, len - key_len - 1);
		line += len + (line[len] == '\n');
	}
	return NULL;
}

static inline size_t line_count(const char *text, const char *key)
{
	size_t n = 0;
	for (char *value; (value = line_value(text, key, n)); n++)
		free(value);
	return n;
}

static inline char unescape(const char **at)
{
	static const char letters[] = "abfnrtvs\\\"'", meanings[] = "\a\b\f\n\r\t\v \\\"'";
	char c = *(*at)++;
	if (c == 'x') {
		char digits[3] = {(*at)[0], (*at)[1], '\0'}, *end;
		c = (char)strtol(digits, &end, 16);
		assert_true(*end == '\0' && c != '\0');
		*at += 2;
		return c;
	}
	const char *found = strchr(letters, c);
	assert_non_null(found);
	return meanings[found - letters];
}

/* One word; *at moves behind it and the blanks after it. NULL at the end. */
static inline char *next_word(const char **at)
{
	if (!**at)
		return NULL;
	char *word = calloc(1, strlen(*at) + 1), *out = word;
	assert_non_null(word);
	char quote = 0;
	for (; **at && (quote || **at != ' ');) {
		char c = *(*at)++;
		if (c == quote)
			quote = 0;
		else if (!quote && (c == '"' || c == '\''))
			quote = c;
		else
			*out++ = c == '\\' ? unescape(at) : c;
	}
	assert_int_equal(quote, 0);
	while (**at == ' ')
		(*at)++;
	return word;
}

/* What a manager makes of it: %% is %, %i the instance; anything else would be a specifier that nobody meant. */
static inline void expand_specifiers(char *word, const char *instance)
{
	AUTO_FREE char *copy = strdup(word);
	assert_non_null(copy);
	char *out = word;
	for (const char *s = copy; *s; s++) {
		if (*s != '%') {
			*out++ = *s;
		} else if (*++s == '%') {
			*out++ = '%';
		} else {
			assert_int_equal(*s, 'i');
			assert_true(strlen(instance) <= 2); /* it fits where %i stood */
			out = stpcpy(out, instance);
		}
	}
	*out = '\0';
}

static inline void expand_variables(char *word)
{
	char *out = word;
	for (const char *s = word; *s; s++) {
		if (*s == '$')
			assert_int_equal(*++s, '$');
		*out++ = *s;
	}
	*out = '\0';
}
