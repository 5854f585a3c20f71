/* What a long call waits for just now, for somebody who may want to show it while it lasts. */
#pragma once

#include <pthread.h>

#include "pod/lifecycle/session.h"

#define PROGRESS_MAX 256
struct progress {
	pthread_mutex_t lock;
	char head[PROGRESS_MAX], what[PROGRESS_MAX]; /* "3 of 20, ", "demo: deletes its home" */
};
/* Both do nothing for a session that nobody shows. */
__attribute__((format(printf, 2, 3))) void progress_head(const struct session *session, const char *format, ...);
__attribute__((format(printf, 2, 3))) void progress_say(const struct session *session, const char *format, ...);
/* Both together, "" before anything was said. From any thread. */
void progress_read(struct progress *progress, char out[2 * PROGRESS_MAX]);
