/* What a server gets as TMPDIR, TMP and TEMP (contract, section 12): its own declaration if every path of it is clear, else the managed
 * directory, else none. Keys are matched in any case, because a program may ask for any. Pure: the containment answers come in as data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/contain.h"
#include "fsops/err.h"
#include "pod/model/environment.h"

enum temp_source { TEMP_NONE, TEMP_MANAGED, TEMP_DECLARED };
const char *temp_source_name(enum temp_source source); /* "none" "managed" "declared" */

struct temp_declared {
	char *key, *value; /* as the author spells them, owned */
	struct contain_answer answer;
};
struct temp_declaration {
	struct temp_declared *v; /* in the specification's order */
	size_t n;
};
/* Every key of the triple that `declared` holds, in any case, with the answer still CLEAR: the caller asks contain_check for each. */
int temp_declaration_read(const struct environment *declared, struct temp_declaration *ret_declaration, struct err *err);
void temp_declaration_free(struct temp_declaration *declaration);
#define AUTO_TEMP_DECLARATION __attribute__((cleanup(temp_declaration_free)))

bool temp_refused(const struct temp_declaration *declaration);       /* one cause refuses the whole declaration */
bool temp_needs_managed(const struct temp_declaration *declaration); /* nothing declared, or refused */

/* Edits `environment`, in which inherited and declared values are already joined. `managed` NULL: the directory could not be made. *ret_path is
 * borrowed from the environment or NULL. On failure no key of the triple is left in any spelling. */
int temp_apply(struct environment *environment, const struct temp_declaration *declaration, const char *managed, enum temp_source *ret_source,
	       const char **ret_path, struct err *err);

/* One escaped line for a person and the pod's log: server, key, path, cause. */
void temp_warning(const char *server, const struct temp_declared *declared, char *out, size_t size);
