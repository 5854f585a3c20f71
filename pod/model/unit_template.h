/* Text from templates with typed placeholders. unit-templates/placeholders.txt gives each its type; the build checks that the templates
 * agree with it (unit-templates/embed.cmake). A value is checked and escaped by its type, once, here; one that cannot be carried exactly is
 * refused (REFUSAL_VALUE, naming the placeholder or the variable). systemd.syntax(7), systemd.unit(5), systemd.service(5), XML 1.0.
 *
 * Every line of a template is written once for each value of its placeholders: not at all when they have none, and placeholders
 * that share a line have equally many. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "fsops/err.h"

enum placeholder_type {
	PLACEHOLDER_WORD,	  /* letters, digits, and . % - _ only; written as it is, no specifier is expanded where it stands */
	PLACEHOLDER_NUMBER,	  /* decimal digits */
	PLACEHOLDER_COMMENT,	  /* double-quoted in a comment line: one line, exact, to be compared as text */
	PLACEHOLDER_EXEC_PROGRAM, /* first word of ExecStart=: absolute; systemd takes no quote, backslash or control character there, and
				   * expands specifiers but no variables in what it executes */
	PLACEHOLDER_EXEC_WORD,	  /* another word of ExecStart= */
	PLACEHOLDER_ASSIGNMENT,	  /* "NAME=value" of Environment= */
	PLACEHOLDER_PATH,	  /* start of a value that systemd takes raw up to the end of the line: absolute, no control character */
	PLACEHOLDER_XML,	  /* character data of an XML element */
};

struct template_placeholder {
	const char *name;
	enum placeholder_type type;
};

struct template_value {
	const char *const *v;
	size_t n;
};
#define TEMPLATE_ONE(text) ((struct template_value){(const char *const[]){text}, 1})
#define TEMPLATE_NONE ((struct template_value){NULL, 0})

/* `values` has an entry for each of the `count` placeholders. *ret_text is malloc'ed. */
int template_fill(const char *template_text, const struct template_placeholder *placeholders, size_t count,
		  const struct template_value *values, char **ret_text, struct err *err);

/* Writes one value as its type asks; `name` is what a refusal names. */
int template_escape(enum placeholder_type type, const char *name, const char *value, FILE *out, struct err *err);
