#include "pod/model/unit_map.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pod/model/refusal.h"
#include "pod/model/unit_text.h"

struct word_value {
	const char *word;
	int value;
};

static int word_lookup(const struct word_value *table, size_t count, const char *word, int otherwise)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(table[i].word, word) == 0)
			return table[i].value;
	return otherwise;
}
#define LOOKUP(table, word, otherwise) word_lookup(table, sizeof(table) / sizeof *(table), word, otherwise)

static enum unit_active active_map(const struct unit_properties *p)
{
	static const struct word_value states[] = {
		{"active", UNIT_ACTIVE},	 {"reloading", UNIT_ACTIVE},  {"refreshing", UNIT_ACTIVE},   {"activating", UNIT_STARTING},
		{"deactivating", UNIT_STOPPING}, {"inactive", UNIT_INACTIVE}, {"maintenance", UNIT_INACTIVE}, {"failed", UNIT_FAILED},
	};
	enum unit_active active = (enum unit_active)LOOKUP(states, p->active_state, UNIT_UNKNOWN);
	if (active == UNIT_STARTING && strncmp(p->sub_state, "auto-restart", strlen("auto-restart")) == 0)
		return UNIT_RESTARTING;
	if (active == UNIT_INACTIVE && strcmp(p->load_state, "not-found") == 0)
		return UNIT_ABSENT;
	return active;
}

/* A failure is not started again for one of two reasons: its status, or the start limit. The manager says so of the limit only when a start
 * by hand hits it; one that its own restart hits leaves the result of the last run. */
static bool left_alone(const struct unit_properties *p)
{
	bool ended_badly = strcmp(p->result, "exit-code") == 0 || strcmp(p->result, "signal") == 0 || strcmp(p->result, "core-dump") == 0;
	bool prevented = p->exec_main_code == CLD_EXITED && exit_status_terminal(p->exec_main_status);
	return ended_badly && !prevented && strcmp(p->active_state, "failed") == 0 && p->n_restarts + 1 >= UNIT_START_LIMIT_BURST;
}

static enum unit_end end_map(const struct unit_properties *p)
{
	static const struct word_value results[] = {
		{"exit-code", UNIT_END_EXITED}, {"signal", UNIT_END_SIGNALED}, {"core-dump", UNIT_END_SIGNALED},
		{"timeout", UNIT_END_TIMEOUT},	{"watchdog", UNIT_END_TIMEOUT}, {"start-limit-hit", UNIT_END_START_LIMIT},
	};
	if (left_alone(p))
		return UNIT_END_START_LIMIT;
	if (*p->result && strcmp(p->result, "success") != 0)
		return (enum unit_end)LOOKUP(results, p->result, UNIT_END_OTHER);
	if (p->exec_main_code == CLD_EXITED)
		return UNIT_END_EXITED;
	return p->exec_main_code == CLD_KILLED || p->exec_main_code == CLD_DUMPED ? UNIT_END_SIGNALED : UNIT_END_NONE;
}

int unit_state_map(const struct unit_properties *p, const char *cgroup_mount, struct unit_state *ret_state, struct err *err)
{
	struct unit_state state = {
		.active = active_map(p),
		.main_pid = (pid_t)p->main_pid,
		.end = end_map(p),
		.status = p->exec_main_status,
		.restarts = p->n_restarts,
		.since_usec = (int64_t)p->state_change_usec,
	};
	/* systemd blanks ControlGroup when the unit has ended. */
	if (*p->control_group) {
		int n = snprintf(state.group.cgroup, sizeof state.group.cgroup, "%s%s", cgroup_mount, p->control_group);
		if (n < 0 || (size_t)n >= sizeof state.group.cgroup)
			return err_set(err, -ENAMETOOLONG, "unit", p->control_group, "the path of the control group is too long");
	}
	const char *word = *p->result && strcmp(p->result, "success") != 0 ? p->result : p->sub_state;
	(void)snprintf(state.detail, sizeof state.detail, "%s", word);
	*ret_state = state;
	return 0;
}

bool unit_state_differs(const struct unit_state *a, const struct unit_state *b)
{
	return a->active != b->active || a->main_pid != b->main_pid || a->end != b->end || a->status != b->status || a->restarts != b->restarts;
}

int unit_name_split(const char *prefix, const char *unit, struct pod_name *ret_name)
{
	static const char suffix[] = ".service";
	size_t head = strlen(prefix), len = strlen(unit), tail = sizeof suffix - 1;
	if (len < head + 1 + tail || strncmp(unit, prefix, head) != 0 || unit[head] != '@' || strcmp(unit + len - tail, suffix) != 0)
		return -EINVAL;
	return pod_name_parse(unit + head + 1, len - head - 1 - tail, ret_name, NULL) < 0 ? -EINVAL : 0;
}

static const char *line_next(const char *line)
{
	const char *end = strchr(line, '\n');
	return end && end[1] ? end + 1 : NULL;
}

bool unit_text_value(const char *text, const char *key, char *out, size_t size)
{
	const char *value = NULL;
	size_t len = strlen(key);
	for (const char *line = text; line; line = line_next(line))
		if (strncmp(line, key, len) == 0 && line[len] == '=')
			value = line + len + 1;
	if (!value || strcspn(value, "\n") >= size)
		return false;
	(void)snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
	return true;
}

