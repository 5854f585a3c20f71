#include "fsops/crew.h"

#include <signal.h>
#include <stdint.h>

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

/* What nobody has taken lies between two bounds, which change together. */
static uint64_t bounds(uint64_t front, uint64_t back)
{
	return front << 32 | back;
}

static bool take_piece(struct crew *crew, bool from_the_back, size_t *ret_from, size_t *ret_to)
{
	uint64_t seen = atomic_load(&crew->untaken), front, back, piece;
	do {
		front = seen >> 32;
		back = seen & UINT32_MAX;
		if (front == back)
			return false;
		piece = back - front < AT_ONCE ? back - front : AT_ONCE;
	} while (!atomic_compare_exchange_weak(&crew->untaken, &seen, from_the_back ? bounds(front, back - piece) : bounds(front + piece, back)));
	*ret_from = from_the_back ? back - piece : front;
	*ret_to = *ret_from + piece;
	return true;
}

static void take_part(struct crew *crew, bool from_the_back)
{
	size_t from, to;
	while (take_piece(crew, from_the_back, &from, &to))
		for (size_t i = from; i < to; i++)
			do_one(crew, i);
}

static void *assist(void *crew)
{
	take_part(crew, true);
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
	atomic_init(&crew->untaken, bounds(0, count));
	atomic_init(&crew->failed, count);
	(void)pthread_mutex_init(&crew->lock, NULL);
	crew->assisted = count >= WORTH_A_THREAD && start_assistant(crew);
}

int crew_end(struct crew *crew, struct err *err)
{
	take_part(crew, false);
	if (crew->assisted)
		(void)pthread_join(crew->assistant, NULL);
	(void)pthread_mutex_destroy(&crew->lock);
	if (crew->code < 0 && err)
		*err = crew->err;
	return crew->code;
}
