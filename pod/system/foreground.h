/* A command in the foreground, as a shell runs it: the caller's terminal, process group, directory and descriptors. Signals that ask for the end reach it
 * first: those of the terminal go to the whole group, those of kill(2) are passed on. signalfd(2), siginfo in sigaction(2). */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "fsops/err.h"

struct foreground {
	int signals;
	sigset_t ignored; /* by the caller, as nohup(1) has it: by the command, too */
};
#define FOREGROUND_NONE ((struct foreground){.signals = -1})
/* From now on INT, TERM, HUP and QUIT do not end this process, for good. What the caller left ignored stays so. */
int foreground_begin(struct foreground *ret_foreground, struct err *err);
void foreground_end(struct foreground *foreground);
#define AUTO_FOREGROUND __attribute__((cleanup(foreground_end)))
/* Such a signal waits to be heard: its number, else 0. */
int foreground_asked_to_end(const struct foreground *foreground);
/* Runs the program to its end. *ret_status is its exit status, or 128 and the signal that ended it. It gets SIGTERM when this process dies. */
int foreground_run(struct foreground *foreground, const char *program, char *const *argv, char *const *envp, int *ret_status, struct err *err);
