#include "pod/system/seeds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "fsops/draft.h"
#include "fsops/file.h"
#include "fsops/tree.h"
#include "pod/model/floor.h"
#include "pod/model/json.h"
#include "pod/model/refusal.h"
#include "pod/system/scenarios.h"

#define CONFIG_BYTES_MAX (1u << 20)
#define MCP_DIRECTORY "kiro/settings"
#define MCP_FILE "mcp.json"
#define HOME_WORD "{home}"

/* What may stand in a home that nothing was seeded into: its marker. */
static const char *const not_content[] = {".kirocrew-pod"};

static bool is_directory_seed(const char *seed)
{
	return seed[0] == '/';
}

/* --- a directory -------------------------------------------------------------------------------------------------------------- */

static int directory_config(const char *directory, char **ret_text, size_t *ret_len, struct err *err)
{
	AUTO_PIN struct pin at = PIN_NONE;
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	struct err why = {0};
	int r = pin_open(directory, &at, &why);
	if (r == 0)
		r = file_read(&at, SEED_CONFIG, CONFIG_BYTES_MAX, &text, &len, &why);
	if (r == 0)
		r = floor_apply(text, len, ret_text, ret_len, &why);
	return r < 0 ? refuse(err, REFUSAL_SEED, directory, "%s: %s", *why.subject ? why.subject : SEED_CONFIG, why.text) : 0;
}

int seed_check(const char *seed, struct err *err)
{
	if (!*seed)
		return 0;
	if (is_directory_seed(seed)) {
		AUTO_FREE char *text = NULL;
		size_t len = 0;
		return directory_config(seed, &text, &len, err);
	}
	AUTO_PIN struct pin scenario = PIN_NONE;
	return scenario_open(seed, &scenario, err);
}

/* --- one configuration ----------------------------------------------------------------------------------------------------------- */

/* *ret_there: a file stands there, and stays. */
static int config_stands(const struct pin *home, bool *ret_there, struct err *err)
{
	struct stat st;
	if (fstatat(home->fd, SEED_CONFIG, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		*ret_there = false;
		return errno == ENOENT ? 0 : err_code(err, -errno, "seed", SEED_CONFIG);
	}
	if (!S_ISREG(st.st_mode))
		return refuse(err, REFUSAL_HOME, SEED_CONFIG, "%s stands there",
			      S_ISLNK(st.st_mode) ? "a link" : "something that is no file");
	*ret_there = true;
	return 0;
}

/* Whole or not at all: a boot that is killed here finds nothing the next time, never half a file. */
static int config_create(const struct pin *home, const char *text, size_t len, struct err *err)
{
	AUTO_DRAFT struct draft draft = DRAFT_NONE;
	draft_sweep(home);
	int r = draft_make(home, &draft, err);
	if (r == 0)
		r = file_create(&draft.dir, SEED_CONFIG, text, len, 0600, err);
	if (r == 0)
		r = publish_new(&draft.dir, SEED_CONFIG, home, SEED_CONFIG, err);
	return r;
}

static int config_apply(const struct pin *home, const char *directory, struct err *err)
{
	bool there = false;
	int r = config_stands(home, &there, err);
	if (r < 0 || there)
		return r;
	AUTO_FREE char *floored = NULL;
	size_t len = strlen(floor_blank_config);
	if (directory)
		r = directory_config(directory, &floored, &len, err);
	struct err why = {0};
	if (r == 0 && config_create(home, floored ? floored : floor_blank_config, len, &why) < 0)
		r = refuse(err, REFUSAL_HOME, SEED_CONFIG, "%s", why.text);
	return r;
}

/* --- a scenario -------------------------------------------------------------------------------------------------------------------- */

static bool is_content(const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || file_is_temporary(name))
		return false;
	for (size_t i = 0; i < sizeof not_content / sizeof *not_content; i++)
		if (strcmp(name, not_content[i]) == 0)
			return false;
	return true;
}

static int first_content(const struct pin *home, char out[256], struct err *err)
{
	int fd = openat(home->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		int code = -errno;
		close_quietly(fd);
		return err_code(err, code, "seed", NULL);
	}
	const struct dirent *entry;
	int r = 0;
	out[0] = '\0';
	while (!out[0] && (r = listing_next(stream, &entry)) > 0)
		if (is_content(entry->d_name))
			(void)snprintf(out, 256, "%s", entry->d_name);
	(void)closedir(stream);
	return r < 0 ? err_code(err, r, "seed", NULL) : 0;
}

