/* One line on a terminal for what takes longer than half a second: what it waits for, and how long it has. It is gone before anything else is printed. */
#pragma once

#include "pod/lifecycle/progress.h"

struct progress_line {
	struct session *session; /* NULL: nothing is shown */
	struct progress progress;
	pthread_t thread;
	pthread_cond_t changed;
	bool over;
};
/* Only where standard error is a terminal that is not dumb. The line must not be moved until it has ended. */
void progress_begin(struct progress_line *line, struct session *session);
void progress_end(struct progress_line *line);
