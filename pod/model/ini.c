#include "pod/model/ini.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/ascii.h"
#include "pod/model/ini_keys.h"
#include "pod/model/refusal.h"

#define INI_BYTES_MAX 65536
#define SECTION_MAX 49 /* inih cuts what is longer */

/* inih asks for line after line, so that a line is judged before inih sees it, and the number of the line is known when a key comes. */
struct reader {
	const char *file;
	enum ini_scope scope;
	const char *at, *end;
	unsigned line;
	struct ini ini;
	struct err *err;
	int r;
};

static int refused(struct reader *reader, const char *section, const char *key, const char *why)
{
	const char *between = section && key ? " " : "";
	char where[160] = "";
	if (section && *section)
		(void)snprintf(where, sizeof where, "[%.60s]%s%.80s: ", section, between, key ? key : "");
	else if (key)
		(void)snprintf(where, sizeof where, "%.80s: ", key);
	reader->r = refuse(reader->err, REFUSAL_BAD_CONFIG, reader->file, "line %u: %s%s", reader->line, where, why);
	return reader->r;
}

static int no_memory(struct err *err, const char *file)
{
	return err_code(err, -ENOMEM, "configuration", file);
}

/* The key, for messages, of a line that has no NUL behind it. */
static void key_of_line(const char *start, const char *stop, char key[64])
{
	size_t len = 0;
	while (start + len < stop && len < 63 && !strchr(" \t=:", start[len]))
		len++;
	memcpy(key, start, len);
	key[len] = '\0';
}

/* What inih would silently drop: a comment behind a value, or anything behind a section. */
static const char *why_cut(const char *line)
{
	if (*line == '[') {
		const char *end = strchr(line, ']');
		if (!end)
			return "the section has no ]";
		if (end - line - 1 > SECTION_MAX)
			return "the name of the section is too long: it would be cut at 49 bytes";
		return end[1 + strspn(end + 1, " \t")] ? "something stands behind the section" : NULL;
	}
	if (!strpbrk(line, "=:"))
		return "it is neither [section] nor key = value";
	for (const char *c = line; *c; c++)
		if (*c == ';' && c > line && ascii_blank(c[-1]))
			return "what follows the ; would be cut off as a comment; comments have a line of their own";
	return NULL;
}

