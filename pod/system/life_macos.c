/* Only the clock: where launchd is the manager nobody watches for a pod, and `up` refuses an owner and a time. */
#include <errno.h>
#include <sys/sysctl.h>
#include <time.h>

#include "pod/system/life.h"

int life_boot_read(char boot[BOOT_ID_LEN + 1], struct err *err)
{
	size_t size = BOOT_ID_LEN + 1;
	return sysctlbyname("kern.bootsessionuuid", boot, &size, NULL, 0) < 0 ? err_code(err, -errno, "boot", NULL) : 0;
}

int64_t life_boot_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* goes on while the machine sleeps, here */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
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
