#include "pod/system/systemd_manager.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"

#define UNIT_INTERFACE "org.freedesktop.systemd1.Unit"
#define SERVICE_INTERFACE "org.freedesktop.systemd1.Service"
#define EVENTS_HEARD_MAX 1000
/* A reload reads every unit file of the user. */
#define RELOAD_MS 60000

#define FIELD(interface, name, kind, type, member) {interface, name, kind, offsetof(type, member), sizeof(((type *)0)->member)}
#define FIELDS(table) (&(const struct bus_fields){table, sizeof(table) / sizeof *(table)})

/* A row of the list tells them. */
#define ROW_FIELDS FIELD(UNIT_INTERFACE, "LoadState", BUS_TEXT, struct unit_properties, load_state), \
	FIELD(UNIT_INTERFACE, "ActiveState", BUS_TEXT, struct unit_properties, active_state), \
	FIELD(UNIT_INTERFACE, "SubState", BUS_TEXT, struct unit_properties, sub_state)
#define OTHER_FIELDS FIELD(UNIT_INTERFACE, "StateChangeTimestamp", BUS_U64, struct unit_properties, state_change_usec), \
	FIELD(SERVICE_INTERFACE, "ControlGroup", BUS_TEXT, struct unit_properties, control_group), \
	FIELD(SERVICE_INTERFACE, "MainPID", BUS_U32, struct unit_properties, main_pid), \
	FIELD(SERVICE_INTERFACE, "NRestarts", BUS_U32, struct unit_properties, n_restarts), \
	FIELD(SERVICE_INTERFACE, "Result", BUS_TEXT, struct unit_properties, result), \
	FIELD(SERVICE_INTERFACE, "ExecMainStatus", BUS_I32, struct unit_properties, exec_main_status), \
	FIELD(SERVICE_INTERFACE, "ExecMainCode", BUS_I32, struct unit_properties, exec_main_code)
static const struct bus_field state_fields[] = {ROW_FIELDS, OTHER_FIELDS};
static const struct bus_field unlisted_fields[] = {OTHER_FIELDS};

/* The manager stamps every change of a unit: what was read between two equal stamps is of one moment. */
struct stamped {
	struct unit_properties properties; /* first: the fields are its */
	uint64_t before, after;
};
static const struct bus_field stamped_fields[] = {
	FIELD(UNIT_INTERFACE, "StateChangeTimestamp", BUS_U64, struct stamped, before),
	ROW_FIELDS,
	OTHER_FIELDS,
	FIELD(UNIT_INTERFACE, "StateChangeTimestamp", BUS_U64, struct stamped, after),
};

static const struct bus_field definition_fields[] = {
	FIELD(UNIT_INTERFACE, "LoadState", BUS_TEXT, struct unit_definition, load_state),
	FIELD(UNIT_INTERFACE, "FragmentPath", BUS_TEXT, struct unit_definition, fragment),
	FIELD(UNIT_INTERFACE, "DropInPaths", BUS_LINES, struct unit_definition, drop_ins),
	FIELD(UNIT_INTERFACE, "NeedDaemonReload", BUS_FLAG, struct unit_definition, need_reload),
	FIELD(SERVICE_INTERFACE, "Restart", BUS_TEXT, struct unit_definition, restart),
	FIELD(SERVICE_INTERFACE, "ExecStart", BUS_COMMAND, struct unit_definition, command),
	FIELD(SERVICE_INTERFACE, "RestartPreventExitStatus", BUS_STATUSES, struct unit_definition, prevent),
};

int manager_open(struct manager *m, bool crowd, struct err *err)
{
	struct manager_addresses addresses;
	struct manager opened = {0};
	int r = manager_find(crowd, &addresses, err);
	if (r < 0)
		return r;
	r = bus_open(&addresses, &opened.bus, NULL);
	if (r < 0)
		return manager_refuse(r, err);
	*m = opened;
	return 0;
}

void manager_close(struct manager *m)
{
	manager_forget_ahead(m);
	bus_close(&m->bus);
	*m = (struct manager){0};
}

/* One answer with everything makes the manager look through all directories of unit files (UnitFileState), 1,500 system calls in version 252. So
 * that is asked only when the unit changed under the small questions. */
static int state_read(struct manager *m, const char *unit, struct unit_properties *ret_properties, struct err *err)
{
	struct stamped stamped = {0};
	int r = bus_gather(m->bus, &(struct bus_subject){unit, &stamped}, 1, FIELDS(stamped_fields), err);
	if (r == 0 && (stamped.before != stamped.after || !*stamped.properties.active_state)) {
		stamped = (struct stamped){0};
		r = bus_properties(m->bus, unit, FIELDS(state_fields), &stamped.properties, err);
	}
	if (r == 0)
		*ret_properties = stamped.properties;
	return r;
}

