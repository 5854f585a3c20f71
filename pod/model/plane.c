#include "pod/model/plane.h"

#include <stdio.h>
#include <string.h>

#include "pod/model/ascii.h"
#include "pod/model/ini.h"
#include "pod/model/path.h"
#include "pod/model/refusal.h"
#include "pod/model/text.h"

const struct plane_setting_entry plane_settings[PLANE_SETTINGS] = {
    [PLANE_ROOT] = {"KIROCREW_POD_ROOT", "root", "~/.kirocrew-pods", "where the homes of the pods are"},
    [PLANE_ENV_DIR] = {"KIROCREW_POD_ENV_DIR", "env-dir", "~/.kiro/crew/pods", "records, notes and locks"},
    [PLANE_ARTIFACTS_DIR] = {"KIROCREW_POD_ARTIFACTS_DIR", "artifacts-dir", NULL, "logs where no journal can be read; by default .e2e-artifacts below the root"},
    [PLANE_BASE_PORT] = {"KIROCREW_POD_BASE_PORT", "base-port", "7810", "the band of ports begins behind it"},
    [PLANE_PORT_SPAN] = {"KIROCREW_POD_PORT_SPAN", "port-span", "199", "how many ports the band has, 1 to 10000"},
    [PLANE_LIVE_PORT] = {"KIROCREW_POD_LIVE_PORT", "live-port", "5476", "a port that a pod never binds"},
    [PLANE_UNIT_PREFIX] = {"KIROCREW_POD_UNIT_PREFIX", "unit-prefix", "kirocrew-pod", "first part of the names of units, at most 40 characters"},
    [PLANE_PATH] = {"KIROCREW_POD_PATH", "path", "~/.local/bin:/usr/local/bin:/usr/bin:/bin", "PATH of the pods"},
    [PLANE_REPO] = {"KIROCREW_POD_REPO", "repo", NULL, "whose git worktrees are looked up by name; by default the working directory"},
    [PLANE_WORKTREES_ROOT] = {"KIROCREW_POD_WORKTREES_ROOT", "worktrees-root", NULL, "where worktrees are looked for next; by default nowhere"},
    [PLANE_HEALTH_SECS] = {"KIROCREW_POD_HEALTH_SECS", "health-secs", "90", "seconds that `up` waits, 5 to 3600"},
    [PLANE_KIRO_BIN] = {"KIROCREW_POD_KIRO_BIN", "kiro-bin", NULL, "passed to the payload as KIROCREW_KIRO_BIN; by default nothing"},
    [PLANE_BACKEND] = {"KIROCREW_POD_BACKEND", "backend", "auto", "auto, systemd, launchd or embedded; auto is systemd if its user manager answers, launchd on macOS, else embedded"},
};

static const char *const backends[] = {
    [BACKEND_AUTO] = "auto",	     [BACKEND_SYSTEMD] = "systemd", [BACKEND_LAUNCHD] = "launchd",
    [BACKEND_EMBEDDED] = "embedded", [BACKEND_NULL] = "none",
};

const char *backend_name(enum backend backend)
{
	return backends[backend];
}

int backend_parse(const char *text, enum backend *ret_backend, struct err *err)
{
	for (unsigned i = BACKEND_AUTO; i < BACKEND_NULL; i++)
		if (!strcmp(text, backends[i])) {
			*ret_backend = (enum backend)i;
			return 0;
		}
	return refuse(err, REFUSAL_BAD_CONFIG, text, "a backend is auto, systemd, launchd or embedded");
}

/* One setting while it is read: its text, and where that came from. */
struct setting {
	const struct plane_input *input;
	enum plane_setting which;
	const char *text; /* NULL: unset */
	char origin[256];
};

/* What is set but empty is unset, as for systemd's own variables. */
static struct setting setting_of(const struct plane_input *input, enum plane_setting which)
{
	const struct plane_setting_entry *entry = &plane_settings[which];
	const char *variable = input->variable[which], *key = input->ini ? input->ini->plane[which] : NULL;
	struct setting s = {.input = input, .which = which, .text = entry->default_value};
	(void)snprintf(s.origin, sizeof s.origin, "%s", entry->variable);
	if (variable && *variable) {
		s.text = variable;
	} else if (key && *key) {
		s.text = key;
		(void)snprintf(s.origin, sizeof s.origin, "%.200s: [plane] %s", input->ini->file ? input->ini->file : "configuration",
			       entry->key);
	}
	return s;
}

static int bad(const struct setting *s, struct err *err, const char *why)
{
	return refuse(err, REFUSAL_BAD_CONFIG, s->origin, "%.100s: %s", s->text, why);
}

