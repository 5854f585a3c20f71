#include "fsops/deadline.h"

#include <limits.h>

#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL

int64_t monotonic_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

struct deadline deadline_in_ms(int64_t ms)
{
	return (struct deadline){monotonic_ns() + (ms > 0 ? ms : 0) * NS_PER_MS};
}

struct deadline deadline_earlier(struct deadline a, struct deadline b)
{
	return a.at_ns < b.at_ns ? a : b;
}

int64_t deadline_left_ns(struct deadline d)
{
	if (d.at_ns == INT64_MAX)
		return INT64_MAX;
	int64_t left = d.at_ns - monotonic_ns();
	return left > 0 ? left : 0;
}

struct timespec deadline_left(struct deadline d)
{
	int64_t left = deadline_left_ns(d);
	return (struct timespec){.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
}

bool deadline_passed(struct deadline d)
{
	return deadline_left_ns(d) == 0;
}

int deadline_poll_ms(struct deadline d)
{
	int64_t left = deadline_left_ns(d);
	if (left >= (int64_t)(INT_MAX - 1) * NS_PER_MS)
		return INT_MAX;
	return (int)((left + NS_PER_MS - 1) / NS_PER_MS);
}

int backoff_next_ms(struct backoff *b)
{
	b->ms = b->ms < 1 ? 1 : b->ms < 25 ? b->ms * 2 : 50;
	return b->ms;
}

void backoff_sleep(struct backoff *b, struct deadline d)
{
	int64_t left = deadline_left_ns(d);
	int64_t nap = (int64_t)backoff_next_ms(b) * NS_PER_MS;
	if (nap > left)
		nap = left;
	struct timespec pause = {.tv_sec = nap / NS_PER_S, .tv_nsec = nap % NS_PER_S};
	(void)nanosleep(&pause, NULL);
}
