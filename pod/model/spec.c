#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/ascii.h"
#include "pod/model/json.h"
#include "pod/model/port.h"
#include "pod/model/record.h"
#include "pod/model/refusal.h"

static const char *const approvals[] = {[APPROVAL_READS] = "reads", [APPROVAL_YOLO] = "yolo", [APPROVAL_INTERACTIVE] = "interactive"};
static const char *const yes[] = {"1", "true", "yes", "on", NULL};
static const char *const no[] = {"0", "false", "no", "off", NULL};

void spec_free(struct spec *spec)
{
	words_free(&spec->exec);
	words_free(&spec->warnings);
	free(spec->checkout);
	free(spec->seed);
	spec->checkout = spec->seed = NULL;
}

/* A key without a value says as much as no key. */
static const char *value_of(const struct record *record, const char *key)
{
	const char *value = record_get(record, key);
	return value && *value ? value : NULL;
}

static void warn(struct spec *spec, const char *key, const char *value, const char *what)
{
	char shown[64], line[160];
	(void)text_escape(value, strlen(value), shown, sizeof shown);
	(void)snprintf(line, sizeof line, "%s='%s' is unknown: %s", key, shown, what);
	if (spec->warnings.n < SPEC_WARNINGS)
		(void)words_append(&spec->warnings, line);
}

static int unreadable(struct err *err, const char *key, const char *value, const char *why)
{
	return refuse(err, REFUSAL_BAD_CONFIG, key, "the record has %.100s: %s", value, why);
}

static int read_text(const struct record *record, const char *key, bool (*valid)(const char *), const char *why, char *out, size_t size,
		     struct err *err)
{
	const char *value = value_of(record, key);
	if (!value)
		return 0;
	if (strlen(value) >= size || (valid && !valid(value)))
		return unreadable(err, key, value, why);
	(void)snprintf(out, size, "%s", value);
	return 0;
}

static bool uuid_valid(const char *text)
{
	for (size_t i = 0; i < 36; i++) {
		bool hex = ascii_digit(text[i]) || (text[i] >= 'a' && text[i] <= 'f') || (text[i] >= 'A' && text[i] <= 'F');
		if (i == 8 || i == 13 || i == 18 || i == 23 ? text[i] != '-' : !hex)
			return false;
	}
	return !text[36];
}

static bool absolute(const char *text)
{
	return *text == '/';
}

static bool plain_word(const char *text)
{
	for (; *text; text++)
		if (!ascii_alnum(*text) && !strchr(".:,+_-", *text))
			return false;
	return true;
}

