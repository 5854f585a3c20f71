#include "fsops/contain_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/event.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops/cleanup.h"

void contain_child_close_others(int keep)
{
	for (int fd = getdtablesize(); fd-- > 0;)
		if (fd != keep)
			(void)close(fd);
}

int contain_child_watch(pid_t child)
{
	AUTO_CLOSE int queue = kqueue();
	struct kevent end;
	EV_SET(&end, (uintptr_t)child, EVFILT_PROC, EV_ADD | EV_ONESHOT, NOTE_EXIT, 0, NULL);
	if (queue < 0 || fcntl(queue, F_SETFD, FD_CLOEXEC) < 0 || kevent(queue, &end, 1, NULL, 0, NULL) < 0)
		return -1;
	return take_fd(&queue);
}

/* Until it is reaped the number is the child's. */
void contain_child_end(pid_t child, int watch)
{
	struct kevent end;
	struct timespec patience = {.tv_nsec = CONTAIN_REAP_MS * 1000000L};
	(void)kill(child, SIGKILL);
	if (watch >= 0)
		(void)kevent(watch, NULL, 0, &end, 1, &patience);
	(void)waitpid(child, NULL, WNOHANG);
}
