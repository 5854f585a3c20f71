/* The child that looks for fsops/contain.h. Internal to fsops. */
#pragma once

#include <sys/types.h>

/* In the child: nothing but `keep`, the second end of a pipe and so never 0, stays open. */
void contain_child_close_others(int keep);
/* A descriptor that tells the end of the child, or -1. */
int contain_child_watch(pid_t child);
/* Kills and reaps it. One that is stuck in the kernel is left to it: the kill takes effect when the file system lets go. */
void contain_child_end(pid_t child, int watch);
#define CONTAIN_REAP_MS 200
