/* A call of ours, run in a child that stops at each of its system calls (ptrace(2)): something can be done exactly before the n-th one, or
 * the n-th one can be made to fail. */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct stepped {
	int (*call)(void *context);	      /* in the child; negative errno or 0 */
	void (*before)(void *context, int n); /* in the parent, before system call n; may be NULL */
	void *context;
	int at;		      /* which one, from 0; -1 every one */
	int fail_with;	      /* errno for call `at`, 0 none */
	bool stand_in;	      /* call `at` is not made and succeeds: before() has done its work */
	bool kill;	      /* the child is killed before call `at` */
	bool fail_on;	      /* and for all eligible ones after it */
	const long *eligible; /* system call numbers that count for a failure, ended by -1 */
};
struct stepped_end {
	int result; /* of the call, or -ECHILD when it died */
	int calls;  /* system calls made (eligible ones, when failures are injected) */
	bool acted; /* call `at` was reached */
	long number; /* of the last call that it was */
};

#if defined(__x86_64__)
#define STEPPER_CAN_FAIL 1
static inline long step_number(pid_t pid)
{
	return ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, orig_rax), NULL);
}
static inline void step_skip(pid_t pid)
{
	(void)ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L);
}
static inline void step_return(pid_t pid, int code)
{
	(void)ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), (long)-code);
}
#else
#define STEPPER_CAN_FAIL 0
static inline long step_number(pid_t pid)
{
	return (void)pid, 0;
}
static inline void step_skip(pid_t pid)
{
	(void)pid;
}
static inline void step_return(pid_t pid, int code)
{
	(void)pid, (void)code;
}
#endif

static inline bool step_is_eligible(const struct stepped *stepped, pid_t pid)
{
	if (!stepped->eligible)
		return true;
	long number = step_number(pid);
	for (const long *at = stepped->eligible; *at >= 0; at++)
		if (*at == number)
			return true;
	return false;
}

static inline _Noreturn void step_child(const struct stepped *stepped)
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	_exit(-stepped->call(stepped->context)); /* every errno fits */
}

static inline void step_through(const struct stepped *stepped, pid_t pid, struct stepped_end *end)
{
	bool entered = false, failing = false;
	int status = 0, deliver = 0;
	for (;;) {
		(void)ptrace(PTRACE_SYSCALL, pid, NULL, (long)deliver); /* fails when it was killed */
		if (waitpid(pid, &status, 0) != pid)
			abort();
		if (WIFEXITED(status))
			end->result = -WEXITSTATUS(status);
		if (!WIFSTOPPED(status))
			return;
		deliver = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (deliver)
			continue;
		entered = !entered;
		if (!entered) {
			if (failing)
				step_return(pid, stepped->fail_with);
			failing = false;
			continue;
		}
		if (!step_is_eligible(stepped, pid))
			continue;
		int n = end->calls++;
		bool here = stepped->at < 0 || n == stepped->at;
		end->acted |= here;
		if (here)
			end->number = step_number(pid);
		if (here && stepped->before)
			stepped->before(stepped->context, n);
		if (here && stepped->kill)
			(void)kill(pid, SIGKILL);
		failing = (stepped->fail_with || stepped->stand_in) && (here || (stepped->fail_on && n > stepped->at));
		if (failing)
			step_skip(pid);
	}
}

static inline struct stepped_end step_run(const struct stepped *stepped)
{
	struct stepped_end end = {.result = -ECHILD};
	int status;
	pid_t pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0)
		step_child(stepped);
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		abort();
	(void)ptrace(PTRACE_SETOPTIONS, pid, NULL, (long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	step_through(stepped, pid, &end);
	return end;
}