/* The fault lies with the one that somebody set. */
static const struct setting *first_set(const struct setting *one, const struct setting *other)
{
	return one->text != plane_settings[one->which].default_value ? one : other;
}

/* Settings go into units, records and JSON, which carry nothing else: systemd refuses a whole unit for one such byte. The repository is only
 * read, and is the caller's directory unless somebody names it. */
static bool can_be_carried(const struct setting *s, const char *value)
{
	return s->which == PLANE_REPO || text_is_utf8(value, strlen(value));
}

static int resolve_path(const struct setting *s, const char *text, char *out, struct err *err)
{
	const char *why = path_resolve(text, s->input->home, s->input->cwd, out);
	if (!why && !can_be_carried(s, out))
		why = "it is not UTF-8";
	return why ? bad(s, err, why) : 0;
}

static int take_path(const struct setting *s, char *out, struct err *err)
{
	if (s->text)
		return resolve_path(s, s->text, out, err);
	*out = '\0';
	return 0;
}

static int take_number(const struct setting *s, uint64_t min, uint64_t max, int *ret_number, struct err *err)
{
	char why[96];
	uint64_t value = 0;
	(void)snprintf(why, sizeof why, "it is a decimal number from %u to %u", (unsigned)min, (unsigned)max);
	if (!ascii_decimal(s->text, max, &value) || value < min)
		return bad(s, err, why);
	*ret_number = (int)value;
	return 0;
}

static int read_ports(const struct plane_input *input, struct plane *plane, struct err *err)
{
	struct setting base = setting_of(input, PLANE_BASE_PORT), span = setting_of(input, PLANE_PORT_SPAN),
		       live = setting_of(input, PLANE_LIVE_PORT);
	int r = take_number(&base, 0, 65534, &plane->base_port, err);
	if (r == 0)
		r = take_number(&span, 1, 10000, &plane->port_span, err);
	if (r == 0)
		r = take_number(&live, 1, 65535, &plane->live_port, err);
	if (r < 0 || plane->base_port + plane->port_span <= 65535)
		return r;
	return bad(first_set(&span, &base), err, "base-port + port-span is more than 65535");
}

static int read_prefix(const struct plane_input *input, struct plane *plane, struct err *err)
{
	struct setting s = setting_of(input, PLANE_UNIT_PREFIX);
	if (!ascii_name(s.text, strlen(s.text), PLANE_PREFIX_MAX))
		return bad(&s, err, "a unit prefix is 1 to 40 of A-Z a-z 0-9 . _ - and begins with a letter or digit");
	(void)snprintf(plane->prefix, sizeof plane->prefix, "%s", s.text);
	return 0;
}

/* Any whole number is understood and brought into its bounds. */
static int read_health_secs(const struct plane_input *input, struct plane *plane, struct err *err)
{
	struct setting s = setting_of(input, PLANE_HEALTH_SECS);
	const char *digits = s.text + (*s.text == '-');
	size_t len = strspn(digits, "0123456789");
	if (!len || digits[len])
		return bad(&s, err, "it is a whole number of seconds");
	int secs = 0;
	for (const char *c = digits; *c && secs < 3600; c++)
		secs = secs * 10 + (*c - '0');
	if (*s.text == '-' || secs < 5)
		secs = 5;
	plane->health_secs = secs > 3600 ? 3600 : secs;
	return 0;
}

static int read_backend(const struct plane_input *input, struct plane *plane, struct err *err)
{
	struct setting s = setting_of(input, PLANE_BACKEND);
	if (backend_parse(s.text, &plane->backend, NULL) < 0)
		return bad(&s, err, "a backend is auto, systemd, launchd or embedded");
	return 0;
}

/* Each directory made absolute; an empty one, which would mean wherever the pod happens to stand, is left out. */
static int read_search_path(const struct plane_input *input, struct plane *plane, struct err *err)
{
	struct setting s = setting_of(input, PLANE_PATH);
	size_t used = 0;
	for (const char *at = s.text; *at;) {
		char part[PLANE_PATH_MAX], absolute[PLANE_PATH_MAX];
		size_t len = strcspn(at, ":");
		if (len >= sizeof part)
			return bad(&s, err, "it is too long");
		(void)snprintf(part, sizeof part, "%.*s", (int)len, at);
		at += len + (at[len] == ':');
		if (!len)
			continue;
		int r = resolve_path(&s, part, absolute, err);
		if (r < 0)
			return r;
		int n = snprintf(plane->path + used, sizeof plane->path - used, "%s%s", used ? ":" : "", absolute);
		if ((size_t)n >= sizeof plane->path - used)
			return bad(&s, err, "it is too long");
		used += (size_t)n;
	}
	return used ? 0 : bad(&s, err, "it names no directory");
}

