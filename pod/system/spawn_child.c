#include "pod/system/spawn_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define NO_EXEC 127

static bool tell(const struct spawn_plan *plan, enum spawn_stage stage, int code)
{
	struct spawn_report report = {.stage = (int)stage, .code = code};
	ssize_t n;
	do
		n = write(plan->report, &report, sizeof report);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof report;
}

_Noreturn static void fail(const struct spawn_plan *plan, enum spawn_stage stage)
{
	(void)tell(plan, stage, -errno);
	_exit(NO_EXEC);
}

void spawn_ignored_ends(sigset_t *ret_set)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction now;
	(void)sigemptyset(ret_set);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			(void)sigaddset(ret_set, ends[i]);
}

void spawn_reset_signals(const sigset_t *kept)
{
	struct sigaction standard;
	memset(&standard, 0, sizeof standard);
	standard.sa_handler = SIG_DFL;
	/* Two numbers belong to the C library and are refused, SIGKILL and SIGSTOP by the kernel. */
	for (int signal = 1; signal < NSIG; signal++)
		if (!kept || !sigismember(kept, signal))
			(void)sigaction(signal, &standard, NULL);
	sigset_t none;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Close-on-exec for all from 3 on; older kernels have no close_range(2). */
static void seal_descriptors(void)
{
	if (spawn_seal_all())
		return;
	struct rlimit limit = {.rlim_cur = 1024};
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	int end = limit.rlim_cur > 65536 ? 65536 : (int)limit.rlim_cur;
	for (int fd = 3; fd < end; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static bool place_descriptors(const struct spawn_plan *plan)
{
	for (int fd = 0; fd < 3; fd++)
		if (dup2(plan->stdio[fd], fd) < 0)
			return false;
	seal_descriptors();
	for (size_t i = 0; i < plan->request->keep_count; i++)
		if (fcntl(plan->request->keep[i], F_SETFD, 0) < 0)
			return false;
	return true;
}

static void enter_session(const struct spawn_plan *plan)
{
	enum spawn_session session = plan->request->session;
	if (plan->request->daemon || session == SPAWN_SESSION) {
		if (setsid() < 0)
			fail(plan, SPAWN_STAGE_SESSION);
	} else if (session == SPAWN_GROUP && setpgid(0, 0) < 0) {
		fail(plan, SPAWN_STAGE_SESSION);
	}
	if (!plan->request->daemon)
		return;
	pid_t second = spawn_fork_again();
	if (second < 0)
		fail(plan, SPAWN_STAGE_FORK);
	if (second > 0)
		_exit(0);
}

/* A parent that died before the prctl cannot send the signal any more: then this child must not go on either. */
static void tie_to_parent(const struct spawn_plan *plan)
{
	if (!plan->request->death_signal || plan->request->daemon)
		return;
	if (spawn_tie(plan->request->death_signal) < 0)
		fail(plan, SPAWN_STAGE_PARENT);
	if (getppid() != plan->parent) {
		errno = ESRCH;
		fail(plan, SPAWN_STAGE_PARENT);
	}
}

static void enter_directory(const struct spawn_plan *plan)
{
	const struct spawn *request = plan->request;
	int r = request->cwd ? chdir(request->cwd) : request->cwd_fd >= 0 ? fchdir(request->cwd_fd) : 0;
	if (r < 0)
		fail(plan, SPAWN_STAGE_DIRECTORY);
}

_Noreturn void spawn_child(const struct spawn_plan *plan)
{
	if (plan->cgroup_procs >= 0)
		(void)!write(plan->cgroup_procs, "0", 1);
	enter_session(plan);
	tie_to_parent(plan);
	if (!place_descriptors(plan))
		fail(plan, SPAWN_STAGE_DESCRIPTORS);
	enter_directory(plan);
	spawn_reset_signals(plan->request->ignored);
	if (!tell(plan, SPAWN_STAGE_EXEC, 0)) /* it would be taken for dead, and run */
		_exit(NO_EXEC);
	(void)execve(plan->request->program, plan->request->argv, plan->envp);
	fail(plan, SPAWN_STAGE_EXEC);
}
