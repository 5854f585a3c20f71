#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/life.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define WITHOUT_PIDFD_MS 1000
#define TIMER_MOST_MS (INT64_C(1000) * 86400 * 365) /* looked at again then */

int life_boot_read(char boot[BOOT_ID_LEN + 1], struct err *err)
{
	AUTO_CLOSE int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, boot, BOOT_ID_LEN);
	if (n != BOOT_ID_LEN)
		return err_set(err, n < 0 ? -errno : -EIO, "boot", BOOT_ID, "needs /proc: which boot this is cannot be read");
	boot[BOOT_ID_LEN] = '\0';
	return 0;
}

int64_t life_boot_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The pidfd knows without a look at anything else. */
static enum life_end judge(const struct vigil *vigil)
{
	struct pollfd owner = {.fd = vigil->owner, .events = POLLIN};
	if (vigil->owner < 0)
		return life_look(&vigil->life, &vigil->clock);
	bool gone = poll(&owner, 1, 0) > 0;
	return life_judge(&vigil->life, &vigil->clock, gone ? 0 : vigil->life.owner.start);
}

static int arm(const struct vigil *vigil, enum life_end end)
{
	int64_t ms = life_left_ms(&vigil->life, &vigil->clock);
	bool blind = vigil->life.owner.pid && vigil->owner < 0;
	if (ms > TIMER_MOST_MS)
		ms = TIMER_MOST_MS;
	if (blind && ms > WITHOUT_PIDFD_MS)
		ms = WITHOUT_PIDFD_MS;
	if (end != LIFE_LASTS)
		ms = 0;
	struct itimerspec when = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000 + 1}};
	return timerfd_settime(vigil->timer, 0, &when, NULL) < 0 ? -errno : 0;
}

/* -1: there is none to be had, or nobody knows whose it is. If the start time is the owner's after the pidfd was made, the pidfd is, too. */
static int owner_open(const struct life_owner *owner, const struct life_clock *now)
{
	struct life_owner there;
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, owner->pid, 0U);
	bool same = fd >= 0 && life_owner_read(owner->pid, now, &there, NULL) == 0 && there.start == owner->start;
	return same ? take_fd(&fd) : -1;
}

int vigil_open(const struct life *life, struct vigil *ret_vigil, struct err *err)
{
	AUTO_VIGIL struct vigil vigil = {.life = *life, .owner = -1, .timer = -1};
	int r = life_clock_read(&vigil.clock, err);
	if (r < 0)
		return r;
	if (life->owner.pid)
		vigil.owner = owner_open(&life->owner, &vigil.clock);
	vigil.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	r = vigil.timer < 0 ? -errno : arm(&vigil, life_look(life, &vigil.clock));
	if (r < 0)
		return err_code(err, r, "timer", NULL);
	*ret_vigil = vigil;
	vigil = VIGIL_NONE;
	return 0;
}

enum life_end vigil_look(struct vigil *vigil)
{
	uint64_t expirations;
	life_clock_tick(&vigil->clock);
	enum life_end end = judge(vigil);
	if (end == LIFE_LASTS && vigil->timer >= 0) {
		(void)!read(vigil->timer, &expirations, sizeof expirations);
		(void)arm(vigil, end);
	}
	return end;
}

void vigil_close(struct vigil *vigil)
{
	close_quietly(vigil->owner);
	close_quietly(vigil->timer);
	*vigil = VIGIL_NONE;
}