/* A bare word is looked up where the payload runs, as any command is. */
static int read_kiro_bin(const struct plane_input *input, struct plane *plane, struct err *err)
{
	struct setting s = setting_of(input, PLANE_KIRO_BIN);
	if (!s.text || *s.text == '~' || strchr(s.text, '/'))
		return take_path(&s, plane->kiro_bin, err);
	if (strlen(s.text) >= sizeof plane->kiro_bin || strpbrk(s.text, "\n\r") || !can_be_carried(&s, s.text))
		return bad(&s, err, "it is neither a path nor the name of a command");
	(void)snprintf(plane->kiro_bin, sizeof plane->kiro_bin, "%s", s.text);
	return 0;
}

static int read_artifacts(const struct plane_input *input, struct plane *plane, struct err *err)
{
	struct setting s = setting_of(input, PLANE_ARTIFACTS_DIR);
	char below[PLANE_PATH_MAX];
	if (!s.text) {
		int n = snprintf(below, sizeof below, "%s/.e2e-artifacts", plane->root);
		s.text = below;
		if ((size_t)n >= sizeof below)
			return bad(&s, err, "the path is too long");
	}
	return take_path(&s, plane->artifacts, err);
}

/* Entries of one would bear the names of another's: the home of a pod "a.env" and the record of "a". Different spellings of one directory
 * are met when it is open (session_open). */
static int check_apart(const struct plane_input *input, struct plane *plane, struct err *err)
{
	const struct setting root = setting_of(input, PLANE_ROOT), pods_dir = setting_of(input, PLANE_ENV_DIR),
			     artifacts = setting_of(input, PLANE_ARTIFACTS_DIR), *of_pods = first_set(&pods_dir, &root);
	if (strcmp(plane->pods_dir, plane->root) == 0)
		return bad(of_pods, err, "pods root and pods dir are the same; each needs a directory of its own");
	if (strcmp(plane->artifacts, plane->root) == 0 || strcmp(plane->artifacts, plane->pods_dir) == 0)
		return bad(first_set(&artifacts, of_pods), err, "the artifacts are in the pods root or the pods dir itself; each needs a directory of its own");
	return 0;
}

static int read_repo(const struct plane_input *input, struct plane *plane, struct err *err)
{
	struct setting s = setting_of(input, PLANE_REPO);
	if (!s.text)
		s.text = input->cwd;
	return take_path(&s, plane->repo, err);
}

static int read_paths(const struct plane_input *input, struct plane *plane, struct err *err)
{
	const struct {
		enum plane_setting which;
		char *out;
	} paths[] = {{PLANE_ROOT, plane->root}, {PLANE_ENV_DIR, plane->pods_dir}, {PLANE_WORKTREES_ROOT, plane->worktrees_root}};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct setting s = setting_of(input, paths[i].which);
		int r = take_path(&s, paths[i].out, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* An XDG base directory that is not absolute, or climbs, is to be ignored (XDG Base Directory Specification; ours for ".."). */
static int read_base_directory(const char *variable, const char *value, const char *otherwise, const char *home, char *out, struct err *err)
{
	bool usable = value && *value == '/' && !path_climbs(value);
	const char *why = path_resolve(usable ? value : otherwise, home, NULL, out);
	return why ? refuse(err, REFUSAL_BAD_CONFIG, usable ? variable : "HOME", "%s", why) : 0;
}

static int read_operator(const struct plane_input *input, struct plane *plane, struct err *err)
{
	const char *home = input->home;
	int r = read_base_directory("HOME", NULL, "~", home, plane->home, err);
	if (r == 0)
		r = read_base_directory("XDG_CONFIG_HOME", input->xdg_config_home, "~/.config", home, plane->config_home, err);
	if (r == 0)
		r = read_base_directory("XDG_DATA_HOME", input->xdg_data_home, "~/.local/share", home, plane->data_home, err);
	return r;
}

int plane_resolve(const struct plane_input *input, struct plane *ret_plane, struct err *err)
{
	static int (*const readers[])(const struct plane_input *, struct plane *, struct err *) = {
	    read_operator, read_paths,	read_artifacts,	  check_apart,	 read_repo,    read_search_path,
	    read_ports,	   read_prefix, read_health_secs, read_kiro_bin, read_backend,
	};
	struct plane plane = {.backend = BACKEND_AUTO};
	for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
		int r = readers[i](input, &plane, err);
		if (r < 0)
			return r;
	}
	*ret_plane = plane;
	return 0;
}