static bool has_line(const char *lines, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = lines; at; at = line_next(at))
		if (strcspn(at, "\n") == len && strncmp(at, line, len) == 0)
			return true;
	return false;
}

/* Ours is the last directory component "<unit>.d" below the fragment's directory. */
static bool has_our_drop_in(const struct unit_definition *definition, const struct unit_expected *expected)
{
	char directory[PLANE_PATH_MAX + 256];
	const char *slash = strrchr(expected->fragment, '/');
	int n = snprintf(directory, sizeof directory, "%.*s/%s.d/50-kirocrew-pod.conf", (int)(slash ? slash - expected->fragment : 0),
			 expected->fragment, expected->unit);
	return n > 0 && (size_t)n < sizeof directory && has_line(definition->drop_ins, directory);
}

bool unit_definition_current(const struct unit_definition *definition, const struct unit_expected *expected)
{
	if (definition->need_reload || strcmp(definition->load_state, "not-found") == 0)
		return false;
	return expected->drop_in ? has_line(definition->drop_ins, expected->drop_in) : !has_our_drop_in(definition, expected);
}

/* The drop-ins that are not ours, for the sentence. */
static void foreign_drop_ins(const struct unit_definition *definition, const struct unit_expected *expected, char *out, size_t size)
{
	size_t used = 0;
	*out = 0;
	for (const char *at = definition->drop_ins; at && *at; at = line_next(at)) {
		size_t len = strcspn(at, "\n");
		if (expected->drop_in && strlen(expected->drop_in) == len && strncmp(at, expected->drop_in, len) == 0)
			continue;
		int n = snprintf(out + used, size - used, "%s%.*s", used ? ", " : "", (int)len, at);
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

static bool prevents(const struct unit_definition *definition, const char *template)
{
	char statuses[256];
	if (!unit_text_value(template, "RestartPreventExitStatus", statuses, sizeof statuses))
		return true;
	char *saved = NULL;
	for (char *word = strtok_r(statuses, " ", &saved); word; word = strtok_r(NULL, " ", &saved)) {
		unsigned long status = strtoul(word, NULL, 10);
		if (status > 255 || !definition->prevent[status])
			return false;
	}
	return true;
}

static const char *overridden(const struct unit_definition *definition, const struct unit_expected *expected)
{
	char restart[32], words[sizeof definition->command.last_words];
	(void)snprintf(words, sizeof words, "_run %s", expected->name->text);
	if (strcmp(definition->command.program, expected->program) != 0 || strcmp(definition->command.last_words, words) != 0)
		return "ExecStart=";
	if (unit_text_value(expected->template, "Restart", restart, sizeof restart) && strcmp(definition->restart, restart) != 0)
		return "Restart=";
	return prevents(definition, expected->template) ? NULL : "RestartPreventExitStatus=";
}

int unit_definition_check(const struct unit_definition *definition, const struct unit_expected *expected, struct err *err)
{
	if (strcmp(definition->load_state, "masked") == 0)
		return refuse(err, REFUSAL_BAD_CONFIG, expected->unit, "the unit is masked by %s",
			      *definition->fragment ? definition->fragment : "a link to /dev/null");
	if (strcmp(definition->load_state, "loaded") != 0)
		return refuse(err, REFUSAL_BAD_CONFIG, expected->unit, "systemd cannot load the unit (%s)", definition->load_state);
	if (strcmp(definition->fragment, expected->fragment) != 0)
		return refuse(err, REFUSAL_BAD_CONFIG, expected->unit, "systemd takes the unit from %s, not from %s", definition->fragment,
			      expected->fragment);
	const char *what = overridden(definition, expected);
	if (!what)
		return 0;
	char files[512];
	foreign_drop_ins(definition, expected, files, sizeof files);
	return refuse(err, REFUSAL_BAD_CONFIG, expected->unit, "%s is overridden by %s", what, *files ? files : "something that names no file");
}

void manager_advice(const struct manager_host *host, char *out, size_t size)
{
	unsigned uid = (unsigned)host->uid;
	char start[160] = "";
	if (host->systemd_is_init)
		(void)snprintf(start, sizeof start, "; `systemctl start user@%u.service` as root starts one", uid);
	if (host->runtime_there && host->runtime_owner != host->uid)
		(void)snprintf(out, size, "the runtime directory %s belongs to uid %u; unset XDG_RUNTIME_DIR or set it to /run/user/%u", host->runtime,
			       (unsigned)host->runtime_owner, uid);
	else if (!host->systemd_is_init && !host->socket_there)
		(void)snprintf(out, size, "there is no user manager in %s, and this host was not booted with systemd", host->runtime);
	else if (!host->runtime_there && host->logind)
		(void)snprintf(out, size,
			       "there is no runtime directory %s, as uid %u has no session; `loginctl enable-linger` starts a user manager without one",
			       host->runtime, uid);
	else if (!host->runtime_there)
		(void)snprintf(out, size, "there is no runtime directory %s%s", host->runtime, start);
	else if (!host->socket_there)
		(void)snprintf(out, size, "there is neither a user manager nor a bus in %s%s", host->runtime, start);
	else
		(void)snprintf(out, size, "the user manager in %s does not answer (%s)%s", host->runtime, strerror(-host->connect_error),
			       start);
}
