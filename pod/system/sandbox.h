/* A command in a sandbox in which <home>/run cannot be written, but for the tool's own scratch (contract, section 12). The seal is not
 * trusted because it was asked for: before the command's first instruction it is looked at from outside, through /proc/<pid>/root, that a
 * write in run fails, that home and run are the pinned ones, and that the scratch can be written. Without a sandbox program nothing is
 * started. Whatever the command starts ends with it, and with us: a process of ours adopts every descendant, the pid namespace's among them.
 * bwrap(1), pid_namespaces(7), user_namespaces(7). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/environment.h"
#include "pod/model/sandbox_plan.h"
#include "pod/system/scratch.h"

struct sandbox_program {
	enum sandbox_kind kind; /* SANDBOX_UNAVAILABLE: `detail` says why */
	char path[128];
	bool by_descriptor;
	char detail[256];
};
/* Looked for in fixed directories, never in a PATH: of root, writable for root alone. Asked once what it can do (2 s at most). */
void sandbox_find(struct sandbox_program *ret_program);
void sandbox_find_in(const char *const *directories, struct sandbox_program *ret_program); /* NULL-terminated */
/* Makes an empty sandbox with itself inside: 0 when that works (2 s at most), else -ENOTSUP with its own words. Nothing stays. */
int sandbox_try(const struct sandbox_program *program, struct err *err);
struct sandbox_program sandbox_none(void); /* --no-sandbox: SANDBOX_OFF */

struct sandbox_request {
	const struct sandbox_program *program;
	const struct pin *home;
	const char *home_path;         /* as the pod spells it, absolute */
	const struct scratch *scratch; /* NULL: none */
	const char *command;           /* absolute path of what is executed; links in it are left alone */
	char *const *argv;             /* argv[0] is `command` where the sandbox executes it */
	const struct environment *environment;
	const char *cwd;
	int stdio[3];                  /* SPAWN_NULL: /dev/null */
	bool new_session;
};

struct sandbox {
	enum sandbox_kind kind;
	pid_t pid;      /* of the adopting process: leads its own group */
	int pidfd;      /* readable when it has ended */
	pid_t inner;    /* first process of the pid namespace, 0 none */
	int inner_pidfd;
};
#define SANDBOX_NONE ((struct sandbox){.pidfd = -1, .inner_pidfd = -1})

/* Returns when the command has been released behind a proven seal. -ENOTSUP: no sandbox to be had, nothing was started (the program's own
 * words are on stdio[2]); -EXDEV: home or run is not the pinned one; -EMLINK: a file in run has a second name outside; exec errors with
 * their cause where they show before the start. */
int sandbox_start(const struct sandbox_request *request, struct deadline until, struct sandbox *ret_sandbox, struct err *err);

/* Kills everything that still lives in it and reaps it; with `until` passed a survivor is -EBUSY. *ret_status is as of waitpid(2). */
int sandbox_end(struct sandbox *sandbox, struct deadline until, int *ret_status, struct err *err);
/* Is the path still the pinned home with the pinned run? Asked after the end. -EXDEV when it was moved meanwhile. */
int sandbox_still_in_place(const struct pin *home, const char *home_path, struct err *err);
/* Passes a signal on to the command itself. -ESRCH when it is gone. */
int sandbox_signal(const struct sandbox *sandbox, int signal, struct err *err);
/* Has anybody in it but the sandbox program, which never lets go of its own copy, this pipe open? True when it cannot be known, and as
 * long as the command has not been started. */
bool sandbox_holds_pipe(const struct sandbox *sandbox, ino_t pipe);
