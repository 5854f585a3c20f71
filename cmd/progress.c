#include "cmd/progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "fsops/deadline.h"
#include "pod/model/table.h"
#include "pod/model/text.h"

#define QUIET_MS 500
#define AGAIN_MS 250
#define ERASE "\r\033[K"

static size_t room(void)
{
	struct winsize size = {0};
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

static void draw(struct progress_line *line, int64_t began)
{
	char what[2 * PROGRESS_MAX], text[2 * PROGRESS_MAX + 32], safe[sizeof text], out[sizeof text + sizeof ERASE];
	progress_read(&line->progress, what);
	if (!*what)
		return;
	(void)snprintf(text, sizeof text, "%s (%lld s)", what, (long long)((monotonic_ns() - began) / 1000000000));
	(void)text_escape(text, strlen(text), safe, sizeof safe);
	int n = snprintf(out, sizeof out, ERASE "%.*s", (int)text_fit(safe, room()), safe);
	(void)!write(STDERR_FILENO, out, (size_t)n);
}

/* True: it is over. */
static bool pause_for(struct progress_line *line, int ms)
{
	struct timespec until;
	int r = 0;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (until.tv_nsec / 1000000 + ms) / 1000;
	until.tv_nsec = (until.tv_nsec + (long)ms * 1000000) % 1000000000;
	(void)pthread_mutex_lock(&line->progress.lock);
	while (!line->over && r == 0)
		r = pthread_cond_timedwait(&line->changed, &line->progress.lock, &until);
	bool over = line->over;
	(void)pthread_mutex_unlock(&line->progress.lock);
	return over;
}

static void *show(void *data)
{
	struct progress_line *line = data;
	int64_t began = monotonic_ns();
	bool drawn = false;
	for (bool over = pause_for(line, QUIET_MS); !over; over = pause_for(line, AGAIN_MS)) {
		draw(line, began);
		drawn = true;
	}
	if (drawn)
		(void)!write(STDERR_FILENO, ERASE, strlen(ERASE));
	return NULL;
}

static bool can_show(void)
{
	const char *term = getenv("TERM");
	return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void progress_begin(struct progress_line *line, struct session *session)
{
	sigset_t all, before;
	line->session = NULL;
	if (!can_show())
		return;
	*line = (struct progress_line){.progress.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	/* Signals are for the thread that works. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	bool runs = pthread_create(&line->thread, NULL, show, line) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!runs)
		return;
	line->session = session;
	session->progress = &line->progress;
}

void progress_end(struct progress_line *line)
{
	if (!line->session)
		return;
	(void)pthread_mutex_lock(&line->progress.lock);
	line->over = true;
	(void)pthread_cond_signal(&line->changed);
	(void)pthread_mutex_unlock(&line->progress.lock);
	(void)pthread_join(line->thread, NULL);
	line->session->progress = NULL;
	line->session = NULL;
}
