/* Which pods have something on disk: one pass over the root and one over the pods dir, names only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"

enum plane_trace {
	TRACE_HOME = 1,
	TRACE_RETIRED = 2,
	TRACE_RECORD = 4,
	TRACE_NOTE = 8,
	TRACE_SOCKET = 16,
	TRACE_PLIST = 32,
	TRACE_FAREWELL = 64,
	TRACE_UNIT = 128, /* set by the caller, for units that the manager knows */
	TRACE_LISTED = 256, /* the record was listed as a regular file */
};
struct plane_entry {
	struct pod_name name;
	unsigned traces;
};
struct plane_entries {
	struct plane_entry *v; /* sorted by name after plane_entries_sort */
	size_t n;
	char **strangers; /* entries of the root whose names no pod can have, raw bytes; hidden ones left out */
	size_t stranger_count;
};
void plane_entries_free(struct plane_entries *entries);
#define AUTO_ENTRIES __attribute__((cleanup(plane_entries_free)))

/* Either pin may be absent (fd -1). `prefix` for the plists. */
int plane_scan(const struct pin *root, const struct pin *pods_dir, const char *prefix, struct plane_entries *ret_entries, struct err *err);
int plane_entries_add(struct plane_entries *entries, const struct pod_name *name, unsigned trace, struct err *err);
void plane_entries_sort(struct plane_entries *entries); /* joins the traces of one name */
/* The traces of one pod, without a scan; an error when one could not be looked for. */
int plane_probe(const struct pin *root, const struct pin *pods_dir, const char *prefix, const struct pod_name *name, unsigned *ret_traces, struct err *err);
/* The pods of which a killed call has left a temporary file in the pods dir (absent: none), by name, each once, without traces. */
int plane_scan_temporary(const struct pin *pods_dir, struct plane_entries *ret_entries, struct err *err);
