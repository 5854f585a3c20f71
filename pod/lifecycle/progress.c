#include "pod/lifecycle/progress.h"

#include <stdarg.h>
#include <stdio.h>

static void put(struct progress *progress, char text[PROGRESS_MAX], const char *format, va_list arguments)
{
	(void)pthread_mutex_lock(&progress->lock);
	(void)vsnprintf(text, PROGRESS_MAX, format, arguments);
	(void)pthread_mutex_unlock(&progress->lock);
}

void progress_head(const struct session *session, const char *format, ...)
{
	va_list arguments;
	if (!session->progress)
		return;
	va_start(arguments, format);
	put(session->progress, session->progress->head, format, arguments);
	va_end(arguments);
}

void progress_say(const struct session *session, const char *format, ...)
{
	va_list arguments;
	if (!session->progress)
		return;
	va_start(arguments, format);
	put(session->progress, session->progress->what, format, arguments);
	va_end(arguments);
}

void progress_read(struct progress *progress, char out[2 * PROGRESS_MAX])
{
	(void)pthread_mutex_lock(&progress->lock);
	(void)snprintf(out, 2UL * PROGRESS_MAX, "%s%s", progress->head, progress->what);
	(void)pthread_mutex_unlock(&progress->lock);
}
