/* Pod names: [A-Za-z0-9][A-Za-z0-9._-]{0,60}, the whole string. Only pod_name_parse makes one. */
#pragma once

#include <stddef.h>

#include "fsops/err.h"

#define POD_NAME_MAX 61

struct pod_name {
	char text[POD_NAME_MAX + 1];
};
int pod_name_parse(const char *bytes, size_t len, struct pod_name *ret_name, struct err *err); /* REFUSAL_BAD_NAME */

/* Files that belong to a pod or a plane, as single names below the pods dir or the root. */
#define POD_FILE_MAX 128
struct pod_file {
	char text[POD_FILE_MAX];
};
struct pod_file pod_file_record(const struct pod_name *name);  /* <name>.env */
struct pod_file pod_file_note(const struct pod_name *name);    /* <name>.refused */
struct pod_file pod_file_farewell(const struct pod_name *name); /* <name>.down: a `down` was begun and has not ended */
struct pod_file pod_file_socket(const struct pod_name *name);  /* <name>.sock, the keeper's; 66 bytes at most, so that it fits sun_path behind /proc/self/fd/N/ */
struct pod_file pod_file_lock(const char *prefix, const struct pod_name *name); /* <prefix>@<name>.lock */
struct pod_file pod_file_gate(const char *prefix, const struct pod_name *name); /* <prefix>@<name>@boot.lock */
struct pod_file pod_file_plane_lock(const char *prefix);                        /* <prefix>@@plane.lock */
struct pod_file pod_file_retired(const struct pod_name *name); /* .<name>@retired, in the root: a home on its way out */
struct pod_file pod_file_unit(const char *prefix, const struct pod_name *name); /* <prefix>@<name>.service */
/* <prefix>:watch:<name>:<first 8 of id>.service, which no plane's pod can have: neither a prefix nor a name holds a colon. */
struct pod_file pod_file_watch_unit(const char *prefix, const struct pod_name *name, const char *id);

/* Is `file` this suffix's file of a pod? ".env" → its name, 0. -EINVAL for anything else. */
int pod_name_from_file(const char *file, const char *suffix, struct pod_name *ret_name);
/* The pod of a ".<name>@retired" entry, 0. -EINVAL for anything else. */
int pod_name_from_retired(const char *entry, struct pod_name *ret_name);
