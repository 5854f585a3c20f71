#include "fsops/crew.h"

#include <signal.h>

#define WORTH_A_THREAD 32
#define AT_ONCE 8 /* taken by one side in a piece, so that neighbours in memory are not written by both */

static void note_failure(struct crew *crew, size_t i, int code, const struct err *why)
{
	(void)pthread_mutex_lock(&crew->lock);
	if (i < atomic_load(&crew->failed)) {
		atomic_store(&crew->failed, i);
		crew->code = code;
		crew->err = *why;
	}
	(void)pthread_mutex_unlock(&crew->lock);
}

static void do_one(struct crew *crew, size_t i)
{
	struct err why = {0};
	if (i > atomic_load(&crew->failed))
		return;
	int r = crew->work(crew->context, i, &why);
	if (r < 0)
		note_failure(crew, i, r, &why);
}

static void take_part(struct crew *crew)
{
	size_t from;
	while ((from = atomic_fetch_add(&crew->next, AT_ONCE)) < crew->count)
		for (size_t i = from; i < crew->count && i < from + AT_ONCE; i++)
			do_one(crew, i);
}

static void *assist(void *crew)
{
	take_part(crew);
	return NULL;
}

/* Signals are for the thread that was there before. */
static bool start_assistant(struct crew *crew)
{
	sigset_t all, before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = pthread_create(&crew->assistant, NULL, assist, crew) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

void crew_begin(struct crew *crew, size_t count, crew_work work, void *context)
{
	crew->work = work;
	crew->context = context;
	crew->count = count;
	crew->code = 0;
	atomic_init(&crew->next, 0);
	atomic_init(&crew->failed, count);
	(void)pthread_mutex_init(&crew->lock, NULL);
	crew->assisted = count >= WORTH_A_THREAD && start_assistant(crew);
}

int crew_end(struct crew *crew, struct err *err)
{
	take_part(crew);
	if (crew->assisted)
		(void)pthread_join(crew->assistant, NULL);
	(void)pthread_mutex_destroy(&crew->lock);
	if (crew->code < 0 && err)
		*err = crew->err;
	return crew->code;
}
