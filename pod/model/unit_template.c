#include "pod/model/unit_template.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "fsops/memory_stream.h"

struct fill {
	const struct template_placeholder *placeholders;
	size_t count;
	const struct template_value *values;
	FILE *out;
};

static int broken(const char *what, struct err *err)
{
	return err_set(err, -EINVAL, "template", NULL, "%s", what);
}

/* The index of the placeholder that `at` (an '@') begins, and where it ends; -EINVAL cannot come from an embedded template. */
static int placeholder_at(const struct fill *fill, const char *at, const char *line_end, size_t *ret_index, const char **ret_end,
			  struct err *err)
{
	const char *end = memchr(at + 1, '@', (size_t)(line_end - at - 1));
	if (!end)
		return broken("an @ that begins no placeholder", err);
	size_t len = (size_t)(end - at - 1);
	for (size_t i = 0; i < fill->count; i++) {
		if (strlen(fill->placeholders[i].name) == len && memcmp(fill->placeholders[i].name, at + 1, len) == 0) {
			*ret_index = i;
			*ret_end = end + 1;
			return 0;
		}
	}
	return broken("a placeholder that is not listed", err);
}

/* How often a line is written. */
static int line_repeats(const struct fill *fill, const char *line, const char *end, size_t *ret_repeats, struct err *err)
{
	size_t repeats = 1, index;
	bool first = true;
	for (const char *at = line; (at = memchr(at, '@', (size_t)(end - at)));) {
		int r = placeholder_at(fill, at, end, &index, &at, err);
		if (r < 0)
			return r;
		if (!first && fill->values[index].n != repeats)
			return broken("placeholders of one line have differently many values", err);
		repeats = fill->values[index].n;
		first = false;
	}
	*ret_repeats = repeats;
	return 0;
}

static int put_value(const struct fill *fill, size_t index, size_t nth, struct err *err)
{
	const struct template_placeholder *placeholder = &fill->placeholders[index];
	const char *value = fill->values[index].v[nth], *name = placeholder->name;
	if (!value)
		return broken("a value is missing", err);
	char variable[256];
	if (placeholder->type == PLACEHOLDER_ASSIGNMENT) {
		(void)snprintf(variable, sizeof variable, "%.*s", (int)strcspn(value, "="), value);
		name = variable;
	}
	return template_escape(placeholder->type, name, value, fill->out, err);
}

static int put_line(const struct fill *fill, const char *line, const char *end, size_t nth, struct err *err)
{
	for (const char *at; (at = memchr(line, '@', (size_t)(end - line)));) {
		size_t index;
		(void)fwrite(line, 1, (size_t)(at - line), fill->out);
		int r = placeholder_at(fill, at, end, &index, &line, err);
		if (r == 0)
			r = put_value(fill, index, nth, err);
		if (r < 0)
			return r;
	}
	(void)fwrite(line, 1, (size_t)(end - line), fill->out);
	return 0;
}

static int put_lines(const struct fill *fill, const char *text, struct err *err)
{
	while (*text) {
		const char *newline = strchr(text, '\n');
		const char *end = newline ? newline + 1 : text + strlen(text);
		size_t repeats = 0;
		int r = line_repeats(fill, text, end, &repeats, err);
		for (size_t nth = 0; r == 0 && nth < repeats; nth++)
			r = put_line(fill, text, end, nth, err);
		if (r < 0)
			return r;
		text = end;
	}
	return 0;
}

int template_fill(const char *template_text, const struct template_placeholder *placeholders, size_t count,
		  const struct template_value *values, char **ret_text, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return err_code(err, -ENOMEM, "template", NULL);
	struct fill fill = {placeholders, count, values, out};
	int r = put_lines(&fill, template_text, err);
	if (!memory_stream_end(out, &text) && r == 0)
		r = err_code(err, -ENOMEM, "template", NULL);
	if (r < 0)
		return r;
	*ret_text = TAKE_PTR(text);
	return 0;
}
