#include "pod/model/ini_keys.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/ascii.h"
#include "pod/model/path.h"
#include "pod/model/record.h"
#include "pod/model/text.h"

static const char identity[] = "identity ";

static int words_check(const char *value, const char **ret_why)
{
	AUTO_WORDS struct words words = {0};
	int r = words_split(value, &words, NULL);
	if (r == -ENOMEM)
		return r;
	if (r == 0 && words.n && *words.v[0])
		return 0;
	*ret_why = r < 0 ? "it cannot be split into words: a quote has no end, or a \\ stands at the end" : "it names no program";
	return -EINVAL;
}

static const char *health_refused(const char *value)
{
	struct health health;
	return health_parse(value, &health, NULL) < 0 ? "a health check is http, http:/PATH, tcp or none" : NULL;
}

static const char *memory_refused(const char *value)
{
	return memory_max_valid(value) ? NULL : "a memory limit is like 4G, 512M, 50% or infinity";
}

static const char *quota_refused(const char *value)
{
	return cpu_quota_valid(value) ? NULL : "a processor quota is like 200%";
}

static const char *seconds_refused(const char *value)
{
	return stop_secs_valid(value) ? NULL : "it is a whole number of seconds from 1 to 3600";
}

static const struct key {
	const char *section, *key;
	size_t offset; /* of the char * in struct ini */
	const char *(*refused)(const char *value);
} keys[] = {
    {"payload", "exec", offsetof(struct ini, payload_exec), NULL},
    {"payload", "health", offsetof(struct ini, payload_health), health_refused},
    {"payload", "memory-max", offsetof(struct ini, payload_memory_max), memory_refused},
    {"payload", "cpu-quota", offsetof(struct ini, payload_cpu_quota), quota_refused},
    {"payload", "stop-secs", offsetof(struct ini, payload_stop_secs), seconds_refused},
    {"agent", "exec", offsetof(struct ini, agent_exec), NULL},
    {"agent", "timeout", offsetof(struct ini, agent_timeout), seconds_refused},
    {"agent", "signed-out", offsetof(struct ini, agent_signed_out), NULL},
};

static char **kept_at(struct ini *ini, const struct key *key)
{
	return (char **)(void *)((char *)ini + key->offset);
}

char **ini_value(struct ini *ini, size_t index)
{
	if (index < PLANE_SETTINGS)
		return &ini->plane[index];
	index -= PLANE_SETTINGS;
	return index < sizeof keys / sizeof *keys ? kept_at(ini, &keys[index]) : NULL;
}

static const struct key *key_of(const char *section, const char *key)
{
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(keys[i].section, section) && !strcmp(keys[i].key, key))
			return &keys[i];
	return NULL;
}

static const char *identity_of(const char *section)
{
	return strncmp(section, identity, sizeof identity - 1) ? NULL : section + sizeof identity - 1;
}

const char *ini_section_refused(const char *section, enum ini_scope scope)
{
	const char *name = identity_of(section);
	if (name)
		return ascii_name(name, strlen(name), sizeof((struct ini_identity *)0)->name - 1)
			   ? NULL
			   : "an identity's name is made of A-Z a-z 0-9 . _ - and begins with a letter or digit";
	if (!strcmp(section, "plane"))
		return scope == INI_SCOPE_CHECKOUT ? "a checkout does not decide where pods live" : NULL;
	if (!strcmp(section, "payload") || !strcmp(section, "agent"))
		return NULL;
	return *section ? "there is no such section" : "it stands before the first section";
}

static struct ini_identity *identity_named(struct ini *ini, const char *name, const char **ret_why)
{
	for (size_t i = 0; i < ini->identity_count; i++)
		if (!strcmp(ini->identities[i].name, name))
			return &ini->identities[i];
	if (ini->identity_count == INI_IDENTITIES_MAX) {
		*ret_why = "there are too many identities";
		return NULL;
	}
	struct ini_identity *identities = realloc(ini->identities, (ini->identity_count + 1) * sizeof *identities);
	if (!identities)
		return NULL;
	ini->identities = identities;
	struct ini_identity *made = &identities[ini->identity_count++];
	*made = (struct ini_identity){.source = NULL};
	(void)snprintf(made->name, sizeof made->name, "%s", name);
	return made;
}

char **ini_slot(struct ini *ini, const char *section, const char *key, const char **ret_why)
{
	const char *name = identity_of(section);
	const struct key *known = key_of(section, key);
	*ret_why = NULL;
	if (known)
		return kept_at(ini, known);
	for (unsigned i = 0; !strcmp(section, "plane") && i < PLANE_SETTINGS; i++)
		if (!strcmp(plane_settings[i].key, key))
			return &ini->plane[i];
	bool source = !strcmp(key, "source");
	if (!name || !(source || !strcmp(key, "staged"))) {
		*ret_why = "there is no such key";
		return NULL;
	}
	struct ini_identity *named = identity_named(ini, name, ret_why);
	if (!named)
		return NULL;
	return source ? &named->source : &named->staged;
}

static bool is_prefix(const char *directory, const char *path)
{
	size_t len = strlen(directory);
	return !strncmp(directory, path, len) && (!path[len] || path[len] == '/');
}

/* What only the pod itself mints: nothing is staged there, nor above or below. */
static const char *staged_refused(const char *value)
{
	static const char minted[] = ".aws/sso/cache";
	if (!path_is_below(value))
		return "it is a place below the pod's HOME: relative, without empty, . or .. parts";
	return is_prefix(value, minted) || is_prefix(minted, value) ? "only the pod itself writes to .aws/sso/cache" : NULL;
}

int ini_value_check(const char *section, const char *key, const char *value, const char **ret_why)
{
	const struct key *known = key_of(section, key);
	const char *why = NULL;
	if (known && !strcmp(key, "exec"))
		return words_check(value, ret_why);
	if (known && known->refused)
		why = known->refused(value);
	else if (identity_of(section) && !strcmp(key, "staged"))
		why = staged_refused(value);
	if (why)
		*ret_why = why;
	return why ? -EINVAL : 0;
}