int manager_query(struct manager *m, const char *unit, struct unit_properties *ret_properties, struct err *err)
{
	/* Asked first, as a property of a unit that is not loaded would load it. */
	int r = bus_call(m->bus, &(struct bus_method){.member = "GetUnit", .words = {unit}}, NULL, 0, err);
	return r < 0 ? r : state_read(m, unit, ret_properties, err);
}

int manager_definition(struct manager *m, const char *unit, struct unit_definition *ret_definition, struct err *err)
{
	int r = -ENOENT;
	memset(ret_definition, 0, sizeof *ret_definition);
	if (m->ahead && strcmp(m->ahead_of, unit) == 0)
		r = bus_properties_read(m->bus, m->ahead, unit, FIELDS(definition_fields), ret_definition, NULL);
	manager_forget_ahead(m);
	if (r == 0)
		return 0;
	memset(ret_definition, 0, sizeof *ret_definition);
	return bus_properties(m->bus, unit, FIELDS(definition_fields), ret_definition, err);
}

void manager_definition_ahead(struct manager *m, const char *unit)
{
	manager_forget_ahead(m);
	(void)snprintf(m->ahead_of, sizeof m->ahead_of, "%s", unit);
	(void)bus_properties_ask(m->bus, unit, &m->ahead, NULL);
}

void manager_forget_ahead(struct manager *m)
{
	bus_answer_free(&m->ahead);
}

void unit_entries_free(struct unit_entries *entries)
{
	free(entries->v);
	*entries = (struct unit_entries){0};
}

static int entry_add(const struct bus_row *row, void *data)
{
	struct unit_entries *entries = data;
	if (entries->n == entries->capacity) {
		size_t wanted = entries->capacity ? entries->capacity * 2 : 64;
		struct unit_entry *v = reallocarray(entries->v, wanted, sizeof *v);
		if (!v)
			return -ENOMEM;
		entries->v = v;
		entries->capacity = wanted;
	}
	struct unit_entry *entry = &entries->v[entries->n++];
	memset(entry, 0, sizeof *entry);
	(void)snprintf(entry->unit, sizeof entry->unit, "%s", row->unit);
	(void)snprintf(entry->properties.load_state, sizeof entry->properties.load_state, "%s", row->load_state);
	(void)snprintf(entry->properties.active_state, sizeof entry->properties.active_state, "%s", row->active_state);
	(void)snprintf(entry->properties.sub_state, sizeof entry->properties.sub_state, "%s", row->sub_state);
	return 0;
}

int manager_list(struct manager *m, const char *pattern, struct unit_entries *ret_entries, struct err *err)
{
	AUTO_UNIT_ENTRIES struct unit_entries entries = {0};
	int r = bus_list(m->bus, pattern, entry_add, &entries, err);
	if (r < 0)
		return r;
	AUTO_FREE struct bus_subject *subjects = calloc(entries.n + 1, sizeof *subjects);
	if (!subjects)
		return err_code(err, -ENOMEM, "systemd", pattern);
	size_t count = 0;
	for (size_t i = 0; i < entries.n; i++)
		if (strcmp(entries.v[i].properties.active_state, "inactive") != 0)
			subjects[count++] = (struct bus_subject){entries.v[i].unit, &entries.v[i].properties};
	r = bus_gather(m->bus, subjects, count, FIELDS(unlisted_fields), err);
	if (r < 0)
		return r;
	*ret_entries = entries;
	entries = (struct unit_entries){0};
	return 0;
}

static void heard(const struct bus_event *event, void *data)
{
	struct manager *m = data;
	if (m->watches_all ? strncmp(event->unit, m->watched, strlen(m->watched)) == 0 : strcmp(event->unit, m->watched) == 0) {
		m->changed = true;
		if (event->end.told)
			m->end = event->end;
	}
	if (event->kind == BUS_JOB_REMOVED && *m->job && strcmp(event->job, m->job) == 0) {
		m->job_done = true;
		(void)snprintf(m->result, sizeof m->result, "%s", event->result);
	}
}

/* A unit that falls out of the list is listened to anew, which costs a match and harms nothing. */
static int listen_to(struct manager *m, const char *unit, struct err *err)
{
	if (strcmp(m->heard_of[0], unit) == 0 || strcmp(m->heard_of[1], unit) == 0)
		return 0;
	int r = bus_listen(m->bus, unit, heard, m, err);
	if (r < 0)
		return r;
	memcpy(m->heard_of[1], m->heard_of[0], sizeof m->heard_of[1]);
	(void)snprintf(m->heard_of[0], sizeof m->heard_of[0], "%s", unit);
	return 0;
}

int manager_await_job(struct manager *m, const char *unit, struct deadline until, struct err *err)
{
	while (!m->job_done) {
		int r = bus_process(m->bus, until, err);
		if (r < 0)
			return r;
		if (r == 0)
			return err_set(err, -ETIMEDOUT, "systemd", unit, "the job did not end in time");
	}
	if (strcmp(m->result, "done") != 0)
		return err_set(err, -EIO, "systemd", unit, "the job ended with \"%s\"", m->result);
	return 0;
}

