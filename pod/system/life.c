#include "pod/system/life.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "pod/system/process.h"

void life_clock_tick(struct life_clock *clock)
{
	struct timespec epoch;
	(void)clock_gettime(CLOCK_REALTIME, &epoch);
	clock->epoch_ms = (int64_t)epoch.tv_sec * 1000 + epoch.tv_nsec / 1000000;
	clock->boot_ms = life_boot_ms();
}

int life_clock_read(struct life_clock *ret_clock, struct err *err)
{
	struct life_clock now = {0};
	life_clock_tick(&now);
	int r = life_boot_read(now.boot, err);
	if (r == 0)
		*ret_clock = now;
	return r;
}

int life_owner_read(pid_t pid, const struct life_clock *now, struct life_owner *ret_owner, struct err *err)
{
	struct process process;
	struct life_owner owner = {.pid = pid};
	int r = process_read(pid, &process, err);
	if (r < 0)
		return r;
	if (!process_is_live(&process))
		return err_set(err, -ESRCH, "owner", NULL, "it has ended, and its parent has not noticed yet");
	if (!process.start)
		return err_set(err, -EACCES, "owner", NULL, "/proc does not tell when it was started");
	owner.start = process.start;
	memcpy(owner.boot, now->boot, sizeof owner.boot);
	*ret_owner = owner;
	return 0;
}

enum life_end life_look(const struct life *life, const struct life_clock *now)
{
	struct life_owner owner = {0};
	int r = life->owner.pid ? life_owner_read(life->owner.pid, now, &owner, NULL) : 0;
	return life_judge(life, now, r < 0 && r != -ESRCH ? life->owner.start : owner.start);
}

enum life_end life_look_now(const struct life *life)
{
	struct life_clock now;
	if (!life_is_bounded(life) || life_clock_read(&now, NULL) < 0)
		return LIFE_LASTS;
	return life_look(life, &now);
}

int vigil_await(struct vigil *vigil, struct err *err)
{
	while (vigil_look(vigil) == LIFE_LASTS) {
		struct pollfd polled[] = {{.fd = vigil->owner, .events = POLLIN}, {.fd = vigil->timer, .events = POLLIN}};
		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			return err_code(err, -errno, "poll", NULL);
	}
	return 0;
}
