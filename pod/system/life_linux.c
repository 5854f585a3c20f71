#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/life.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define WITHOUT_PIDFD_MS 1000
#define TIMER_MOST_MS (INT64_C(1000) * 86400 * 365) /* looked at again then */

int life_boot_read(struct life_clock *clock, struct err *err)
{
	struct timespec now;
	AUTO_CLOSE int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, clock->boot, BOOT_ID_LEN);
	if (n != BOOT_ID_LEN)
		return err_set(err, n < 0 ? -errno : -EIO, "boot", BOOT_ID, "needs /proc: which boot this is cannot be read");
	clock->boot[BOOT_ID_LEN] = '\0';
	if (clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return err_code(err, -errno, "boot", NULL);
	clock->boot_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	return 0;
}

static int arm(const struct vigil *vigil, const struct life_clock *now)
{
	int64_t ms = life_left_ms(&vigil->life, now);
	bool blind = vigil->life.owner.pid && vigil->owner < 0;
	if (ms > TIMER_MOST_MS)
		ms = TIMER_MOST_MS;
	if (blind && ms > WITHOUT_PIDFD_MS)
		ms = WITHOUT_PIDFD_MS;
	if (life_look(&vigil->life, now) != LIFE_LASTS)
		ms = 0;
	struct itimerspec when = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000 + 1}};
	return timerfd_settime(vigil->timer, 0, &when, NULL) < 0 ? -errno : 0;
}

int vigil_open(const struct life *life, struct vigil *ret_vigil, struct err *err)
{
	AUTO_VIGIL struct vigil vigil = {.life = *life, .owner = -1, .timer = -1};
	struct life_clock now;
	int r = life_clock_read(&now, err);
	if (r < 0)
		return r;
	/* The pidfd comes first: if the start time is the owner's afterwards, the pidfd is, too. */
	if (life->owner.pid)
		vigil.owner = (int)syscall(SYS_pidfd_open, life->owner.pid, 0U);
	vigil.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	r = vigil.timer < 0 ? -errno : arm(&vigil, &now);
	if (r < 0)
		return err_code(err, r, "timer", NULL);
	*ret_vigil = vigil;
	vigil = VIGIL_NONE;
	return 0;
}

enum life_end vigil_look(struct vigil *vigil)
{
	struct life_clock now;
	uint64_t expirations;
	if (life_clock_read(&now, NULL) < 0)
		return LIFE_LASTS;
	enum life_end end = life_look(&vigil->life, &now);
	if (end == LIFE_LASTS && vigil->timer >= 0) {
		(void)!read(vigil->timer, &expirations, sizeof expirations);
		(void)arm(vigil, &now);
	}
	return end;
}

void vigil_close(struct vigil *vigil)
{
	close_quietly(vigil->owner);
	close_quietly(vigil->timer);
	*vigil = VIGIL_NONE;
}
