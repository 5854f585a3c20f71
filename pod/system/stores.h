/* Identity stores: what the operator signed in to, staged into the OS home of a pod (contract, section 6). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/ini.h"
#include "pod/model/plane.h"

#define STORE_FILES_MAX 512
#define STORE_BYTES_MAX (4ull << 30)
#define STORE_REPORT_LINES 64

/* What there is to say, in order: one line per store, and one for each file that was passed over. */
struct store_report {
	char **lines; /* raw bytes, without a newline at the end */
	size_t count;
	size_t left_out; /* lines beyond STORE_REPORT_LINES */
};
void store_report_free(struct store_report *report);
#define AUTO_STORE_REPORT __attribute__((cleanup(store_report_free)))

/* Stages the stores that this platform knows (for a KiroCrew pod) and those that [identity …] sections name (for every pod) below
 * <home>/os-home, which exists. Create-only: a name that is there is left alone. Files 0600 from the first byte, directories 0700, whatever
 * the umask. A store is staged whole or, with a line that says why, not at all: databases first, each as a snapshot; then the files, each
 * judged on its descriptor (regular, one link, the user's own) or passed over with a line. 512 files and 4 GiB a store at most, and no more
 * than there is room for: stated before the first byte is written. Best effort: 0 even when nothing could be staged. REFUSAL_HOME: what is
 * in the way in the OS home is a link or no directory; then the pod must not boot. -ENOMEM. *report is added to in every case. Ends within
 * two minutes. */
int stores_stage(const struct pin *home, const struct plane *plane, bool kirocrew, const struct ini_identity *identities,
		 size_t identity_count, struct store_report *report, struct err *err);
