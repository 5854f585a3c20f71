#include "pod/model/environment.h"

#include <stdio.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/port.h"
#include "pod/model/refusal.h"

/* What a rule matches: a whole name, or one of its ends. */
enum match { NAME, PREFIX, SUFFIX };
struct removal {
	enum match match;
	const char *text;
	const char *unless; /* a prefix that is kept all the same */
};

static const struct removal from_payload[] = {
    {PREFIX, "SLACK_", NULL},
    {PREFIX, "WECOM_", NULL},
    {PREFIX, "MICROSOFT_APP_", NULL},
    {PREFIX, "FEISHU_", NULL},
    {PREFIX, "JIRA_TOKEN_", NULL},
    {PREFIX, "KIROCREW_BOUND_", NULL},
    {SUFFIX, "_TOKEN", "AWS_"},
    {NAME, "TELEGRAM_BOT_TOKEN", NULL},
    {NAME, "DISCORD_BOT_TOKEN", NULL},
    {NAME, "WEBEX_BOT_TOKEN", NULL},
    {NAME, "WEIXIN_TOKEN", NULL},
    {NAME, "JIRA_API_TOKEN", NULL},
    {NAME, "AZURE_DEVOPS_EXT_PAT", NULL},
    {NAME, "BITBUCKET_EMAIL", NULL},
    {NAME, "BITBUCKET_API_TOKEN", NULL},
    /* What is this pod's own, or nobody's: never inherited from a pod that we are in. */
    {NAME, "KIROCREW_POD_ID", NULL},
    {NAME, "KIROCREW_POD_APPROVAL", NULL},
    {NAME, "KIROCREW_POD_CRONS", NULL},
    {NAME, "KIROCREW_PROJECT_DIR", NULL},
    {NAME, NULL, NULL},
};

static const struct removal without_embeddings[] = {
    {NAME, "KIROCREW_EMBED_MODEL_PATH", NULL},
    {NAME, "KIROCREW_EMBED_MODEL_URL", NULL},
    {NAME, NULL, NULL},
};

static const struct removal from_command[] = {
    {NAME, "XDG_RUNTIME_DIR", NULL},
    {NAME, NULL, NULL},
};

