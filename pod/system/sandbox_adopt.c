#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/descriptor.h"
#include "fsops/file.h"
#include "pod/system/process.h"
#include "pod/system/sandbox_parts.h"
#include "pod/system/spawn.h"

#define KILL_MS 5000

/* A copy that stayed here would keep a pipe of the caller open. */
static void let_go_of_descriptors(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	descriptor_close_range(3, ~0U);
}

/* Until the command or the caller has ended. The command's exit status as a shell tells it. */
static int supervise(pid_t command, const sigset_t *signals)
{
	for (;;) {
		siginfo_t what;
		int status;
		if (sigwaitinfo(signals, &what) == SIGTERM) {
			(void)kill(command, SIGKILL); /* not waited for yet, so its number is its own: this needs no pidfd */
			return 128 + SIGTERM;
		}
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR);)
			if (pid == command)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

/* Whoever loses its parent below us becomes our child, so that without a child there is nobody. */
static bool anybody_left(void)
{
	siginfo_t what;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return waitid(P_ALL, 0, &what, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* What is left where no pidfd could be had. A child that was not waited for has its number for itself, and who loses its parent becomes one. */
static void end_children(void)
{
	struct deadline until = deadline_in_ms(KILL_MS);
	struct backoff backoff = {0};
	while (anybody_left() && !deadline_passed(until)) {
		AUTO_PROCESSES struct process_list all = {0};
		(void)process_scan(&all, NULL);
		for (size_t i = 0; i < all.n; i++)
			if (all.v[i].parent == getpid())
				(void)kill(all.v[i].pid, SIGKILL);
		backoff_sleep(&backoff, until);
	}
}

static void end_all(void)
{
	struct unit_group below = {.tree = getpid()};
	struct process_list left = {0};
	if (!anybody_left())
		return;
	(void)group_kill(&below, deadline_in_ms(KILL_MS), &left, NULL);
	end_children();
}

static _Noreturn void adopt(const struct spawn *command, int report, pid_t caller)
{
	struct err why = {0};
	struct spawned child = {.pidfd = -1};
	sigset_t signals, all;
	(void)sigfillset(&all); /* whoever asks the caller to end, and all around it, must not end this one first */
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setpgid(0, 0);
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGCHLD);
	(void)sigaddset(&signals, SIGTERM);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	int r = getppid() == caller ? spawn(command, &child, &why) : err_set(&why, -ESRCH, "parent", NULL, "the caller has ended");
	if (r < 0) {
		(void)write_all(report, &why, sizeof why);
		_exit(127);
	}
	let_go_of_descriptors();
	int status = supervise(child.pid, &signals);
	end_all();
	_exit(status);
}

int sandbox_adopt_start(const struct spawn *command, struct spawned *ret_adopter, struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_code(err, -errno, "pipe", NULL);
	AUTO_CLOSE int from = ends[0], to = ends[1];
	pid_t caller = getpid(), pid = fork();
	if (pid < 0)
		return err_code(err, -errno, "fork", NULL);
	if (pid == 0)
		adopt(command, to, caller);
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0U);
	int code = pidfd < 0 ? -errno : 0;
	close_quietly(take_fd(&to));
	struct err why = {0};
	ssize_t n;
	do
		n = read(from, &why, sizeof why);
	while (n < 0 && errno == EINTR);
	if (n != 0 || code < 0) {
		(void)kill(pid, SIGTERM);
		(void)spawn_reap(pid);
		if (code < 0)
			return err_code(err, code, "pidfd", NULL);
		if (err)
			*err = why;
		return n == (ssize_t)sizeof why ? why.code : err_set(err, -EIO, "spawn", command->program, "the start broke off");
	}
	*ret_adopter = (struct spawned){.pid = pid, .pidfd = take_fd(&pidfd)};
	return 0;
}
