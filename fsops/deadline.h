/* Absolute points of CLOCK_MONOTONIC. Every function that waits takes one (clock_gettime(2)). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct deadline {
	int64_t at_ns; /* INT64_MAX: never */
};

#define DEADLINE_NEVER ((struct deadline){INT64_MAX})

int64_t monotonic_ns(void);
struct deadline deadline_in_ms(int64_t ms);
struct deadline deadline_earlier(struct deadline a, struct deadline b);
bool deadline_passed(struct deadline d);
/* Milliseconds left, rounded up, 0 when passed, INT_MAX at most: fits poll(2). */
int deadline_poll_ms(struct deadline d);
int64_t deadline_left_ns(struct deadline d);
/* The same for ppoll(2), which does not round up. */
struct timespec deadline_left(struct deadline d);

/* A poll that starts at 1 ms and doubles up to 50 ms; sleeps no longer than until `d`. */
struct backoff {
	int ms;
};
void backoff_sleep(struct backoff *b, struct deadline d);
int backoff_next_ms(struct backoff *b);
