/* The user manager's bus: calls, properties into plain records by a table, signals. Nothing of sd-bus shows here. Every call ends within its
 * time, or with -EINTR when interrupt.h notes a signal meanwhile. Part of the systemd backend. sd-bus(3), org.freedesktop.systemd1(5). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "pod/system/systemd_find.h"

#define BUS_CALL_MS 10000
#define BUS_CONNECT_MS 5000 /* for the connection, and for the first answer */

struct bus;
/* The first address behind which a manager of this uid answers. -errno of the last attempt; no refusal. */
int bus_open(const struct manager_addresses *addresses, struct bus **ret_bus, struct err *err);
void bus_close(struct bus **bus);
#define AUTO_BUS __attribute__((cleanup(bus_close)))
/* Was the connection lost, so that the answer is not known and may be asked for again on a new one? */
bool bus_lost(int code);

/* A method of the manager that takes strings (and a number); words[0], if there is one, is named in errors. */
struct bus_method {
	const char *member;
	const char *words[4]; /* NULL-terminated */
	int signal;           /* 0: no number follows */
	int timeout_ms;       /* 0: BUS_CALL_MS */
};
/* ret_path (may be NULL) takes the object path of the answer. -ENOENT: no such unit. -ETIMEDOUT. */
int bus_call(struct bus *bus, const struct bus_method *method, char *ret_path, size_t size, struct err *err);

/* A service without a unit file, which is gone when it has ended. */
struct bus_transient {
	const char *unit, *description;
	const char *const *argv;     /* NULL-terminated, argv[0] an absolute path; a '$' in the others means itself */
	char *const *environment;    /* NULL-terminated NAME=value */
};
/* Started again when it fails. -EEXIST: a unit of that name is loaded. */
int bus_start_transient(struct bus *bus, const struct bus_transient *transient, char *ret_path, size_t size, struct err *err);

enum bus_kind {
	BUS_TEXT,     /* char[size]; -ENAMETOOLONG rather than cut */
	BUS_U32,
	BUS_I32,
	BUS_U64,
	BUS_FLAG,     /* bool */
	BUS_LINES,    /* strings, one a line, into char[size] */
	BUS_COMMAND,  /* ExecStart into struct unit_command */
	BUS_STATUSES, /* exit statuses into bool[256] */
};
struct bus_fields {
	const struct bus_field {
		const char *interface, *name;
		enum bus_kind kind;
		size_t offset, size; /* in the record */
	} *v;
	size_t n;
};
/* All of one answer, so that they belong together. Loads the unit if it is not. */
int bus_properties(struct bus *bus, const char *unit, const struct bus_fields *fields, void *record, struct err *err);

/* The same in two steps: the manager answers while the caller does something else. The answer is freed before the bus is closed. */
struct bus_answer;
int bus_properties_ask(struct bus *bus, const char *unit, struct bus_answer **ret_answer, struct err *err);
int bus_properties_read(struct bus *bus, struct bus_answer *answer, const char *unit, const struct bus_fields *fields, void *record, struct err *err);
void bus_answer_free(struct bus_answer **answer);

/* Loaded units by glob. The visitor returns 0 or -errno. */
struct bus_row {
	const char *unit, *load_state, *active_state, *sub_state;
};
typedef int (*bus_row_visitor)(const struct bus_row *row, void *data);
int bus_list(struct bus *bus, const char *pattern, bus_row_visitor visit, void *data, struct err *err);

/* The fields of many units, pipelined: small questions, which cost the manager a quarter of one answer with everything. A record whose unit is gone
 * meanwhile stays as it was. */
struct bus_subject {
	const char *unit;
	void *record;
};
int bus_gather(struct bus *bus, const struct bus_subject *subjects, size_t count, const struct bus_fields *fields, struct err *err);

struct bus_event {
	enum { BUS_JOB_REMOVED, BUS_UNIT_CHANGED } kind;
	const char *unit;
	const char *job, *result; /* of BUS_JOB_REMOVED */
	struct bus_end {
		bool told;
		int32_t code, status; /* ExecMainCode, ExecMainStatus */
	} end; /* of BUS_UNIT_CHANGED */
};
typedef void (*bus_listener)(const struct bus_event *event, void *data);
/* Events of this unit, from now on; several units may be listened to, all by one listener. Before the unit's first job, or a quick end is missed. Events
 * come out of bus_process, which returns 1 when something was processed, 0 at the deadline. */
int bus_listen(struct bus *bus, const char *unit, bus_listener listener, void *data, struct err *err);
/* Events of every unit. */
int bus_listen_all(struct bus *bus, bus_listener listener, void *data, struct err *err);
int bus_descriptor(struct bus *bus); /* readable when bus_process has something to do, if it had nothing before; negative errno */
int bus_process(struct bus *bus, struct deadline until, struct err *err);