/* *ret_complete: there is nothing to do. */
static int home_is_fit(const struct pin *home, const char *name, bool *ret_complete, struct err *err)
{
	struct scenario there;
	struct err why = {0};
	char found[256];
	int r = manifest_read(home, &there, &why);
	*ret_complete = r == 0 && strcmp(there.name, name) == 0;
	if (*ret_complete)
		return 0;
	if (r == 0)
		return refuse(err, REFUSAL_SEED_INCOMPLETE, name, "it was made from the scenario %s", there.name);
	if (r != -ENOENT)
		return refuse(err, REFUSAL_SEED_INCOMPLETE, name, "%s: %s", SEED_MANIFEST, why.text);
	r = first_content(home, found, err);
	if (r < 0 || !*found)
		return r;
	return refuse(err, REFUSAL_SEED_INCOMPLETE, name, "it holds %s, but not the %s that ends a copy of the scenario", found,
		      SEED_MANIFEST);
}

/* The path as it is written inside a JSON string. */
static char *json_escaped(const char *path)
{
	AUTO_JSON struct json *value = json_new_string(path);
	char *text = value ? json_dump(value, 0) : NULL;
	size_t len = text ? strlen(text) : 0;
	if (len < 2)
		return text;
	memmove(text, text + 1, len - 2);
	text[len - 2] = '\0';
	return text;
}

static char *fill(const char *text, const char *value)
{
	size_t count = 0, word = strlen(HOME_WORD), value_len = strlen(value);
	for (const char *at = text; (at = strstr(at, HOME_WORD)); at += word)
		count++;
	char *filled = malloc(strlen(text) + count * value_len + 1), *out = filled;
	if (!filled)
		return NULL;
	for (const char *at; (at = strstr(text, HOME_WORD)); text = at + word) {
		out = mempcpy(out, text, (size_t)(at - text));
		out = mempcpy(out, value, value_len);
	}
	(void)strcpy(out, text);
	return filled;
}

static int fill_mcp(const struct pin *home, const char *home_path, struct err *err)
{
	AUTO_PIN struct pin settings = PIN_NONE;
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = pin_descend(home, MCP_DIRECTORY, &settings, err);
	if (r == 0)
		r = file_read(&settings, MCP_FILE, CONFIG_BYTES_MAX, &text, &len, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	AUTO_FREE char *escaped = json_escaped(home_path);
	AUTO_FREE char *filled = escaped ? fill(text, escaped) : NULL;
	if (!filled)
		return err_code(err, -ENOMEM, "seed", MCP_FILE);
	return file_replace(&settings, MCP_FILE, filled, strlen(filled), 0600, err);
}

static int floor_config(const struct pin *home, struct err *err)
{
	AUTO_FREE char *text = NULL, *floored = NULL;
	size_t len = 0, floored_len = 0;
	int r = file_read(home, SEED_CONFIG, CONFIG_BYTES_MAX, &text, &len, err);
	if (r == 0)
		r = floor_apply(text, len, &floored, &floored_len, err);
	if (r == 0)
		r = file_replace(home, SEED_CONFIG, floored, floored_len, 0600, err);
	return r == -ENOENT ? 0 : r;
}

static int copy_scenario(const struct pin *scenario, const struct pin *home, const char *home_path, struct err *err)
{
	AUTO_DRAFT struct draft draft = DRAFT_NONE;
	int r = tree_copy(scenario, home, SEED_MANIFEST, err);
	if (r == 0)
		r = floor_config(home, err);
	if (r == 0)
		r = fill_mcp(home, home_path, err);
	if (r == 0)
		r = draft_make(home, &draft, err);
	if (r == 0)
		r = tree_copy_file(scenario, SEED_MANIFEST, &draft.dir, SEED_MANIFEST, err);
	return r < 0 ? r : publish_new(&draft.dir, SEED_MANIFEST, home, SEED_MANIFEST, err);
}

static int scenario_apply(const struct pin *home, const char *home_path, const char *name, struct err *err)
{
	AUTO_PIN struct pin scenario = PIN_NONE;
	bool complete = false;
	int r = home_is_fit(home, name, &complete, err);
	if (r < 0 || complete)
		return r;
	r = scenario_open(name, &scenario, err);
	if (r < 0)
		return r;
	struct err why = {0};
	r = copy_scenario(&scenario, home, home_path, &why);
	return r < 0 ? refuse(err, REFUSAL_SEED_INCOMPLETE, name, "%s%s%s", why.subject, *why.subject ? ": " : "", why.text) : 0;
}

int seed_apply(const struct pin *home, const char *home_path, const char *seed, bool kirocrew, struct err *err)
{
	if (!*seed)
		return kirocrew ? config_apply(home, NULL, err) : 0;
	if (is_directory_seed(seed))
		return config_apply(home, seed, err);
	return scenario_apply(home, home_path, seed, err);
}
