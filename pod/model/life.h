/* How long a pod lives: as long as its owner, until a time, or until somebody takes it down. A recycled pid is nobody: an owner is a pid with a start time
 * in one boot. A time is kept twice: by the clock of the boot, which nobody sets, and as epoch seconds for after it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BOOT_ID_LEN 36

struct life_owner {
	pid_t pid;      /* 0 none */
	uint64_t start; /* as in struct process */
	char boot[BOOT_ID_LEN + 1];
};
struct life_limit {
	int64_t epoch_s; /* 0 none */
	int64_t boot_ms; /* the same moment in milliseconds since boot, time spent suspended included */
	char boot[BOOT_ID_LEN + 1];
};
struct life {
	struct life_owner owner;
	struct life_limit limit;
};
bool life_is_bounded(const struct life *life);

/* A record's OWNER and EXPIRES: "PID START BOOT-ID" and "EPOCH-SECONDS BOOT-MILLISECONDS BOOT-ID". False for anything else. */
bool life_owner_parse(const char *text, struct life_owner *ret_owner);
bool life_limit_parse(const char *text, struct life_limit *ret_limit);
#define LIFE_TEXT_MAX 96
void life_owner_render(const struct life_owner *owner, char out[LIFE_TEXT_MAX]); /* "" none */
void life_limit_render(const struct life_limit *limit, char out[LIFE_TEXT_MAX]);

struct life_clock {
	int64_t epoch_ms, boot_ms;
	char boot[BOOT_ID_LEN + 1];
};
struct life_limit life_limit_in(const struct life_clock *now, int64_t secs);
int64_t life_left_ms(const struct life *life, const struct life_clock *now); /* 0: over; INT64_MAX: no limit */

enum life_end { LIFE_LASTS, LIFE_OWNER_GONE, LIFE_TIME_OVER };
/* `start`: of the living process that has the owner's pid now, 0 none. */
enum life_end life_judge(const struct life *life, const struct life_clock *now, uint64_t start);
/* "its owner, pid 42, is gone", "its time is over", "". */
void life_end_describe(const struct life *life, enum life_end end, char *out, size_t size);
