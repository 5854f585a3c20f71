#include "pod/model/life.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "pod/model/ascii.h"

bool life_is_bounded(const struct life *life)
{
	return life->owner.pid || life->limit.epoch_s;
}

static bool is_boot_id(const char *text)
{
	return strlen(text) == BOOT_ID_LEN && strspn(text, "0123456789abcdefABCDEF-") == BOOT_ID_LEN;
}

/* Two decimal numbers and a boot id, one blank between each. */
static bool split(const char *text, uint64_t first_max, uint64_t second_max, uint64_t *ret_first, uint64_t *ret_second, char boot[BOOT_ID_LEN + 1])
{
	char copy[LIFE_TEXT_MAX];
	if (strlen(text) >= sizeof copy)
		return false;
	memcpy(copy, text, strlen(text) + 1);
	char *second = strchr(copy, ' '), *id = second ? strchr(second + 1, ' ') : NULL;
	if (!id)
		return false;
	*second++ = *id++ = '\0';
	if (!ascii_decimal(copy, first_max, ret_first) || !ascii_decimal(second, second_max, ret_second) || !is_boot_id(id))
		return false;
	memcpy(boot, id, BOOT_ID_LEN + 1);
	return true;
}

bool life_owner_parse(const char *text, struct life_owner *ret_owner)
{
	struct life_owner owner = {0};
	uint64_t pid = 0;
	if (!split(text, INT_MAX, UINT64_MAX, &pid, &owner.start, owner.boot) || !pid || !owner.start)
		return false;
	owner.pid = (pid_t)pid;
	*ret_owner = owner;
	return true;
}

bool life_limit_parse(const char *text, struct life_limit *ret_limit)
{
	struct life_limit limit = {0};
	uint64_t epoch = 0, boot = 0;
	if (!split(text, INT64_MAX / 1000, INT64_MAX, &epoch, &boot, limit.boot) || !epoch)
		return false;
	limit.epoch_s = (int64_t)epoch;
	limit.boot_ms = (int64_t)boot;
	*ret_limit = limit;
	return true;
}

void life_owner_render(const struct life_owner *owner, char out[LIFE_TEXT_MAX])
{
	*out = '\0';
	if (owner->pid)
		(void)snprintf(out, LIFE_TEXT_MAX, "%d %llu %s", (int)owner->pid, (unsigned long long)owner->start, owner->boot);
}

void life_limit_render(const struct life_limit *limit, char out[LIFE_TEXT_MAX])
{
	*out = '\0';
	if (limit->epoch_s)
		(void)snprintf(out, LIFE_TEXT_MAX, "%lld %lld %s", (long long)limit->epoch_s, (long long)limit->boot_ms, limit->boot);
}

struct life_limit life_limit_in(const struct life_clock *now, int64_t secs)
{
	struct life_limit limit = {.epoch_s = (now->epoch_ms + 999) / 1000 + secs, .boot_ms = now->boot_ms + secs * 1000};
	memcpy(limit.boot, now->boot, sizeof limit.boot);
	return limit;
}

int64_t life_left_ms(const struct life *life, const struct life_clock *now)
{
	const struct life_limit *limit = &life->limit;
	if (!limit->epoch_s)
		return INT64_MAX;
	bool same_boot = strcmp(limit->boot, now->boot) == 0;
	int64_t left = same_boot ? limit->boot_ms - now->boot_ms : limit->epoch_s * 1000 - now->epoch_ms;
	return left > 0 ? left : 0;
}

enum life_end life_judge(const struct life *life, const struct life_clock *now, uint64_t start)
{
	const struct life_owner *owner = &life->owner;
	if (owner->pid && (strcmp(owner->boot, now->boot) != 0 || owner->start != start))
		return LIFE_OWNER_GONE;
	return life_left_ms(life, now) ? LIFE_LASTS : LIFE_TIME_OVER;
}

void life_end_describe(const struct life *life, enum life_end end, char *out, size_t size)
{
	*out = '\0';
	if (end == LIFE_OWNER_GONE)
		(void)snprintf(out, size, "its owner, pid %d, is gone", (int)life->owner.pid);
	if (end == LIFE_TIME_OVER)
		(void)snprintf(out, size, "its time is over");
}