static int check_line(struct reader *reader, const char *line)
{
	for (const char *c = line; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
			return refused(reader, NULL, NULL, "it holds a control character");
	if (reader->line == 1 && !strncmp(line, "\xef\xbb\xbf", 3))
		line += 3;
	if (!*line || *line == ';' || *line == '#')
		return 0;
	const char *why = why_cut(line);
	if (why) {
		char key[64];
		key_of_line(line, line + strlen(line), key);
		return refused(reader, NULL, *line == '[' ? NULL : key, why);
	}
	if (*line != '[')
		return 0;
	char section[SECTION_MAX + 1];
	(void)snprintf(section, sizeof section, "%.*s", (int)strcspn(line + 1, "]"), line + 1);
	why = ini_section_refused(section, reader->scope);
	return why ? refused(reader, section, NULL, why) : 0;
}

/* The next line without its indentation, which inih would take for a continued value. */
static char *next_line(char *out, int size, void *stream)
{
	struct reader *reader = stream;
	if (reader->r < 0 || reader->at == reader->end)
		return NULL;
	reader->line++;
	const char *end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
	const char *start = reader->at, *stop = end ? end : reader->end;
	reader->at = end ? end + 1 : reader->end;
	while (start < stop && ascii_blank(*start))
		start++;
	if (start < stop && stop[-1] == '\r')
		stop--;
	if (stop - start > size - 2) {
		char key[64];
		key_of_line(start, stop, key);
		(void)refused(reader, NULL, key, "the line is too long: it would be cut");
		return NULL;
	}
	memcpy(out, start, (size_t)(stop - start));
	memcpy(out + (stop - start), "\n", 2);
	out[stop - start] = '\0';
	if (check_line(reader, out) < 0)
		return NULL;
	out[stop - start] = '\n';
	return out;
}

/* inih's answers are 1 and 0; what went wrong stays in the reader. */
static int take_pair(void *user, const char *section, const char *key, const char *value)
{
	struct reader *reader = user;
	const char *why = ini_section_refused(section, reader->scope);
	char **slot = why ? NULL : ini_slot(&reader->ini, section, key, &why);
	int r = slot || why ? 0 : -ENOMEM;
	if (slot && *slot)
		why = "it is given twice";
	else if (slot && *value)
		r = ini_value_check(section, key, value, &why);
	if (why)
		return refused(reader, section, key, why) == 0;
	if (r == 0 && !(*slot = strdup(value)))
		r = -ENOMEM;
	if (r < 0)
		reader->r = no_memory(reader->err, reader->file);
	return r == 0;
}

/* A key without a value says as much as no key; an identity needs both of its own. */
static int finish(struct reader *reader)
{
	struct ini *ini = &reader->ini;
	char **slot;
	for (size_t i = 0; (slot = ini_value(ini, i)); i++)
		if (*slot && !**slot) {
			free(*slot);
			*slot = NULL;
		}
	for (size_t i = 0; i < ini->identity_count; i++) {
		const struct ini_identity *identity = &ini->identities[i];
		if (!identity->source || !*identity->source || !identity->staged || !*identity->staged)
			return refuse(reader->err, REFUSAL_BAD_CONFIG, reader->file, "[identity %s] needs both source and staged",
				      identity->name);
	}
	ini->file = strdup(reader->file);
	return ini->file ? 0 : no_memory(reader->err, reader->file);
}

int ini_read(const char *file, const char *text, size_t len, enum ini_scope scope, struct ini *ret_ini, struct err *err)
{
	struct reader reader = {.file = file, .scope = scope, .at = text, .end = text + len, .err = err};
	if (len > INI_BYTES_MAX)
		return refuse(err, REFUSAL_BAD_CONFIG, file, "more than %d bytes", INI_BYTES_MAX);
	if (len && memchr(text, '\0', len))
		return refuse(err, REFUSAL_BAD_CONFIG, file, "it holds a NUL byte");
	int line = ini_parse_stream(next_line, &reader, take_pair, &reader);
	if (reader.r == 0 && line != 0)
		reader.r = refuse(err, REFUSAL_BAD_CONFIG, file, "line %d cannot be read", line);
	if (reader.r == 0)
		reader.r = finish(&reader);
	if (reader.r < 0) {
		ini_free(&reader.ini);
		return reader.r;
	}
	*ret_ini = reader.ini;
	return 0;
}

static void move_values(struct ini *base, struct ini *over)
{
	char **from;
	for (size_t i = 0; (from = ini_value(over, i)); i++) {
		char **to = ini_value(base, i);
		if (!*from)
			continue;
		free(*to);
		*to = TAKE_PTR(*from);
	}
}

static void free_identity(struct ini_identity *identity)
{
	free(identity->source);
	free(identity->staged);
}

static struct ini_identity *same_identity(struct ini *ini, const char *name)
{
	for (size_t i = 0; i < ini->identity_count; i++)
		if (!strcmp(ini->identities[i].name, name))
			return &ini->identities[i];
	return NULL;
}

int ini_merge(struct ini *base, struct ini *over, struct err *err)
{
	size_t room = base->identity_count + over->identity_count;
	if (room) {
		struct ini_identity *identities = realloc(base->identities, room * sizeof *identities);
		if (!identities)
			return no_memory(err, over->file);
		base->identities = identities;
	}
	for (size_t i = 0; i < over->identity_count; i++) {
		struct ini_identity *same = same_identity(base, over->identities[i].name);
		if (same)
			free_identity(same);
		else
			same = &base->identities[base->identity_count++];
		*same = over->identities[i];
	}
	over->identity_count = 0;
	move_values(base, over);
	if (!base->file)
		base->file = TAKE_PTR(over->file);
	ini_free(over);
	return 0;
}

void ini_free(struct ini *ini)
{
	char **slot;
	for (size_t i = 0; (slot = ini_value(ini, i)); i++)
		free(*slot);
	for (size_t i = 0; i < ini->identity_count; i++)
		free_identity(&ini->identities[i]);
	free(ini->identities);
	free(ini->file);
	*ini = (struct ini){.file = NULL};
}
