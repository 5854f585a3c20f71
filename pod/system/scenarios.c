#include "pod/system/scenarios.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "fsops/file.h"
#include "pod/model/plane.h"
#include "pod/model/refusal.h"

#define VARIABLE "KIROCREW_POD_SCENARIOS"
#define MANIFEST_BYTES_MAX 65536
#define SCENARIOS_MAX 256
#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* From the directory of this program: where it is installed, and where it was built, wherever that is. */
static const char *const places[] = {"../share/kirocrew-pod/scenarios", "share/kirocrew-pod/scenarios"};

static bool scenario_name_valid(const char *name)
{
	size_t len = strlen(name);
	return len > 0 && len <= SCENARIO_NAME_MAX && strspn(name, NAME_BYTES) == len && name[0] != '.' && name[0] != '_' && name[0] != '-';
}

static int program_directory(char *out, size_t size, struct err *err)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	if (n < 0)
		return err_code(err, -errno, "scenarios", "/proc/self/exe");
	out[n] = '\0';
	char *slash = strrchr(out, '/');
	if (!slash)
		return err_code(err, -ENOENT, "scenarios", out);
	*slash = '\0';
	return 0;
}

int scenarios_open(struct pin *ret_directory, struct err *err)
{
	const char *variable = getenv(VARIABLE);
	if (variable && *variable == '/')
		return pin_open(variable, ret_directory, err);
	char directory[PLANE_PATH_MAX], path[PLANE_PATH_MAX + 64];
	int r = program_directory(directory, sizeof directory, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", directory, places[i]);
		r = pin_open(path, ret_directory, NULL);
		if (r == 0)
			return 0;
	}
	return err_set(err, -ENOENT, "scenarios", directory, "no scenarios are installed beside %s", directory);
}

/* "key: value", with or without quotes around the value; the first line that has the key counts. */
static bool manifest_value(const char *text, const char *key, char *out, size_t size)
{
	size_t key_len = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (strncmp(line, key, key_len) != 0 || line[key_len] != ':')
			continue;
		const char *value = line + key_len + 1;
		value += strspn(value, " \t");
		size_t len = strcspn(value, "\r\n");
		while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
			len--;
		if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
			value++;
			len -= 2;
		}
		if (len == 0 || len >= size)
			return false;
		memcpy(out, value, len);
		out[len] = '\0';
		return true;
	}
	return false;
}

int manifest_read(const struct pin *at, struct scenario *ret_scenario, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	struct scenario scenario = {0};
	int r = file_read(at, SEED_MANIFEST, MANIFEST_BYTES_MAX, &text, &len, err);
	if (r < 0)
		return r;
	if (strlen(text) != len || !manifest_value(text, "fixture-name", scenario.name, sizeof scenario.name) ||
	    !scenario_name_valid(scenario.name))
		return err_set(err, -EINVAL, "scenario", SEED_MANIFEST, "it has no fixture-name that can be used");
	if (!manifest_value(text, "description", scenario.description, sizeof scenario.description))
		scenario.description[0] = '\0';
	*ret_scenario = scenario;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct scenario *)a)->name, ((const struct scenario *)b)->name);
}

void scenario_listing_free(struct scenario_listing *listing)
{
	free(listing->v);
	*listing = (struct scenario_listing){0};
}

/* Only a directory whose manifest bears its own name counts. */
static bool is_scenario(const struct pin *directory, const char *name, struct scenario *ret_scenario)
{
	AUTO_PIN struct pin at = PIN_NONE;
	return scenario_name_valid(name) && pin_child(directory, name, &at, NULL) == 0 && manifest_read(&at, ret_scenario, NULL) == 0 &&
	       strcmp(ret_scenario->name, name) == 0;
}

static int list_directory(const struct pin *directory, struct scenario_listing *listing, struct err *err)
{
	int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		int code = -errno;
		close_quietly(fd);
		return err_code(err, code, "scenarios", NULL);
	}
	struct scenario scenario;
	const struct dirent *entry;
	int r = 0;
	while (listing->n < SCENARIOS_MAX && (r = listing_next(stream, &entry)) > 0)
		if (is_scenario(directory, entry->d_name, &scenario))
			listing->v[listing->n++] = scenario;
	(void)closedir(stream);
	return r < 0 ? err_code(err, r, "scenarios", NULL) : 0;
}

int scenarios_list(struct scenario_listing *ret_listing, struct err *err)
{
	AUTO_PIN struct pin directory = PIN_NONE;
	AUTO_SCENARIOS struct scenario_listing listing = {0};
	int r = scenarios_open(&directory, err);
	if (r < 0)
		return r;
	listing.v = calloc(SCENARIOS_MAX, sizeof *listing.v);
	if (!listing.v)
		return err_code(err, -ENOMEM, "scenarios", NULL);
	r = list_directory(&directory, &listing, err);
	if (r < 0)
		return r;
	qsort(listing.v, listing.n, sizeof *listing.v, by_name);
	*ret_listing = listing;
	listing = (struct scenario_listing){0};
	return 0;
}

static int unknown(const char *name, struct err *err)
{
	AUTO_SCENARIOS struct scenario_listing listing = {0};
	char names[512] = "none";
	struct err why = {0};
	if (scenarios_list(&listing, &why) < 0)
		return refuse(err, REFUSAL_SEED, name, "there is no such scenario: %s: %s", why.subject, why.text);
	for (size_t i = 0, at = 0; i < listing.n && at < sizeof names; i++)
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", listing.v[i].name);
	return refuse(err, REFUSAL_SEED, name, "there is no such scenario; there are: %s", names);
}

int scenario_open(const char *name, struct pin *ret_scenario, struct err *err)
{
	AUTO_PIN struct pin directory = PIN_NONE;
	struct scenario scenario;
	if (scenarios_open(&directory, NULL) < 0 || !is_scenario(&directory, name, &scenario))
		return unknown(name, err);
	struct err why = {0};
	int r = pin_child(&directory, name, ret_scenario, &why);
	return r < 0 ? refuse(err, REFUSAL_SEED, name, "%s", why.text) : 0;
}
