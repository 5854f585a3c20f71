/* What the files of stores.c share; nobody else includes this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/system/stores.h"

/* Where a store is and where it goes. */
struct store {
	const char *name;
	char source[PLANE_PATH_MAX]; /* absolute */
	const char *staged;	     /* relative to the OS home */
};

void report_line(struct store_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One file of a store that is to be staged. */
struct survey_file {
	char *path; /* relative to the store, raw bytes */
	uint64_t size;
	bool database;
	bool copied; /* stands in the scratch directory */
	bool published;
};
struct survey {
	struct survey_file *v; /* databases first, then by path; STORE_FILES_MAX at most */
	size_t n;
	size_t files; /* that the store holds, with those beyond the limit */
	uint64_t bytes;
	char *void_reason; /* a database that cannot be taken: nothing of the store is. NULL none */
};
void survey_free(struct survey *survey);
#define AUTO_SURVEY __attribute__((cleanup(survey_free)))

/* Walks the store by descriptor, opens no file and writes nothing but lines for what is passed over. -ENOMEM, -ETIMEDOUT, or what the
 * system says of a directory. */
int survey_make(const struct store *store, const struct pin *source, struct deadline until, struct store_report *report,
		struct survey *ret_survey, struct err *err);

/* *.sqlite3 and *.sqlite; or one of its -wal, -shm, -journal. */
bool is_database_name(const char *name);
bool is_sidecar_name(const char *name);

/* The directory that holds `path`, below `at`; *ret_base is the last component, within `path`. */
int parent_pin(const struct pin *at, const char *path, struct pin *ret_parent, const char **ret_base, struct err *err);

/* Copies every file of the survey into `scratch` under its index. Passed-over files get their line. Any other failure ends it, text naming
 * the file. */
int store_copy(const struct store *store, const struct pin *source, struct survey *survey, const struct pin *scratch, struct deadline until,
	       struct store_report *report, struct err *err);
/* "17": the name of the file with that index in the scratch directory. */
void scratch_name(size_t index, char out[24]);
