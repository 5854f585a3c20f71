/* One way to start a program: fork or clone3(2), a child that is clean from the first instruction, and the reason when exec fails.
 * The child has: the three standard descriptors as asked, the kept ones under their own numbers, nothing else; default signal dispositions and an
 * empty signal mask, whatever the caller ignores or blocks (POSIX lets both pass over exec). execve(2), close_range(2), prctl(2). */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fsops/err.h"

enum spawn_session {
	SPAWN_SAME,    /* stays in the caller's process group */
	SPAWN_GROUP,   /* leads a process group of its own */
	SPAWN_SESSION, /* leads a session of its own, without a terminal */
};

#define SPAWN_NULL (-1) /* as a standard descriptor: /dev/null */

struct spawn {
	const char *program; /* a path with a '/'; never searched */
	char *const *argv;
	char *const *envp;   /* NULL: the caller's */
	const char *cwd;     /* NULL: cwd_fd, and if that is negative the caller's */
	int cwd_fd;
	int stdio[3];        /* descriptors of the caller, which may be in any order or equal, or SPAWN_NULL */
	const int *keep;     /* further descriptors, each from 3 on, that the program gets under the same number */
	size_t keep_count;
	enum spawn_session session;
	bool daemon;         /* forked twice, leads no session but is in a new one: no child of the caller and never one with a terminal */
	bool sibling;        /* a child of the caller's parent, who reaps it: what a subreaper starts and is not to have; not with daemon. CLONE_PARENT */
	int death_signal;    /* the child gets it when the calling thread ends, 0 none; not with daemon. PR_SET_PDEATHSIG */
	const sigset_t *ignored; /* these stay as the caller has them; NULL: none */
	int cgroup_fd;       /* directory of a cgroup2 to be born in, -1 none; best effort, see spawned.in_cgroup */
};
#define SPAWN_DEFAULT ((struct spawn){.cwd_fd = -1, .stdio = {SPAWN_NULL, SPAWN_NULL, SPAWN_NULL}, .cgroup_fd = -1})

struct spawned {
	pid_t pid;      /* 0 for a daemon; of a sibling not ours to wait for */
	int pidfd;      /* owned by the caller, close-on-exec; -1 for a daemon or where the kernel has none */
	bool in_cgroup; /* it was born in the group or moved itself there before exec */
};

/* Returns when the program runs (its exec succeeded) or with the cause of the failure; then no child is left. -EINVAL for a kept descriptor
 * below 3. */
int spawn(const struct spawn *spawn, struct spawned *ret_spawned, struct err *err);

/* Of the signals that ask for an end those that this process ignores, as nohup(1) has it. */
void spawn_ignored_ends(sigset_t *ret_set);
/* Dispositions to default, but those in `kept` (NULL: none), mask empty. For a caller that execs in its own process. */
void spawn_reset_signals(const sigset_t *kept);

/* What an execve(2) of `program` that failed with `code` (negative errno) was about, as the error: missing, missing interpreter (named), a
 * directory, not executable, a mount that forbids it, another architecture. Returns code. */
int exec_cause(const char *program, int code, struct err *err);

/* waitpid(2) of a child that is about to end, whatever EINTR and an ignored SIGCHLD do; the wait status, or -ECHILD when it was not to be had. */
int spawn_reap(pid_t pid);
