#include "pod/system/surroundings.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "pod/model/refusal.h"
#include "pod/system/surroundings_program.h"

#define CONFIG_NAME "kirocrew-pod/config.ini"
#define CHECKOUT_INI "kirocrew-pod.ini"

static const char *nonempty(const char *text)
{
	return text && *text ? text : NULL;
}

static const char *absolute_variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value == '/' ? value : NULL;
}

static bool is_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int copy_path(char out[PLANE_PATH_MAX], const char *path, const char *stage, struct err *err)
{
	int n = snprintf(out, PLANE_PATH_MAX, "%s", path);
	return n < PLANE_PATH_MAX ? 0 : err_code(err, -ENAMETOOLONG, stage, path);
}

static int find_home(char out[PLANE_PATH_MAX], struct err *err)
{
	const char *home = absolute_variable("HOME");
	if (home && is_directory(home))
		return copy_path(out, home, "home", err);
	const struct passwd *entry = getpwuid(getuid());
	const char *recorded = entry ? nonempty(entry->pw_dir) : NULL;
	if (recorded && *recorded == '/' && strcmp(recorded, "/") != 0 && is_directory(recorded))
		return copy_path(out, recorded, "home", err);
	home = getenv("HOME");
	return refuse(err, REFUSAL_BAD_CONFIG, "HOME", "%s%s, and the passwd entry of uid %u names no directory either; set HOME to yours",
		      nonempty(home) ? home : "it", nonempty(home) ? " is not an absolute path of a directory" : " is not set",
		      (unsigned)getuid());
}

static void find_cwd(char out[PLANE_PATH_MAX])
{
	/* Linux says "(unreachable)" for a directory outside the root. */
	if (!getcwd(out, PLANE_PATH_MAX) || *out != '/')
		*out = '\0';
}

/* The link is resolved here, once; what it led to is then opened no-follow. */
static int read_config(const char *path, enum ini_scope scope, struct ini *ret_ini, struct err *err)
{
	AUTO_FREE char *resolved = realpath(path, NULL);
	if (!resolved)
		return err_code(err, -errno, "config", path);
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = file_read_path(resolved, CONFIG_BYTES_MAX, &text, &len, err);
	return r < 0 ? r : ini_read(path, text, len, scope, ret_ini, err);
}

static int read_named_config(const char *config, const char *home, const char *cwd, struct surroundings *s, struct err *err)
{
	int r = path_absolute(config, home, nonempty(cwd), s->config_file, err);
	if (r == 0)
		r = read_config(s->config_file, INI_SCOPE_OPERATOR, &s->ini, err);
	return r < 0 && err && !err->refusal ? err_prepend(err, "--config %s cannot be read", config) : r;
}

/* What is not there is skipped; what is there and cannot be used is not. */
static int search_config(const char *config_home, struct surroundings *s, struct err *err)
{
	const char *directories[] = {config_home, "/etc"};
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		char path[PLANE_PATH_MAX];
		struct err why = {0};
		int n = snprintf(path, sizeof path, "%s/" CONFIG_NAME, directories[i]);
		int r = n < PLANE_PATH_MAX ? read_config(path, INI_SCOPE_OPERATOR, &s->ini, &why) : -ENOENT;
		if (r == 0)
			return copy_path(s->config_file, path, "config", err);
		if (r == -ENOENT || r == -ENOTDIR)
			continue;
		if (err)
			*err = why;
		return why.refusal ? r : err_prepend(err, "%s cannot be read", path);
	}
	return 0;
}

static int read_ini(const char *config, const struct plane_input *input, struct surroundings *s, struct err *err)
{
	if (config)
		return read_named_config(config, input->home, input->cwd ? input->cwd : "", s, err);
	char config_home[PLANE_PATH_MAX];
	int n = snprintf(config_home, sizeof config_home, "%s%s", input->xdg_config_home ? input->xdg_config_home : input->home,
			 input->xdg_config_home ? "" : "/.config");
	return n < PLANE_PATH_MAX ? search_config(config_home, s, err) : err_code(err, -ENAMETOOLONG, "config", input->home);
}

int surroundings_read(const char *config, struct surroundings *ret_surroundings, struct err *err)
{
	AUTO_FREE struct surroundings *s = calloc(1, sizeof *s);
	char home[PLANE_PATH_MAX];
	if (!s)
		return err_code(err, -ENOMEM, "surroundings", NULL);
	int r = find_home(home, err);
	if (r < 0)
		return r;
	find_cwd(s->cwd);
	s->path = nonempty(getenv("PATH"));
	surroundings_program(nonempty(s->cwd), s->program);
	struct plane_input input = {
	    .home = home,
	    .cwd = nonempty(s->cwd),
	    .xdg_config_home = absolute_variable("XDG_CONFIG_HOME"),
	    .xdg_data_home = absolute_variable("XDG_DATA_HOME"),
	    .ini = &s->ini,
	};
	for (size_t i = 0; i < PLANE_SETTINGS; i++)
		input.variable[i] = nonempty(getenv(plane_settings[i].variable));
	r = read_ini(config, &input, s, err);
	if (r == 0)
		r = plane_resolve(&input, &s->plane, err);
	if (r < 0) {
		ini_free(&s->ini);
		return r;
	}
	*ret_surroundings = *s;
	return 0;
}

int checkout_ini_read(const char *checkout, struct ini *ret_ini, struct err *err)
{
	AUTO_PIN struct pin pin = PIN_NONE;
	AUTO_FREE char *text = NULL;
	char path[PLANE_PATH_MAX + 32];
	size_t len = 0;
	struct err why = {0};
	int r = pin_open(checkout, &pin, &why);
	if (r == 0)
		r = file_read(&pin, CHECKOUT_INI, CONFIG_BYTES_MAX, &text, &len, &why);
	if (r == -ENOENT || r == -ENOTDIR) {
		*ret_ini = (struct ini){0};
		return 0;
	}
	(void)snprintf(path, sizeof path, "%s/" CHECKOUT_INI, checkout);
	if (r < 0)
		return refuse(err, REFUSAL_BAD_CONFIG, path, "it cannot be read: %s", why.text);
	return ini_read(path, text, len, INI_SCOPE_CHECKOUT, ret_ini, err);
}

void surroundings_free(struct surroundings *surroundings)
{
	ini_free(&surroundings->ini);
}
