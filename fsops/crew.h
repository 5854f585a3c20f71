/* Many things of one kind, shared by two threads: an assistant begins with them while the caller still has something else to do. The one begins at the
 * front and the other at the back: neighbours, which may want the same lock, are mostly one thread's. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/err.h"

/* Called for each i below count, by either thread; each i is its own, and what they share does not change meanwhile. */
typedef int (*crew_work)(void *context, size_t i, struct err *err);

struct crew {
	crew_work work;
	void *context;
	size_t count;
	_Atomic uint64_t untaken;
	atomic_size_t failed; /* the first of them, count: none */
	pthread_mutex_t lock;
	struct err err; /* of that one */
	int code;
	pthread_t assistant;
	bool assisted;
};

/* Fewer than 2^32. With few things, or where no thread can be had, all is left to crew_end(). The crew stays where it is until then. */
void crew_begin(struct crew *crew, size_t count, crew_work work, void *context);
/* The caller takes part; returns when every one is done, or the failure of the first that failed: those before it are done then. */
int crew_end(struct crew *crew, struct err *err);
