/* Only the clock: where launchd is the manager nobody watches for a pod, and `up` refuses an owner and a time. */
#include <errno.h>
#include <sys/sysctl.h>
#include <time.h>

#include "pod/system/life.h"

int life_boot_read(struct life_clock *clock, struct err *err)
{
	size_t size = sizeof clock->boot;
	struct timespec now;
	if (sysctlbyname("kern.bootsessionuuid", clock->boot, &size, NULL, 0) < 0)
		return err_code(err, -errno, "boot", NULL);
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* goes on while the machine sleeps, here */
	clock->boot_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	return 0;
}

int vigil_open(const struct life *life, struct vigil *ret_vigil, struct err *err)
{
	(void)life, (void)ret_vigil;
	return err_set(err, -ENOTSUP, "owner", NULL, "nothing here tells of the end of a process");
}

enum life_end vigil_look(struct vigil *vigil)
{
	return life_look_now(&vigil->life);
}

void vigil_close(struct vigil *vigil)
{
	*vigil = VIGIL_NONE;
}
