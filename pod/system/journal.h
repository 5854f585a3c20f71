/* The journal of a user unit. Part of the systemd backend. sd-journal(3), systemd.journal-fields(7). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fsops/err.h"

/* Will this user be able to read what his units write? A volatile journal is for root and the group systemd-journal only; per-user files
 * need persistent storage. False as well where no journald runs. */
bool journal_readable(void);

/* One line of ours about the unit, shown by journal_copy with what the unit wrote. sd_journal_send(3). */
int journal_line(const char *unit, const char *line, struct err *err);

/* The last `lines` lines (raw bytes) that the unit wrote, or that the manager said of it, to fd, but none from before `since_usec` (of the epoch, 0: all):
 * they are of another pod that had the name. With follow, then the next ones, until the reader of fd
 * is gone or a signal comes (one that does not end us ends the following, with success). -ENOENT: no line, and no follow. */
int journal_copy(const char *unit, unsigned lines, int64_t since_usec, bool follow, int fd, struct err *err);
