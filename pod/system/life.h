/* The end of a pod's life, seen: who its owner is, what time it is, and descriptors that tell when it is over. proc(5), pidfd_open(2),
 * timerfd_create(2), CLOCK_BOOTTIME in clock_gettime(2). */
#pragma once

#include "fsops/err.h"
#include "pod/model/life.h"

int life_clock_read(struct life_clock *ret_clock, struct err *err);
/* A living process as an owner. -ESRCH: there is none; -EACCES: /proc hides it, so that nobody could tell it from its successor. */
int life_owner_read(pid_t pid, const struct life_clock *now, struct life_owner *ret_owner, struct err *err);
/* An owner that could not be looked at lives. */
enum life_end life_look(const struct life *life, const struct life_clock *now);
/* The same, now. Without a clock to look at, it lasts. */
enum life_end life_look_now(const struct life *life);

/* What is polled for the end of a life. Either becomes readable when there is something to look at; -1: nothing to wait for there. */
struct vigil {
	struct life life;
	struct life_clock clock; /* of its last look; in what boot it is was read once */
	int owner; /* pidfd */
	int timer;
};
#define VIGIL_NONE ((struct vigil){.owner = -1, .timer = -1})
/* A life that is over already makes the timer readable at once. Where there is no pidfd to be had the timer runs every second. */
int vigil_open(const struct life *life, struct vigil *ret_vigil, struct err *err);
/* Looks again after something was readable. */
enum life_end vigil_look(struct vigil *vigil);
/* Waits, however long, until it is over. */
int vigil_await(struct vigil *vigil, struct err *err);
void vigil_close(struct vigil *vigil);
#define AUTO_VIGIL __attribute__((cleanup(vigil_close)))

void life_clock_tick(struct life_clock *clock); /* its boot id stays */
/* Of the platform. */
int life_boot_read(char boot[BOOT_ID_LEN + 1], struct err *err);
int64_t life_boot_ms(void);
