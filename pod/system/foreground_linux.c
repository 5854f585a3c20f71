#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/foreground.h"
#include "pod/system/spawn.h"

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

int foreground_begin(struct foreground *ret_foreground, struct err *err)
{
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	spawn_ignored_ends(&ret_foreground->ignored);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (!sigismember(&ret_foreground->ignored, ends[i]))
			(void)sigaddset(&set, ends[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_code(err, -errno, "signals", NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_code(err, -errno, "signals", NULL);
	ret_foreground->signals = fd;
	return 0;
}

void foreground_end(struct foreground *foreground)
{
	close_quietly(take_fd(&foreground->signals));
}

int foreground_asked_to_end(const struct foreground *foreground)
{
	sigset_t waiting;
	(void)foreground;
	if (sigpending(&waiting) < 0)
		return 0;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (sigismember(&waiting, ends[i]))
			return ends[i];
	return 0;
}

struct descriptors {
	int *v;
	size_t n;
};

static int add(struct descriptors *descriptors, int fd)
{
	int *grown = realloc(descriptors->v, (descriptors->n + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	descriptors->v = grown;
	grown[descriptors->n++] = fd;
	return 0;
}

/* What the caller of this process meant to be inherited: ours are all close-on-exec. */
static int inherited(struct descriptors *ret_descriptors)
{
	DIR *open_ones = opendir("/proc/self/fd");
	if (!open_ones)
		return errno == ENOENT ? 0 : -errno; /* without /proc there is no asking */
	const struct dirent *entry;
	int r = 0, more = 0;
	while (r == 0 && (more = listing_next(open_ones, &entry)) > 0) {
		int fd = atoi(entry->d_name), flags = fd > 2 ? fcntl(fd, F_GETFD) : -1;
		if (flags >= 0 && !(flags & FD_CLOEXEC))
			r = add(ret_descriptors, fd);
	}
	(void)closedir(open_ones);
	return r < 0 ? r : more;
}

/* A signal of the terminal was sent by the kernel, and to the command as well. */
static void pass_on(const struct foreground *foreground, pid_t pid)
{
	struct signalfd_siginfo info;
	while (read(foreground->signals, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo != SIGCHLD && info.ssi_code <= 0)
			(void)kill(pid, (int)info.ssi_signo);
}

/* Until it is waited for its number is its own. */
static int await(const struct foreground *foreground, pid_t pid, int *ret_status, struct err *err)
{
	for (;;) {
		struct pollfd heard = {.fd = foreground->signals, .events = POLLIN};
		siginfo_t info = {0};
		while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) < 0) /* its SIGCHLD may have been heard already */
			if (errno != EINTR)
				return err_code(err, -errno, "wait", NULL);
		if (info.si_pid == pid) {
			*ret_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
			return 0;
		}
		(void)poll(&heard, 1, -1);
		pass_on(foreground, pid);
	}
}

int foreground_run(struct foreground *foreground, const char *program, char *const *argv, char *const *envp, int *ret_status, struct err *err)
{
	struct descriptors kept = {0};
	struct spawned spawned = {.pidfd = -1};
	struct spawn request = SPAWN_DEFAULT;
	int r = inherited(&kept);
	request.program = program;
	request.argv = argv;
	request.envp = envp;
	for (int fd = 0; fd < 3; fd++)
		request.stdio[fd] = fd;
	request.keep = kept.v;
	request.keep_count = kept.n;
	request.death_signal = SIGTERM;
	request.ignored = &foreground->ignored;
	r = r < 0 ? err_code(err, r, "descriptors", NULL) : spawn(&request, &spawned, err);
	free(kept.v);
	if (r < 0)
		return r;
	close_quietly(spawned.pidfd);
	return await(foreground, spawned.pid, ret_status, err);
}
