#include "pod/model/unit_template.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pod/model/environment.h"
#include "pod/model/refusal.h"
#include "pod/model/utf8.h"

static bool is_control(uint32_t c)
{
	return c < 0x20 || c == 0x7f;
}

/* systemd refuses the whole line for these, written out or escaped. */
static bool systemd_takes(uint32_t c)
{
	return (c & 0xfffe) != 0xfffe && !(c >= 0xfdd0 && c <= 0xfdef);
}

/* A raw line cannot hold a line end, and other control characters there are lost on the reader. */
static bool systemd_takes_raw(uint32_t c)
{
	return systemd_takes(c) && !is_control(c);
}

static bool systemd_takes_executable(uint32_t c)
{
	return systemd_takes_raw(c) && c != '"' && c != '\'' && c != '\\';
}

/* XML 1.0, production 2. */
static bool xml_takes(uint32_t c)
{
	return (c >= 0x20 || c == '\t' || c == '\n' || c == '\r') && (c & 0xfffffffe) != 0xfffe;
}

static int check_characters(const char *name, const char *value, bool (*takes)(uint32_t c), const char *reader, struct err *err)
{
	size_t len = strlen(value), taken;
	for (size_t at = 0; at < len; at += taken) {
		uint32_t c = 0;
		taken = utf8_next(value + at, len - at, &c);
		if (!taken)
			return refuse(err, REFUSAL_VALUE, name, "byte %zu (0x%02x) is not UTF-8", at, (unsigned char)value[at]);
		if (!takes(c))
			return refuse(err, REFUSAL_VALUE, name, "byte %zu begins U+%04X, which %s cannot hold", at, (unsigned)c, reader);
	}
	return 0;
}

static int check_absolute(const char *name, const char *value, struct err *err)
{
	return *value == '/' ? 0 : refuse(err, REFUSAL_VALUE, name, "it is not an absolute path");
}

static int check_alphabet(const char *name, const char *value, const char *alphabet, struct err *err)
{
	size_t good = strspn(value, alphabet);
	if (!*value)
		return refuse(err, REFUSAL_VALUE, name, "it is empty");
	return value[good] ? refuse(err, REFUSAL_VALUE, name, "byte %zu does not belong there", good) : 0;
}

static int check_length(const char *name, const char *value, struct err *err)
{
	size_t len = strlen(value);
	return len <= ENVIRONMENT_ENTRY_MAX
		   ? 0
		   : refuse(err, REFUSAL_VALUE, name, "%zu bytes, the kernel takes %d", len, ENVIRONMENT_ENTRY_MAX);
}

static int check(enum placeholder_type type, const char *name, const char *value, struct err *err)
{
	int r = 0;
	switch (type) {
	case PLACEHOLDER_WORD:
		return check_alphabet(name, value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.%-_", err);
	case PLACEHOLDER_NUMBER:
		return check_alphabet(name, value, "0123456789", err);
	case PLACEHOLDER_COMMENT:
		return check_characters(name, value, systemd_takes, "a unit", err);
	case PLACEHOLDER_EXEC_PROGRAM:
		r = check_absolute(name, value, err);
		return r < 0 ? r : check_characters(name, value, systemd_takes_executable, "the program of a unit", err);
	case PLACEHOLDER_EXEC_WORD:
	case PLACEHOLDER_ASSIGNMENT:
		r = check_length(name, value, err);
		return r < 0 ? r : check_characters(name, value, systemd_takes, "a unit", err);
	case PLACEHOLDER_PATH:
		r = check_absolute(name, value, err);
		return r < 0 ? r : check_characters(name, value, systemd_takes_raw, "a path in a unit", err);
	case PLACEHOLDER_XML:
		return check_characters(name, value, xml_takes, "a property list", err);
	}
	return err_set(err, -EINVAL, "template", name, "a placeholder of unknown type");
}

/* Doubled characters lose their meaning: % of a specifier, $ of a variable. */
static void put_quoted(const char *value, const char *doubled, FILE *out)
{
	(void)fputc('"', out);
	for (const char *s = value; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (is_control(c)) {
			(void)fprintf(out, "\\x%02x", c);
			continue;
		}
		if (c == '"' || c == '\\')
			(void)fputc('\\', out);
		if (strchr(doubled, c))
			(void)fputc(c, out);
		(void)fputc(c, out);
	}
	(void)fputc('"', out);
}

static void put_doubled(const char *value, const char *doubled, FILE *out)
{
	for (const char *s = value; *s; s++) {
		if (strchr(doubled, *s))
			(void)fputc(*s, out);
		(void)fputc(*s, out);
	}
}

static void put_xml(const char *value, FILE *out)
{
	for (const char *s = value; *s; s++) {
		if (strchr("&<>\"'", *s) || is_control((unsigned char)*s))
			(void)fprintf(out, "&#%d;", *s); /* a parser turns a raw CR into LF */
		else
			(void)fputc(*s, out);
	}
}

int template_escape(enum placeholder_type type, const char *name, const char *value, FILE *out, struct err *err)
{
	int r = check(type, name, value, err);
	if (r < 0)
		return r;
	switch (type) {
	case PLACEHOLDER_COMMENT:
		put_quoted(value, "", out);
		break;
	case PLACEHOLDER_EXEC_WORD:
		put_quoted(value, "%$", out);
		break;
	case PLACEHOLDER_EXEC_PROGRAM:
	case PLACEHOLDER_ASSIGNMENT:
		put_quoted(value, "%", out);
		break;
	case PLACEHOLDER_PATH:
		put_doubled(value, "%", out);
		break;
	case PLACEHOLDER_XML:
		put_xml(value, out);
		break;
	default:
		(void)fputs(value, out);
	}
	return 0;
}