static int job_ask(struct manager *m, const char *member, const char *unit, struct err *err)
{
	/* Before the call, or a quick job's end would be missed. */
	int r = listen_to(m, unit, err);
	if (r < 0)
		return r;
	m->job_done = false;
	m->job[0] = '\0';
	return bus_call(m->bus, &(struct bus_method){.member = member, .words = {unit, "replace"}}, m->job, sizeof m->job, err);
}

int manager_start(struct manager *m, const char *unit, struct err *err)
{
	return job_ask(m, "StartUnit", unit, err);
}

int manager_stop(struct manager *m, const char *unit, struct deadline until, struct err *err)
{
	int r = job_ask(m, "StopUnit", unit, err);
	return r < 0 ? r : manager_await_job(m, unit, until, err);
}

static int transient_once(struct manager *m, const struct bus_transient *transient, struct deadline until, struct err *err)
{
	int r = listen_to(m, transient->unit, err);
	if (r < 0)
		return r;
	m->job_done = false;
	m->job[0] = '\0';
	r = bus_start_transient(m->bus, transient, m->job, sizeof m->job, err);
	return r < 0 ? r : manager_await_job(m, transient->unit, until, err);
}

int manager_start_transient(struct manager *m, const struct bus_transient *transient, struct deadline until, struct err *err)
{
	struct backoff backoff = {0};
	for (;;) {
		struct err why = {0};
		int r = transient_once(m, transient, until, &why);
		if (r == -EEXIST && !deadline_passed(until)) {
			r = manager_stop(m, transient->unit, until, &why);
			if (r == 0 || r == -ENOENT) {
				backoff_sleep(&backoff, until); /* the manager forgets it a moment after its end */
				continue;
			}
		}
		if (r < 0 && err)
			*err = why;
		return r;
	}
}

int manager_kill(struct manager *m, const char *unit, int signal, struct err *err)
{
	return bus_call(m->bus, &(struct bus_method){.member = "KillUnit", .words = {unit, "all"}, .signal = signal}, NULL, 0, err);
}

int manager_reset_failed(struct manager *m, const char *unit, struct err *err)
{
	return bus_call(m->bus, &(struct bus_method){.member = "ResetFailedUnit", .words = {unit}}, NULL, 0, err);
}

int manager_reload(struct manager *m, struct err *err)
{
	manager_forget_ahead(m);
	return bus_call(m->bus, &(struct bus_method){.member = "Reload", .timeout_ms = RELOAD_MS}, NULL, 0, err);
}

int manager_watch(struct manager *m, const char *unit, struct err *err)
{
	if (strcmp(m->watched, unit) == 0)
		return 0;
	int r = listen_to(m, unit, err);
	if (r < 0)
		return r;
	(void)snprintf(m->watched, sizeof m->watched, "%s", unit);
	m->end = (struct bus_end){0};
	m->changed = false;
	m->follows = false;
	return 0;
}

void manager_changes_from_here(struct manager *m, const char *unit)
{
	if (strcmp(m->watched, unit) != 0)
		return;
	m->changed = false;
	m->follows = true;
}

bool manager_follows(const struct manager *m, const char *unit)
{
	return m->follows && strcmp(m->watched, unit) == 0;
}

struct bus_end manager_end(struct manager *m, const char *unit)
{
	if (strcmp(m->watched, unit) != 0)
		return (struct bus_end){0};
	/* What was said before the answer that the caller has is read already, and only has to be heard. */
	for (int i = 0; i < EVENTS_HEARD_MAX && bus_process(m->bus, deadline_in_ms(0), NULL) > 0; i++)
		;
	return m->end;
}

int manager_await_change(struct manager *m, struct deadline until, struct err *err)
{
	while (!m->changed) {
		int r = bus_process(m->bus, until, err);
		if (r <= 0)
			return r == -EINTR ? 0 : r;
	}
	return 1;
}

/* A lost connection is a change as well. */
bool manager_changed(struct manager *m)
{
	int r = 0;
	for (int i = 0; i < EVENTS_HEARD_MAX && (r = bus_process(m->bus, deadline_in_ms(0), NULL)) > 0; i++)
		;
	bool changed = m->changed || r < 0;
	m->changed = false;
	return changed;
}

int manager_watch_all(struct manager *m, const char *beginning, struct err *err)
{
	(void)snprintf(m->watched, sizeof m->watched, "%s", beginning);
	m->watches_all = true;
	int r = bus_listen_all(m->bus, heard, m, err);
	if (r < 0)
		return r;
	(void)manager_changed(m); /* what came with the answers so far is no change since this call */
	r = bus_descriptor(m->bus);
	return r < 0 ? err_code(err, r, "systemd", NULL) : r;
}