/* Removed, not rewritten: a rewritten path would be taken for a configuration. */
static const struct removal from_agent[] = {
    {NAME, "XDG_DATA_HOME", NULL},
    {NAME, "LOCALAPPDATA", NULL},
    {NAME, "APPDATA", NULL},
    {NAME, "AWS_CONFIG_FILE", NULL},
    {NAME, "AWS_SHARED_CREDENTIALS_FILE", NULL},
    {NAME, "AWS_WEB_IDENTITY_TOKEN_FILE", NULL},
    {NAME, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", NULL},
    {NAME, "AWS_CONTAINER_CREDENTIALS_FULL_URI", NULL},
    {NAME, "AWS_CONTAINER_AUTHORIZATION_TOKEN", NULL},
    {NAME, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", NULL},
    {PREFIX, "AWS_SECRET", NULL},
    {PREFIX, "AWS_SESSION", NULL},
    {NAME, NULL, NULL},
};

static bool starts(const char *name, size_t len, const char *prefix)
{
	size_t prefix_len = strlen(prefix);
	return len >= prefix_len && memcmp(name, prefix, prefix_len) == 0;
}

static bool ends(const char *name, size_t len, const char *suffix)
{
	size_t suffix_len = strlen(suffix);
	return len >= suffix_len && memcmp(name + len - suffix_len, suffix, suffix_len) == 0;
}

static bool matches(const struct removal *rule, const char *name, size_t len)
{
	if (rule->unless && starts(name, len, rule->unless))
		return false;
	switch (rule->match) {
	case PREFIX:
		return starts(name, len, rule->text);
	case SUFFIX:
		return ends(name, len, rule->text);
	default:
		return strlen(rule->text) == len && starts(name, len, rule->text);
	}
}

static bool is_removed(const struct removal *rules, const char *entry)
{
	const char *equals = strchr(entry, '=');
	size_t len = equals ? (size_t)(equals - entry) : strlen(entry);
	for (const struct removal *rule = rules; rule->text; rule++)
		if (matches(rule, entry, len))
			return true;
	return false;
}

/* A copy of `from` without what the rules remove. */
static int copy_without(const struct environment *from, const struct removal *rules, struct environment *ret_environment, struct err *err)
{
	AUTO_FREE char **kept = calloc(from->n + 1, sizeof *kept);
	if (!kept)
		return err_code(err, -ENOMEM, "environment", NULL);
	size_t n = 0;
	for (size_t i = 0; i < from->n; i++)
		if (!is_removed(rules, from->v[i]))
			kept[n++] = from->v[i];
	return environment_copy(kept, ret_environment, err);
}

static void remove_names(struct environment *environment, const struct removal *rules)
{
	for (const struct removal *rule = rules; rule->text; rule++)
		environment_unset(environment, rule->text);
}

struct assignment {
	const char *name;
	const char *base; /* a directory, or the value itself when `relative` is NULL */
	const char *relative;
};

static int assign(struct environment *environment, const struct assignment *table, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		char value[2 * PLANE_PATH_MAX];
		const char *relative = table[i].relative;
		(void)snprintf(value, sizeof value, "%s%s%s", table[i].base, relative ? "/" : "", relative ? relative : "");
		int r = environment_set(environment, table[i].name, value, err);
		if (r < 0)
			return r;
	}
	return 0;
}
#define ASSIGN(environment, table, err) assign(environment, table, sizeof(table) / sizeof *(table), err)

/* A command may come from a checkout's own configuration, so the checkout does not tell. */
static bool is_command(const struct spec *spec)
{
	return spec->exec.n > 0;
}

static const char *approval_word(enum approval approval)
{
	switch (approval) {
	case APPROVAL_READS:
		return "reads";
	case APPROVAL_YOLO:
		return "yolo";
	case APPROVAL_INTERACTIVE:
		return "interactive";
	default:
		return NULL;
	}
}

static int set_path(struct environment *environment, const struct plane *plane, const struct spec *spec, struct err *err)
{
	if (!spec->checkout)
		return environment_set(environment, "PATH", plane->path, err);
	if (strchr(spec->checkout, ':'))
		return refuse(err, REFUSAL_VALUE, spec->checkout, "a checkout with ':' in its path cannot be part of PATH");
	char path[2 * PLANE_PATH_MAX + 16];
	(void)snprintf(path, sizeof path, "%s/.venv/bin:%s", spec->checkout, plane->path);
	return environment_set(environment, "PATH", path, err);
}

static int set_from_spec(struct environment *environment, const struct plane *plane, const struct pod_name *name, const struct spec *spec,
			 struct err *err)
{
	char port[16];
	(void)snprintf(port, sizeof port, "%d", spec->port ? spec->port : port_preferred(plane, name));
	const char *approval = approval_word(spec->approval);
	const struct {
		bool set;
		struct assignment assignment;
	} table[] = {
	    {true, {"KIROCREW_PORT", port, NULL}},
	    {true, {"PORT", port, NULL}},
	    {spec->checkout, {"KIROCREW_PROJECT_DIR", spec->checkout, NULL}},
	    {*spec->id, {"KIROCREW_POD_ID", spec->id, NULL}},
	    {approval, {"KIROCREW_POD_APPROVAL", approval, NULL}},
	    {spec->crons, {"KIROCREW_POD_CRONS", "1", NULL}},
	    {!spec->embeddings, {"KIROCREW_SKIP_MODEL_DOWNLOAD", "1", NULL}},
	    {*plane->kiro_bin, {"KIROCREW_KIRO_BIN", plane->kiro_bin, NULL}},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		int r = table[i].set ? assign(environment, &table[i].assignment, 1, err) : 0;
		if (r < 0)
			return r;
	}
	return set_path(environment, plane, spec, err);
}

static int set_homes(struct environment *environment, const struct pod_name *name, const struct spec *spec, const struct pod_paths *paths,
		     struct err *err)
{
	const struct assignment always[] = {
	    {"KIROCREW_HOME", paths->home, NULL},
	    {"KIROCREW_OS_HOME", paths->os_home, NULL},
	    {"KIRO_HOME", paths->kiro, NULL},
	    {"KIROCREW_WORKSPACE", paths->workspace, NULL},
	    {"KIROCREW_POD", "1", NULL},
	    {"KIROCREW_POD_NAME", name->text, NULL},
	    {"KIROCREW_BIND", "127.0.0.1", NULL},
	    {"GH_CONFIG_DIR", paths->home, ".config/gh"},
	    {"GLAB_CONFIG_DIR", paths->home, ".config/glab-cli"},
	    {"AZURE_CONFIG_DIR", paths->home, ".azure"},
	    {"AZURE_EXTENSION_DIR", paths->home, ".azure/cliextensions"},
	};
	/* A checkout's gateway keeps the operator's HOME; the isolation of its children is its own task. */
	const struct assignment command[] = {
	    {"HOME", paths->os_home, NULL},
	    {"XDG_CONFIG_HOME", paths->os_home, ".config"},
	    {"XDG_DATA_HOME", paths->os_home, ".local/share"},
	    {"XDG_CACHE_HOME", paths->os_home, ".cache"},
	    {"XDG_STATE_HOME", paths->os_home, ".local/state"},
	};
	int r = ASSIGN(environment, always, err);
	if (r == 0 && is_command(spec))
		r = ASSIGN(environment, command, err);
	return r;
}

static int set_pod(struct environment *environment, const struct plane *plane, const struct pod_name *name, const struct spec *spec,
		   const struct pod_paths *paths, struct err *err)
{
	int r = set_homes(environment, name, spec, paths, err);
	return r < 0 ? r : set_from_spec(environment, plane, name, spec, err);
}

static int add_all(struct environment *environment, const struct environment *more, struct err *err)
{
	for (size_t i = 0; i < more->n; i++) {
		char *value = strchr(more->v[i], '=');
		*value = '\0';
		int r = environment_set(environment, more->v[i], value + 1, err);
		*value = '=';
		if (r < 0)
			return r;
	}
	return 0;
}

static struct environment take_environment(struct environment *environment)
{
	struct environment taken = *environment;
	*environment = (struct environment){0};
	return taken;
}

int environment_for_payload(const struct plane *plane, const struct pod_name *name, const struct spec *spec, const struct pod_paths *paths,
			    const struct environment *base, struct environment *ret_environment, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0}, settings = {0};
	int r = copy_without(base, from_payload, &environment, err);
	if (r == 0)
		r = environment_of_plane(plane, &settings, err);
	if (r == 0)
		r = add_all(&environment, &settings, err);
	if (r == 0)
		r = set_pod(&environment, plane, name, spec, paths, err);
	if (r < 0)
		return r;
	if (!spec->embeddings)
		remove_names(&environment, without_embeddings);
	if (is_command(spec))
		remove_names(&environment, from_command);
	*ret_environment = take_environment(&environment);
	return 0;
}

