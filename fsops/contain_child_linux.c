#include "fsops/contain_child.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

void contain_child_end(pid_t child, int watch)
{
	struct pollfd p = {.fd = watch, .events = POLLIN};
	if (watch >= 0) {
		(void)syscall(SYS_pidfd_send_signal, watch, SIGKILL, NULL, 0U);
		(void)poll(&p, 1, CONTAIN_REAP_MS);
	}
	(void)waitpid(child, NULL, watch >= 0 ? WNOHANG : 0);
}
