#include "pod/model/temp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pod/model/text.h"

static const char *const triple[] = {"TMPDIR", "TMP", "TEMP"};
#define TRIPLE (sizeof triple / sizeof *triple)
#define NAME_MAX_LEN 6 /* "TMPDIR" */

const char *temp_source_name(enum temp_source source)
{
	static const char *const names[] = {[TEMP_NONE] = "none", [TEMP_MANAGED] = "managed", [TEMP_DECLARED] = "declared"};
	return names[source];
}

/* The canonical name that "NAME=value" begins with in any case, or NULL. */
static const char *canonical(const char *entry, size_t *ret_len)
{
	for (size_t i = 0; i < TRIPLE; i++) {
		size_t n = strlen(triple[i]);
		if (!strncasecmp(entry, triple[i], n) && entry[n] == '=') {
			*ret_len = n;
			return triple[i];
		}
	}
	return NULL;
}

static int append(struct temp_declaration *declaration, const char *entry, size_t key_len)
{
	struct temp_declared *grown = realloc(declaration->v, (declaration->n + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	declaration->v = grown;
	struct temp_declared one = {.key = strndup(entry, key_len), .value = strdup(entry + key_len + 1)};
	grown[declaration->n++] = one;
	return one.key && one.value ? 0 : -ENOMEM;
}

int temp_declaration_read(const struct environment *declared, struct temp_declaration *ret_declaration, struct err *err)
{
	struct temp_declaration found = {0};
	for (size_t i = 0; i < declared->n; i++) {
		size_t n;
		if (!canonical(declared->v[i], &n))
			continue;
		int r = append(&found, declared->v[i], n);
		if (r < 0) {
			temp_declaration_free(&found);
			return err_code(err, r, "temp", NULL);
		}
	}
	*ret_declaration = found;
	return 0;
}

void temp_declaration_free(struct temp_declaration *declaration)
{
	for (size_t i = 0; i < declaration->n; i++) {
		free(declaration->v[i].key);
		free(declaration->v[i].value);
	}
	free(declaration->v);
	*declaration = (struct temp_declaration){0};
}

bool temp_refused(const struct temp_declaration *declaration)
{
	for (size_t i = 0; i < declaration->n; i++)
		if (declaration->v[i].answer.cause != CONTAIN_CLEAR)
			return true;
	return false;
}

bool temp_needs_managed(const struct temp_declaration *declaration)
{
	return declaration->n == 0 || temp_refused(declaration);
}

static void drop_all(struct environment *environment)
{
	for (size_t i = 0; i < environment->n;) {
		char name[NAME_MAX_LEN + 1];
		size_t n;
		if (!canonical(environment->v[i], &n)) {
			i++;
			continue;
		}
		memcpy(name, environment->v[i], n);
		name[n] = '\0';
		environment_unset(environment, name);
	}
}

static int set_managed(struct environment *environment, const char *managed, struct err *err)
{
	for (size_t i = 0; i < TRIPLE; i++) {
		int r = environment_set(environment, triple[i], managed, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The author's spellings first: where the upper-case one is declared too, its own value stands. */
static int set_declared(struct environment *environment, const struct temp_declaration *declaration, struct err *err)
{
	for (size_t i = 0; i < declaration->n; i++) {
		int r = environment_set(environment, declaration->v[i].key, declaration->v[i].value, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < declaration->n; i++)
		for (size_t k = 0; k < TRIPLE; k++) {
			if (strcasecmp(declaration->v[i].key, triple[k]) || environment_get(environment, triple[k]))
				continue;
			int r = environment_set(environment, triple[k], declaration->v[i].value, err);
			if (r < 0)
				return r;
		}
	return 0;
}

static const char *first_path(const struct environment *environment)
{
	const char *path = NULL;
	for (size_t i = 0; i < TRIPLE && !path; i++)
		path = environment_get(environment, triple[i]);
	return path;
}

int temp_apply(struct environment *environment, const struct temp_declaration *declaration, const char *managed, enum temp_source *ret_source,
	       const char **ret_path, struct err *err)
{
	bool honoured = !temp_needs_managed(declaration);
	drop_all(environment);
	int r = honoured ? set_declared(environment, declaration, err) : managed ? set_managed(environment, managed, err) : 0;
	if (r < 0) {
		drop_all(environment);
		return r;
	}
	*ret_source = honoured ? TEMP_DECLARED : managed ? TEMP_MANAGED : TEMP_NONE;
	*ret_path = first_path(environment);
	return 0;
}

void temp_warning(const char *server, const struct temp_declared *declared, char *out, size_t size)
{
	char name[256], key[64], path[1024];
	const char *detail = declared->answer.detail;
	(void)text_escape(server, strlen(server), name, sizeof name);
	(void)text_escape(declared->key, strlen(declared->key), key, sizeof key);
	(void)text_escape(declared->value, strlen(declared->value), path, sizeof path);
	(void)snprintf(out, size, "server %s: %s=%s is refused as temp directory: %s%s%s%s", name, key, path, contain_cause_name(declared->answer.cause),
		       *detail ? " (" : "", detail, *detail ? ")" : "");
}