int environment_for_agent(const struct environment *payload, const struct pod_paths *paths, struct environment *ret_environment,
			  struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	const struct assignment homes[] = {{"HOME", paths->os_home, NULL}, {"USERPROFILE", paths->os_home, NULL}};
	int r = copy_without(payload, from_agent, &environment, err);
	if (r == 0)
		r = ASSIGN(&environment, homes, err);
	if (r < 0)
		return r;
	*ret_environment = take_environment(&environment);
	return 0;
}

int environment_of_pod(const struct plane *plane, const struct pod_name *name, const struct spec *spec, const struct pod_paths *paths,
		       struct environment *ret_environment, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	int r = set_pod(&environment, plane, name, spec, paths, err);
	if (r < 0)
		return r;
	*ret_environment = take_environment(&environment);
	return 0;
}

int environment_of_plane(const struct plane *plane, struct environment *ret_environment, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	char base[16], span[16], live[16];
	(void)snprintf(base, sizeof base, "%d", plane->base_port);
	(void)snprintf(span, sizeof span, "%d", plane->port_span);
	(void)snprintf(live, sizeof live, "%d", plane->live_port);
	const struct {
		enum plane_setting setting;
		const char *value; /* "": unset */
	} table[] = {
	    {PLANE_ROOT, plane->root},
	    {PLANE_ENV_DIR, plane->pods_dir},
	    {PLANE_ARTIFACTS_DIR, plane->artifacts},
	    {PLANE_BASE_PORT, base},
	    {PLANE_PORT_SPAN, span},
	    {PLANE_LIVE_PORT, live},
	    {PLANE_UNIT_PREFIX, plane->prefix},
	    {PLANE_PATH, plane->path},
	    {PLANE_WORKTREES_ROOT, plane->worktrees_root},
	    {PLANE_KIRO_BIN, plane->kiro_bin},
	    {PLANE_BACKEND, backend_name(plane->backend)},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		int r = *table[i].value ? environment_set(&environment, plane_settings[table[i].setting].variable, table[i].value, err) : 0;
		if (r < 0)
			return r;
	}
	*ret_environment = take_environment(&environment);
	return 0;
}