static int read_texts(const struct record *record, struct spec *spec, struct err *err)
{
	const struct {
		const char *key;
		char *out;
		size_t size;
		bool (*valid)(const char *);
		const char *why;
	} texts[] = {
	    {"ID", spec->id, sizeof spec->id, uuid_valid, "not a UUID"},
	    {"MEMORY_MAX", spec->memory_max, sizeof spec->memory_max, memory_max_valid, "not a memory limit such as 4G or 50%"},
	    {"CPU_QUOTA", spec->cpu_quota, sizeof spec->cpu_quota, cpu_quota_valid, "not a processor quota such as 200%"},
	    {"STOP_SECS", spec->stop_secs, sizeof spec->stop_secs, stop_secs_valid, "not a number of seconds from 1 to 3600"},
	    {"HOME_ID", spec->home_identity, sizeof spec->home_identity, plain_word, "not the identity of a directory"},
	    {"ROOT_ID", spec->root_identity, sizeof spec->root_identity, plain_word, "not the identity of a directory"},
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int r = read_text(record, texts[i].key, texts[i].valid, texts[i].why, texts[i].out, texts[i].size, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_paths(const struct record *record, struct spec *spec, struct err *err)
{
	const char *checkout = value_of(record, "CHECKOUT"), *seed = value_of(record, "SEED");
	if (checkout && (strlen(checkout) >= PLANE_PATH_MAX || !absolute(checkout)))
		return unreadable(err, "CHECKOUT", checkout, "not an absolute path of at most 4095 bytes");
	if (seed && strlen(seed) >= PLANE_PATH_MAX)
		return unreadable(err, "SEED", seed, "longer than 4095 bytes");
	int r = spec_set_text(&spec->checkout, checkout, err);
	return r < 0 ? r : spec_set_text(&spec->seed, seed, err);
}

static int read_port(const struct record *record, struct spec *spec, struct err *err)
{
	const char *port = value_of(record, "PORT"), *machine = value_of(record, "PORT_AUTO");
	if (!port)
		return 0;
	if (port_parse(port, &spec->port, NULL) < 0)
		return unreadable(err, "PORT", port, "a port is a decimal number from 1 to 65535");
	spec->port_auto = machine && !strcmp(machine, port);
	return 0;
}

static int read_words(const struct json *array, struct words *ret_words, struct err *err)
{
	size_t count = json_count(array);
	AUTO_FREE char **v = calloc(count + 1, sizeof *v);
	if (!v)
		return err_code(err, -ENOMEM, "record", "EXEC");
	for (size_t i = 0; i < count; i++) {
		v[i] = (char *)(uintptr_t)json_text(json_at(array, i));
		if (!v[i] || !*v[0])
			return -EINVAL;
	}
	return words_copy(v, count, ret_words, err);
}

static bool plain_character(char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* ["a","b"], as nearly every record has it, needs no parser. 1: read; 0: it is something else, or nothing good, which the parser tells. */
static int read_plain_words(const char *text, struct words *ret_words)
{
	AUTO_WORDS struct words words = {0};
	const char *at = text;
	if (*at != '[')
		return 0;
	do {
		const char *from = at + 2;
		if (at[1] != '"')
			return 0;
		for (at = from; plain_character(*at); at++)
			;
		if (*at++ != '"' || (!words.n && at == from + 1))
			return 0;
		AUTO_FREE char *word = strndup(from, (size_t)(at - 1 - from));
		if (!word || words_append(&words, word) < 0)
			return -ENOMEM;
	} while (*at == ',');
	if (strcmp(at, "]") != 0)
		return 0;
	*ret_words = words;
	words = (struct words){0};
	return 1;
}

static int read_exec(const struct record *record, struct spec *spec, struct err *err)
{
	static const char why[] = "not a JSON array of strings that names a program";
	const char *value = value_of(record, "EXEC");
	AUTO_JSON struct json *json = NULL;
	struct err cause = {0};
	if (!value)
		return 0;
	int r = read_plain_words(value, &spec->exec);
	if (r != 0)
		return r < 0 ? err_code(err, r, "record", "EXEC") : 0;
	r = json_parse(value, strlen(value), &json, &cause);
	if (r == -EINVAL || (r == 0 && (json_kind(json) != JSON_KIND_ARRAY || !json_count(json))))
		return unreadable(err, "EXEC", value, r < 0 ? cause.text : why);
	if (r == 0)
		r = read_words(json, &spec->exec, &cause);
	if (r == -EINVAL)
		return unreadable(err, "EXEC", value, why);
	return r < 0 ? err_code(err, r, "record", "EXEC") : 0;
}

/* KiroCrew's gateway answers its own route, behind its login. */
void health_default(const struct spec *spec, struct health *ret_health)
{
	*ret_health = (struct health){.kind = HEALTH_NONE};
	if (spec->exec.n)
		ret_health->kind = words_use_port(&spec->exec) ? HEALTH_TCP : HEALTH_NONE;
	else
		*ret_health = (struct health){.kind = HEALTH_HTTP, .path = "/api/health", .kirocrew = true};
}

static int read_health(const struct record *record, struct spec *spec, struct err *err)
{
	const char *value = value_of(record, "HEALTH");
	health_default(spec, &spec->health);
	if (!value)
		return 0;
	struct err cause = {0};
	if (health_parse(value, &spec->health, &cause) < 0)
		return unreadable(err, "HEALTH", value, "a health check is http, http:/PATH, tcp or none");
	spec->health.kirocrew = !spec->exec.n && spec->health.kind == HEALTH_HTTP;
	return 0;
}

static int read_backend(const struct record *record, struct spec *spec, struct err *err)
{
	const char *value = value_of(record, "BACKEND");
	if (value && backend_parse(value, &spec->backend, NULL) < 0)
		return unreadable(err, "BACKEND", value, "not a backend that this version knows");
	return 0;
}

/* One that cannot be read must not make the pod live for ever, nor end it. */
static int read_life(const struct record *record, struct spec *spec, struct err *err)
{
	const char *owner = value_of(record, "OWNER"), *limit = value_of(record, "EXPIRES");
	if (owner && !life_owner_parse(owner, &spec->life.owner))
		return unreadable(err, "OWNER", owner, "an owner is a pid, its start time and a boot id");
	if (limit && !life_limit_parse(limit, &spec->life.limit))
		return unreadable(err, "EXPIRES", limit, "an end of life is epoch seconds, milliseconds since boot and a boot id");
	return 0;
}

/* A word that nobody knows must not become auto-approval, so it is not dropped. */
static void read_approval(const struct record *record, struct spec *spec)
{
	const char *value = record_get(record, "APPROVAL");
	if (!value)
		return;
	spec->approval = APPROVAL_INTERACTIVE;
	for (unsigned i = APPROVAL_READS; i <= APPROVAL_INTERACTIVE; i++)
		if (!strcmp(value, approvals[i])) {
			spec->approval = (enum approval)i;
			return;
		}
	warn(spec, "APPROVAL", value, "interactive is forced");
}

static bool read_switch(const struct record *record, const char *key, bool otherwise, struct spec *spec)
{
	const char *value = value_of(record, key);
	if (!value)
		return otherwise;
	if (ascii_one_of(value, otherwise ? no : yes))
		return !otherwise;
	if (!ascii_one_of(value, otherwise ? yes : no))
		warn(spec, key, value, otherwise ? "it stays on" : "it stays off");
	return otherwise;
}

static void read_rest(const struct record *record, struct spec *spec)
{
	uint64_t created = 0;
	const char *value = value_of(record, "CREATED");
	if (value && ascii_decimal(value, INT64_MAX, &created))
		spec->created = (int64_t)created;
	read_approval(record, spec);
	spec->crons = read_switch(record, "CRONS", false, spec);
	spec->embeddings = read_switch(record, "EMBEDDINGS", true, spec);
}

int spec_from_record(const struct record *record, struct spec *ret_spec, struct err *err)
{
	static int (*const readers[])(const struct record *, struct spec *, struct err *) = {read_texts, read_paths, read_port, read_exec, read_health,
											     read_backend, read_life};
	AUTO_SPEC struct spec spec = {.backend = BACKEND_AUTO};
	for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
		int r = readers[i](record, &spec, err);
		if (r < 0)
			return r;
	}
	read_rest(record, &spec);
	*ret_spec = spec;
	spec = (struct spec){0};
	return 0;
}

int spec_set_text(char **slot, const char *text, struct err *err)
{
	char *copy = text && *text ? strdup(text) : NULL;
	if (text && *text && !copy)
		return err_code(err, -ENOMEM, "record", NULL);
	free(*slot);
	*slot = copy;
	return 0;
}

int spec_copy(const struct spec *spec, struct spec *ret_spec, struct err *err)
{
	AUTO_SPEC struct spec copy = *spec;
	copy.checkout = copy.seed = NULL;
	copy.exec = copy.warnings = (struct words){0};
	int r = words_copy(spec->exec.v, spec->exec.n, &copy.exec, err);
	if (r == 0)
		r = words_copy(spec->warnings.v, spec->warnings.n, &copy.warnings, err);
	if (r == 0)
		r = spec_set_text(&copy.checkout, spec->checkout, err);
	if (r == 0)
		r = spec_set_text(&copy.seed, spec->seed, err);
	if (r < 0)
		return r;
	*ret_spec = copy;
	copy = (struct spec){0};
	return 0;
}

/* A quote stands only inside JSON strings, so it can be written otherwise without reading them. */
static char *without_quotes(const char *json)
{
	size_t len = strlen(json);
	char *text = malloc(len * 6 + 1), *at = text;
	if (!text)
		return NULL;
	for (; *json; json++)
		if (*json == '\'')
			at = stpcpy(at, "\\u0027");
		else
			*at++ = *json;
	*at = '\0';
	return text;
}

static char *exec_text(const struct words *exec)
{
	AUTO_JSON struct json *array = json_new_array();
	for (size_t i = 0; i < exec->n; i++)
		if (json_append(array, json_new_string(exec->v[i])) < 0)
			return NULL;
	AUTO_FREE char *json = array ? json_dump(array, 0) : NULL;
	return json ? without_quotes(json) : NULL;
}

static int write_exec(const struct spec *spec, struct record *record, struct err *err)
{
	if (!spec->exec.n)
		return record_set(record, "EXEC", NULL, err);
	for (size_t i = 0; i < spec->exec.n; i++)
		if (!text_is_utf8(spec->exec.v[i], strlen(spec->exec.v[i])))
			return refuse(err, REFUSAL_VALUE, spec->exec.v[i], "a word of the command is not UTF-8");
	AUTO_FREE char *text = exec_text(&spec->exec);
	return text ? record_set(record, "EXEC", text, err) : err_code(err, -ENOMEM, "record", "EXEC");
}

static bool health_equal(const struct health *a, const struct health *b)
{
	return a->kind == b->kind && !strcmp(a->path, b->path);
}

int spec_to_record(const struct spec *spec, struct record *record, struct err *err)
{
	char port[16] = "", created[24] = "", health[sizeof spec->health.path + 8] = "", owner[LIFE_TEXT_MAX], limit[LIFE_TEXT_MAX];
	struct health usual;
	health_default(spec, &usual);
	if (spec->port)
		(void)snprintf(port, sizeof port, "%d", spec->port);
	if (spec->created)
		(void)snprintf(created, sizeof created, "%lld", (long long)spec->created);
	if (!health_equal(&spec->health, &usual))
		health_render(&spec->health, health, sizeof health);
	life_owner_render(&spec->life.owner, owner);
	life_limit_render(&spec->life.limit, limit);
	bool named = spec->backend == BACKEND_SYSTEMD || spec->backend == BACKEND_LAUNCHD || spec->backend == BACKEND_EMBEDDED;
	const struct {
		const char *key, *value;
	} pairs[] = {
	    {"CHECKOUT", spec->checkout},
	    {"PORT", port},
	    {"PORT_AUTO", spec->port_auto ? port : ""},
	    {"SEED", spec->seed},
	    {"APPROVAL", spec->approval == APPROVAL_UNSET ? "" : approvals[spec->approval]},
	    {"CRONS", spec->crons ? "1" : ""},
	    {"EMBEDDINGS", spec->embeddings ? "" : "0"},
	    {"ID", spec->id},
	    {"CREATED", created},
	    {"BACKEND", named ? backend_name(spec->backend) : ""},
	    {"HEALTH", health},
	    {"MEMORY_MAX", spec->memory_max},
	    {"CPU_QUOTA", spec->cpu_quota},
	    {"STOP_SECS", spec->stop_secs},
	    {"HOME_ID", spec->home_identity},
	    {"ROOT_ID", spec->root_identity},
	    {"OWNER", owner},
	    {"EXPIRES", limit},
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		int r = record_set(record, pairs[i].key, pairs[i].value && *pairs[i].value ? pairs[i].value : NULL, err);
		if (r < 0)
			return r;
	}
	return write_exec(spec, record, err);
}
