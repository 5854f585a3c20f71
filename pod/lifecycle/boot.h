/* Boot: name, gate, record, decision, home, environment, viability, exec. Every way out that is a refusal is printed, noted and terminal: the one
 * function that ends a boot sees to it, so a refusal added later cannot escape. */
#pragma once

#include "pod/lifecycle/residence.h"
#include "pod/lifecycle/session.h"
#include "pod/model/environment.h"

/* Environment, argv and working directory of a pod's payload, and of `exec` in it. */
struct passage {
	struct environment environment;
	struct words argv;
	struct pin workspace;		/* entered by descriptor, whatever has its name meanwhile; fd -1: `directory` is the operator's own */
	char directory[PLANE_PATH_MAX];
	bool for_caller;		/* whose ignored signals stay ignored */
};
#define PASSAGE_NONE ((struct passage){.workspace = PIN_NONE})
void passage_free(struct passage *passage);
#define AUTO_PASSAGE __attribute__((cleanup(passage_free)))
int passage_for_command(struct session *session, const struct pod_name *name, char *const *command, size_t count, struct passage *ret_passage,
			struct err *err);
int passage_enter(const struct passage *passage, struct err *err); /* its directory */
/* execve from there; returns only on failure: -ENOENT when there is no such command. */
int passage_go(const struct passage *passage, struct err *err);

struct boot {
	struct session session;
	struct residence in; /* in.name empty: the name was bad, and nothing may be written */
	struct lock gate;
	struct passage passage;
	struct words lines; /* for the pod's log, raw bytes: a line for each store, warnings */
};
#define BOOT_NONE                                                                                                                          \
	((struct boot){.session = {.root = PIN_NONE, .pods_dir = PIN_NONE}, .gate = LOCK_NONE, .in = RESIDENCE_NONE, .passage = PASSAGE_NONE})
void boot_free(struct boot *boot);
#define AUTO_BOOT __attribute__((cleanup(boot_free)))

/* Everything before exec. boot->lines is filled as far as it came, also on failure. */
int boot_prepare(const char *config, const char *name, struct boot *boot, struct err *err);
int boot_go(struct boot *boot, struct err *err); /* returns only on failure */
/* Every way out: writes the note of a terminal refusal and returns the status to exit with. */
int boot_end(struct boot *boot, const struct err *why);
