#include "fsops/contain_child.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops/deadline.h"
#include "fsops/descriptor.h"

void contain_child_close_others(int keep)
{
	descriptor_close_range(0, (unsigned)keep - 1);
	descriptor_close_range((unsigned)keep + 1, ~0U);
}

int contain_child_watch(pid_t child)
{
	return (int)syscall(SYS_pidfd_open, child, 0U);
}

/* Until it is reaped the number is the child's. */
void contain_child_end(pid_t child, int watch)
{
	struct deadline until = deadline_in_ms(CONTAIN_REAP_MS);
	struct backoff backoff = {0};
	(void)kill(child, SIGKILL);
	if (watch >= 0)
		(void)poll(&(struct pollfd){.fd = watch, .events = POLLIN}, 1, deadline_poll_ms(until));
	while (waitpid(child, NULL, WNOHANG) == 0 && !deadline_passed(until))
		backoff_sleep(&backoff, until);
}
