/* What a pod wrote, on its way to our standard output: one reader of a pipe, in a thread of its own. Lines and tabs stay, every other control
 * character and what is no UTF-8 is escaped (text.h). */
#pragma once

#include <pthread.h>

#include "fsops/err.h"

struct log_filter {
	pthread_t thread;
	int from, to; /* the pipe; `to` is the log's end */
};
int log_filter_start(struct log_filter *ret_filter, struct err *err);
/* After the last byte was written to `to`: what is on its way is printed. */
void log_filter_end(struct log_filter *filter);
