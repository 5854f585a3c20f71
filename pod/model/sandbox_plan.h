/* A sandboxed command as data: the words and the environment that the sandbox program is started with. bwrap(1), sandbox-exec(1). Pure. */
#pragma once

#include <stdbool.h>

#include "fsops/err.h"
#include "pod/model/environment.h"
#include "pod/model/text.h"

enum sandbox_kind { SANDBOX_UNAVAILABLE, SANDBOX_BWRAP, SANDBOX_SEATBELT, SANDBOX_OFF };
const char *sandbox_kind_name(enum sandbox_kind kind); /* "unavailable" "bwrap" "seatbelt" "off" */

struct sandbox_plan {
	const char *program; /* the sandbox program, absolute */
	bool by_descriptor;  /* bwrap knows --bind-fd */
	bool new_session;
	const char *home, *run, *run_canonical;       /* bwrap mounts at the canonical spellings; a link leads there */
	const char *scratch, *scratch_canonical;      /* NULL: no carve-out */
	int home_fd, run_fd, scratch_fd;              /* pins of the three, with by_descriptor */
	int info_fd, block_fd, sync_fd;               /* of bwrap: who it is, wait for our word, held open */
	const char *cwd;
	char *const *argv;                            /* the command; its first word is a path */
	const struct environment *environment;        /* the command's */
};

/* Everything of the host, devices included; the home on itself; run read-only on top; the scratch on top of that; own user and pid namespace
 * with its own /proc; no capability, no new privilege (bwrap's default). What a dynamic loader would obey before there is a sandbox is kept
 * from bwrap and given to the command by it. */
int sandbox_plan_bwrap(const struct sandbox_plan *plan, struct words *ret_argv, struct environment *ret_environment, struct err *err);

/* sandbox-exec with the profile of unit-templates/; the carve-out is its last rule. */
int sandbox_plan_seatbelt(const struct sandbox_plan *plan, struct words *ret_argv, struct err *err);
