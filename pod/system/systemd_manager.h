/* The user manager's units and jobs, typed, over systemd_bus.h. Part of the systemd backend. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "pod/model/unit_map.h"
#include "pod/system/systemd_bus.h"

/* What is awaited on a connection. */
struct manager {
	struct bus *bus;
	char heard_of[2][256]; /* the units that were listened to last */
	char job[160]; /* object path, "" none */
	char result[32];
	bool job_done;
	char watched[256]; /* unit, or how those begin that are */
	bool watches_all;
	bool follows, changed; /* has it changed since the point that it is followed from */
	struct bus_end end; /* of its main process, as last told */
	struct bus_answer *ahead; /* the definition of `ahead_of`, asked for ahead */
	char ahead_of[256];
};
/* REFUSAL_NO_MANAGER with advice when no manager answers. `crowd` as in manager_find. */
int manager_open(struct manager *manager, bool crowd, struct err *err);
void manager_close(struct manager *manager);

/* -ENOENT: the manager knows no such unit. */
int manager_query(struct manager *manager, const char *unit, struct unit_properties *ret_properties, struct err *err);
/* Loads the unit if it is not, and tells its definition. */
int manager_definition(struct manager *manager, const char *unit, struct unit_definition *ret_definition, struct err *err);

/* Asks for what the next manager_definition of this unit tells. Until a reload; if it cannot be asked or answered, it is asked then. */
void manager_definition_ahead(struct manager *manager, const char *unit);
void manager_forget_ahead(struct manager *manager);

struct unit_entries {
	struct unit_entry {
		char unit[256];
		struct unit_properties properties;
	} *v;
	size_t n, capacity;
};
void unit_entries_free(struct unit_entries *entries);
#define AUTO_UNIT_ENTRIES __attribute__((cleanup(unit_entries_free)))
/* Every loaded unit that the glob matches: one call for all, and a pipeline for those that run or have failed. */
int manager_list(struct manager *manager, const char *pattern, struct unit_entries *ret_entries, struct err *err);

/* Enqueues the job; manager_await_job waits for its end. */
int manager_start(struct manager *manager, const char *unit, struct err *err);
/* Enqueues the job and waits for its end. -ENOENT no such unit; else as manager_await_job. */
int manager_stop(struct manager *manager, const char *unit, struct deadline until, struct err *err);
/* A service without a unit file. One of that name that is loaded is stopped first. */
int manager_start_transient(struct manager *manager, const struct bus_transient *transient, struct deadline until, struct err *err);
/* Waits for the job of the last call. -ETIMEDOUT: it is still there; -EIO: it ended with another word than "done". */
int manager_await_job(struct manager *manager, const char *unit, struct deadline until, struct err *err);

int manager_kill(struct manager *manager, const char *unit, int signal, struct err *err); /* every process of the unit. -ENOENT */
int manager_reset_failed(struct manager *manager, const char *unit, struct err *err); /* -ENOENT */
int manager_reload(struct manager *manager, struct err *err);

/* From now on changes of every unit whose name begins so are noticed, on this descriptor: after it has become readable manager_changed tells whether
 * there was one. Negative errno. */
int manager_watch_all(struct manager *manager, const char *beginning, struct err *err);
bool manager_changed(struct manager *manager);
/* From now on changes of this unit are noticed; one unit at a time. manager_await_change returns 1 for a change since manager_changes_from_here (or
 * else since it is watched), 0 at the deadline. */
int manager_watch(struct manager *manager, const char *unit, struct err *err);
void manager_changes_from_here(struct manager *manager, const char *unit);     /* if it is watched */
bool manager_follows(const struct manager *manager, const char *unit); /* was there such a point? */
/* How the main process of the watched unit ended: the manager forgets a unit that ended well, but it has said so. */
struct bus_end manager_end(struct manager *manager, const char *unit);
int manager_await_change(struct manager *manager, struct deadline until, struct err *err);
