/* What tells of changes: descriptors that become readable. inotify(7), poll(2). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"

struct watch_set {
	int *fds; /* not owned: whoever added one closes it */
	size_t n;
};
void watch_free(struct watch_set *watch);
#define AUTO_WATCH __attribute__((cleanup(watch_free)))
int watch_add(struct watch_set *watch, int fd); /* -ENOMEM */
/* 1: one of them is readable; 0: the deadline; 2: a signal came. */
int watch_await(const struct watch_set *watch, struct deadline until, struct err *err);

bool watch_is_readable(int fd);
/* Of the end of a pipe that is written to: nobody reads it any more. False for anything else. */
bool watch_has_no_reader(int fd);
bool watch_is_pipe(int fd);

/* An owned descriptor that is readable when something in these directories was made, moved, deleted or replaced, or one of them itself. -ENOTSUP here. */
int watch_directories(const struct pin *const *directories, size_t count, struct err *err);
