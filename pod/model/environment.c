#include "pod/model/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/refusal.h"

static int out_of_memory(struct err *err, const char *subject)
{
	return err_code(err, -ENOMEM, "environment", subject);
}

/* Length of NAME in "NAME=value"; 0 for what no program can ask for. */
static size_t name_length(const char *entry)
{
	const char *equals = strchr(entry, '=');
	return equals ? (size_t)(equals - entry) : 0;
}

static bool is_named(const char *entry, const char *name, size_t len)
{
	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

static int check_length(size_t len, const char *name, struct err *err)
{
	if (len <= ENVIRONMENT_ENTRY_MAX)
		return 0;
	return refuse(err, REFUSAL_VALUE, name, "%zu bytes with its name, the kernel takes %d", len, ENVIRONMENT_ENTRY_MAX);
}

static int append(struct environment *environment, char *entry, struct err *err)
{
	char **grown = realloc(environment->v, (environment->n + 2) * sizeof *grown);
	if (!grown) {
		free(entry);
		return out_of_memory(err, NULL);
	}
	grown[environment->n++] = entry;
	grown[environment->n] = NULL;
	environment->v = grown;
	return 0;
}

static int append_copy(struct environment *environment, const char *entry, struct err *err)
{
	size_t named = name_length(entry);
	if (!named)
		return 0;
	size_t len = strlen(entry);
	if (len > ENVIRONMENT_ENTRY_MAX) {
		AUTO_FREE char *name = strndup(entry, named < 200 ? named : 200);
		return name ? check_length(len, name, err) : out_of_memory(err, NULL);
	}
	char *copy = strdup(entry);
	return copy ? append(environment, copy, err) : out_of_memory(err, NULL);
}

int environment_copy(char *const *envp, struct environment *ret_environment, struct err *err)
{
	AUTO_ENVIRONMENT struct environment copy = {0};
	for (char *const *entry = envp; entry && *entry; entry++) {
		int r = append_copy(&copy, *entry, err);
		if (r < 0)
			return r;
	}
	if (!copy.v && !(copy.v = calloc(1, sizeof *copy.v)))
		return out_of_memory(err, NULL);
	*ret_environment = copy;
	copy = (struct environment){0};
	return 0;
}

int environment_set(struct environment *environment, const char *name, const char *value, struct err *err)
{
	size_t name_len = strlen(name), value_len = strlen(value);
	if (!name_len || strchr(name, '='))
		return err_set(err, -EINVAL, "environment", name, "this is no name of a variable");
	int r = check_length(name_len + 1 + value_len, name, err);
	if (r < 0)
		return r;
	char *entry = malloc(name_len + value_len + 2);
	if (!entry)
		return out_of_memory(err, name);
	memcpy(entry, name, name_len);
	entry[name_len] = '=';
	memcpy(entry + name_len + 1, value, value_len + 1);
	/* All of that name go: a second entry would win with programs that take the last one. */
	environment_unset(environment, name);
	return append(environment, entry, err);
}

/* Keeps the order of what stays. */
static void remove_if(struct environment *environment, bool (*removed)(const char *entry, const void *what), const void *what)
{
	size_t kept = 0;
	for (size_t i = 0; i < environment->n; i++) {
		if (removed(environment->v[i], what))
			free(environment->v[i]);
		else
			environment->v[kept++] = environment->v[i];
	}
	environment->n = kept;
	if (environment->v)
		environment->v[kept] = NULL;
}

static bool has_name(const char *entry, const void *what)
{
	const char *name = what;
	return is_named(entry, name, strlen(name));
}

void environment_unset(struct environment *environment, const char *name)
{
	remove_if(environment, has_name, name);
}

const char *environment_get(const struct environment *environment, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < environment->n; i++)
		if (is_named(environment->v[i], name, len))
			return environment->v[i] + len + 1;
	return NULL;
}

void environment_free(struct environment *environment)
{
	for (size_t i = 0; i < environment->n; i++)
		free(environment->v[i]);
	free(environment->v);
	*environment = (struct environment){0};
}
