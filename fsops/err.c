#include "fsops/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text ? text : "");
}

int err_set(struct err *e, int code, const char *stage, const char *subject, const char *format, ...)
{
	if (!e)
		return code;
	e->code = code;
	e->refusal = 0;
	put(e->stage, sizeof e->stage, stage);
	put(e->subject, sizeof e->subject, subject);
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(e->text, sizeof e->text, format, arguments);
	va_end(arguments);
	return code;
}

int err_code(struct err *e, int code, const char *stage, const char *subject)
{
	char buffer[128];
	return err_set(e, code, stage, subject, "%s", strerror_r(-code, buffer, sizeof buffer));
}

int err_prepend(struct err *e, const char *format, ...)
{
	if (!e)
		return -EIO;
	char context[sizeof e->text], joined[sizeof e->text];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(context, sizeof context, format, arguments);
	va_end(arguments);
	(void)snprintf(joined, sizeof joined, "%.*s: %s", (int)sizeof joined - 3, context, e->text); /* a cut end is the innermost detail */
	put(e->text, sizeof e->text, joined);
	return e->code;
}
