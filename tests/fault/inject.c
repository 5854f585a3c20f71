/* inject [OPTIONS] -- COMMAND…: runs a command of the tool under ptrace(2), counts the calls of calls.c in one order over all its processes, and
 * does something at one of them.
 *
 *   --at N             the N-th call from 1; without it nothing is done and the calls are only counted
 *   --errno K          it fails with the K-th errno, from 0, that its man page lists (calls.c)
 *   --for-ever         and so does every later call of the same name
 *   --kill before|after   the process is killed (SIGKILL) before the call is made, or when it has returned
 *   --signal S[,M]     the process gets the signal of that number, and again at the M-th call after it
 *   --hook COMMAND     the process waits at the call until the shell command has ended; with --alone all others wait as well.
 *                      Its environment: INJECT_N INJECT_PID INJECT_CALL INJECT_DIR INJECT_PATH
 *   --role ROLE        only calls of `control`, `boot`, `keeper` or `guard` processes count; --changing: only those that change something;
 *   --only A,B         only calls of these names
 *   --each M           of calls that differ in nothing but the digits of their paths (a walk of /proc) only the first M count
 *   --tool PATH        the tool's program (default: COMMAND's first word); anything else that is started is let through
 *   --deadline SECS    everything is killed when COMMAND has not ended by then (default 60)
 *   --report FD        one JSON object a line (default 2); --list: each counted call, too
 *
 * Its end is that of the last process, so it outlives COMMAND while a keeper lives; killed, it takes them all along. Counting begins where main() of the
 * tool begins, at its first fcntl(0, F_GETFD): the loader's and the libraries' own calls before that are not the tool's.
 * Status: 0; 3 when --at was given and nothing was done there; 1 when it cannot trace; 2 usage. seccomp(2), ptrace(2), x86-64. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

enum role { FOREIGN, CONTROL, BOOT, KEEPER, GUARD, ROLES };
static const char *const role_names[ROLES] = {[FOREIGN] = "foreign", [CONTROL] = "control", [BOOT] = "boot", [KEEPER] = "keeper", [GUARD] = "guard"};

struct tracee {
	pid_t pid; /* 0: free */
	enum role role;
	bool counts;	    /* main() has begun */
	bool unannounced;   /* stopped before its parent told of it */
	bool held;	    /* waits for the hook */
	bool dies_on_return;
	struct call_made call; /* the last one counted */
};

#define TRACEES 4096
static struct {
	long at;
	int nth_errno; /* -1 none */
	bool for_ever, kill_before, kill_after, alone, changing, list;
	const char *hook, *tool;
	int signal;
	long signal_again; /* so many calls later; 0 never */
	enum role role;	   /* FOREIGN: any */
	const struct call *only[64];
	size_t only_count;
	int deadline, report;
	unsigned each; /* 0: all */
} options = {.nth_errno = -1, .deadline = 60, .report = 2};

static struct tracee tracees[TRACEES];
static size_t tracee_count, tracees_end;
static pid_t root, hook_pid;
static long counted;
static const struct call *injected; /* at which call something was done */
static char tool[PATH_MAX];
static volatile sig_atomic_t overdue;

_Noreturn static void die(int status, const char *what)
{
	(void)fprintf(stderr, "inject: %s%s%s\n", what, status == 1 ? ": " : "", status == 1 ? strerror(errno) : "");
	exit(status);
}

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
	char line[2048];
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(line, sizeof line - 1, format, arguments);
	va_end(arguments);
	line[n++] = '\n';
	(void)!write(options.report, line, (size_t)n);
}

/* --- who is traced --- */

static struct tracee *tracee_of(pid_t pid)
{
	for (size_t i = 0; i < tracees_end; i++)
		if (tracees[i].pid == pid)
			return &tracees[i];
	return NULL;
}

static struct tracee *tracee_new(pid_t pid)
{
	for (size_t i = 0; i < TRACEES; i++)
		if (!tracees[i].pid) {
			tracees[i] = (struct tracee){.pid = pid};
			tracee_count++;
			tracees_end = i + 1 > tracees_end ? i + 1 : tracees_end;
			return &tracees[i];
		}
	errno = ENOMEM;
	die(1, "more processes than can be traced");
}

static void tracee_gone(struct tracee *t)
{
	t->pid = 0;
	tracee_count--;
}

static void go_on(struct tracee *t, int signal)
{
	(void)ptrace(PTRACE_CONT, t->pid, NULL, (long)signal); /* fails when it was killed meanwhile: its end will be told */
}

static void kill_all(void)
{
	for (size_t i = 0; i < tracees_end; i++)
		if (tracees[i].pid)
			(void)kill(tracees[i].pid, SIGKILL);
}

static enum role role_of_words(const char *words, size_t len)
{
	for (const char *word = words; word < words + len; word += strlen(word) + 1) {
		if (strcmp(word, "_run") == 0)
			return BOOT;
		if (strcmp(word, "_keep") == 0)
			return KEEPER;
		if (strcmp(word, "_watch") == 0)
			return GUARD;
		if (strcmp(word, "--") == 0)
			break;
	}
	return CONTROL;
}

static enum role role_now(pid_t pid)
{
	char path[64], exe[PATH_MAX], words[4096];
	(void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(path, exe, sizeof exe - 1);
	exe[n < 0 ? 0 : n] = '\0';
	if (strcmp(exe, tool) != 0)
		return FOREIGN;
	(void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, words, sizeof words - 1);
	(void)close(fd);
	words[n < 0 ? 0 : n] = '\0';
	return role_of_words(words, n < 0 ? 0 : (size_t)n);
}

/* --- at the call --- */

static void skip_call(pid_t pid, int code)
{
	(void)ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L);
	(void)ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), (long)-code);
}

static void start_hook(const struct tracee *t)
{
	char n[32], pid[32];
	(void)snprintf(n, sizeof n, "%ld", counted);
	(void)snprintf(pid, sizeof pid, "%d", (int)t->pid);
	hook_pid = fork();
	if (hook_pid < 0)
		die(1, "hook");
	if (hook_pid > 0)
		return;
	(void)setenv("INJECT_N", n, 1);
	(void)setenv("INJECT_PID", pid, 1);
	(void)setenv("INJECT_CALL", t->call.call->name, 1);
	(void)setenv("INJECT_DIR", t->call.directory, 1);
	(void)setenv("INJECT_PATH", t->call.path, 1);
	(void)execl("/bin/sh", "sh", "-c", options.hook, (char *)NULL);
	_exit(127);
}

static void hook_ended(int status)
{
	hook_pid = 0;
	report("{\"event\":\"hook\",\"status\":%d}", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	for (size_t i = 0; i < tracees_end; i++)
		if (tracees[i].pid && tracees[i].held) {
			tracees[i].held = false;
			go_on(&tracees[i], 0);
		}
}

static void tell_call(const char *event, const struct tracee *t, int code)
{
	unsigned errnos = 0;
	while (call_errno(t->call.call, errnos))
		errnos++;
	report("{\"event\":\"%s\",\"n\":%ld,\"call\":\"%s\",\"role\":\"%s\",\"pid\":%d,\"changes\":%s,\"errnos\":%u,\"errno\":\"%s\",\"dir\":\"%s\",\"path\":\"%s\"}", event,
	       counted, t->call.call->name, role_names[t->role], (int)t->pid, t->call.changes ? "true" : "false", errnos, code ? strerrorname_np(code) : "", t->call.directory,
	       t->call.path);
}

static void act(struct tracee *t)
{
	bool first = !injected;
	int code = options.nth_errno >= 0 ? call_errno(t->call.call, (unsigned)options.nth_errno) : 0;
	if (options.nth_errno >= 0 && (!code || (code == EINTR && options.for_ever))) { /* it has fewer than that, or there is no such world */
		if (first)
			tell_call("no-such-errno", t, 0);
		injected = t->call.call;
		go_on(t, 0);
		return;
	}
	if (first)
		tell_call("inject", t, code);
	injected = t->call.call;
	if (code)
		skip_call(t->pid, code);
	if (options.kill_before)
		(void)kill(t->pid, SIGKILL);
	if (options.signal)
		(void)kill(t->pid, options.signal);
	if (options.hook && first) {
		t->held = true;
		start_hook(t);
		return;
	}
	t->dies_on_return = options.kill_after;
	if (t->dies_on_return)
		(void)ptrace(PTRACE_SYSCALL, t->pid, NULL, 0L);
	else
		go_on(t, 0);
}

/* Whether a call of it has to be looked at, which costs more than the stop. */
static bool looked_at(const struct tracee *t)
{
	bool over = injected && !options.for_ever && !options.signal_again && !options.list;
	return !over && (options.role == FOREIGN || t->role == options.role);
}

static bool wanted(const struct call_made *made)
{
	if (options.changing && !made->changes)
		return false;
	for (size_t i = 0; i < options.only_count; i++)
		if (options.only[i] == made->call)
			return true;
	return options.only_count == 0;
}

/* The call's name and its paths, each run of digits being one '#': FNV-1a. */
static uint64_t likeness(const struct call_made *made)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const char *const words[] = {made->call->name, made->directory, made->path};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (const char *c = words[i]; *c; c++) {
			bool digit = *c >= '0' && *c <= '9';
			if (digit && c > words[i] && c[-1] >= '0' && c[-1] <= '9')
				continue;
			hash = (hash ^ (unsigned char)(digit ? '#' : *c)) * UINT64_C(0x100000001b3);
		}
	return hash;
}

static bool one_too_many(const struct tracee *t, const struct call_made *made)
{
	static struct {
		uint64_t likeness;
		unsigned seen;
	} met[1 << 14];
	uint64_t hash = likeness(made) ^ (uint64_t)t->role;
	for (size_t i = hash % (1 << 14), steps = 0; steps < 1 << 14; i = (i + 1) % (1 << 14), steps++) {
		if (met[i].seen && met[i].likeness != hash)
			continue;
		met[i].likeness = hash;
		return ++met[i].seen > options.each;
	}
	return true;
}

static bool main_begins(long number, const uint64_t args[6])
{
	return number == SYS_fcntl && args[0] == 0 && args[1] == F_GETFD;
}

static void at_call(struct tracee *t)
{
	struct __ptrace_syscall_info info;
	struct call_made made;
	if (t->role == FOREIGN || ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, (void *)sizeof info, &info) <= 0) {
		go_on(t, 0);
		return;
	}
	long number = (long)info.seccomp.nr;
	uint64_t args[6];
	memcpy(args, info.seccomp.args, sizeof args);
	if (!t->counts)
		t->counts = main_begins(number, args);
	else if (looked_at(t) && call_look(t->pid, number, args, &made) && wanted(&made)) {
		bool again = injected && options.for_ever && made.call == injected;
		bool counts = !options.each || !one_too_many(t, &made);
		counted += counts;
		again |= counts && injected && options.signal_again && counted == options.at + options.signal_again;
		t->call = made;
		if (options.list && counts)
			tell_call("call", t, 0);
		if ((counts && counted == options.at) || again) {
			act(t);
			return;
		}
	}
	if (hook_pid && options.alone)
		t->held = true;
	else
		go_on(t, 0);
}

/* --- stops and ends --- */

static void child_made(struct tracee *parent)
{
	unsigned long pid = 0;
	(void)ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid);
	struct tracee *child = tracee_of((pid_t)pid);
	bool waits = child && child->unannounced;
	if (!child)
		child = tracee_new((pid_t)pid);
	child->role = parent->role;
	child->counts = parent->counts;
	child->unannounced = false;
	if (waits)
		go_on(child, 0);
}

static void at_event(struct tracee *t, int event, int signal)
{
	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		child_made(t);
		break;
	case PTRACE_EVENT_EXEC:
		t->role = role_now(t->pid);
		t->counts = false;
		break;
	case PTRACE_EVENT_SECCOMP:
		at_call(t);
		return;
	case PTRACE_EVENT_STOP:
		if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) {
			(void)ptrace(PTRACE_LISTEN, t->pid, NULL, 0L);
			return;
		}
		break;
	default:
		break;
	}
	if (t->dies_on_return)
		(void)kill(t->pid, SIGKILL);
	go_on(t, 0);
}

static void stopped(pid_t pid, int status)
{
	struct tracee *t = tracee_of(pid);
	int signal = WSTOPSIG(status), event = (int)((unsigned)status >> 16);
	if (!t) {
		tracee_new(pid)->unannounced = true;
		return;
	}
	if (event)
		at_event(t, event, signal);
	else if (signal == (SIGTRAP | 0x80)) {
		if (t->dies_on_return)
			(void)kill(t->pid, SIGKILL);
		go_on(t, 0);
	} else
		go_on(t, signal);
}

static void ended(pid_t pid, int status)
{
	struct tracee *t = tracee_of(pid);
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (pid == hook_pid)
		hook_ended(status);
	if (!t)
		return;
	if (t->role != FOREIGN || pid == root)
		report("{\"event\":\"%s\",\"role\":\"%s\",\"pid\":%d,\"status\":%d,\"signal\":%d,\"counted\":%ld,\"overdue\":%s}", pid == root ? "command" : "ended",
		       role_names[t->role], (int)pid, code, signal, counted, overdue ? "true" : "false");
	if (pid == root)
		(void)setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	tracee_gone(t);
}

static void trace(void)
{
	while (tracee_count || hook_pid) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);
		if (overdue)
			kill_all();
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			break;
		if (WIFSTOPPED(status))
			stopped(pid, status);
		else
			ended(pid, status);
	}
}

/* --- beginning --- */

static void on_alarm(int signal)
{
	(void)signal;
	overdue = 1;
}

_Noreturn static void become(char **command)
{
	(void)raise(SIGSTOP);
	if (call_filter_install() < 0)
		die(1, "seccomp");
	(void)execvp(command[0], command);
	(void)fprintf(stderr, "inject: %s: %s\n", command[0], strerror(errno));
	_exit(127);
}

static void begin(char **command)
{
	int status;
	long wanted_events = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD |
			     PTRACE_O_EXITKILL;
	root = fork();
	if (root < 0)
		die(1, "fork");
	if (root == 0)
		become(command);
	if (waitpid(root, &status, WUNTRACED) != root || !WIFSTOPPED(status) || ptrace(PTRACE_SEIZE, root, NULL, wanted_events) < 0)
		die(1, "ptrace");
	(void)tracee_new(root);
	(void)kill(root, SIGCONT);
}

static void set_alarm(int seconds)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval timer = {.it_value.tv_sec = seconds, .it_interval.tv_usec = 200000};
	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_REAL, &timer, NULL);
}

static void take_only(const char *names)
{
	while (*names && options.only_count < sizeof options.only / sizeof *options.only) {
		size_t len = strcspn(names, ",");
		const struct call *call = call_named(names, len);
		if (!call)
			die(2, "--only: there is no such call");
		options.only[options.only_count++] = call;
		names += len + (names[len] == ',');
	}
}

static enum role role_named(const char *name)
{
	for (int role = CONTROL; role < ROLES; role++)
		if (strcmp(name, role_names[role]) == 0)
			return (enum role)role;
	die(2, "--role is control, boot, keeper or guard");
}

static void take_kill(const char *when)
{
	options.kill_before = strcmp(when, "before") == 0;
	options.kill_after = strcmp(when, "after") == 0;
	if (!options.kill_before && !options.kill_after)
		die(2, "--kill is before or after");
}

static void take_signal(const char *words)
{
	char *again;
	options.signal = (int)strtol(words, &again, 10);
	options.signal_again = *again == ',' ? atol(again + 1) : 0;
}

static void take_option(int option)
{
	switch (option) {
	case 'n': options.at = atol(optarg); break;
	case 'e': options.nth_errno = atoi(optarg); break;
	case 'f': options.for_ever = true; break;
	case 'k': take_kill(optarg); break;
	case 's': take_signal(optarg); break;
	case 'h': options.hook = optarg; break;
	case 'a': options.alone = true; break;
	case 'r': options.role = role_named(optarg); break;
	case 'c': options.changing = true; break;
	case 'o': take_only(optarg); break;
	case 'm': options.each = (unsigned)atoi(optarg); break;
	case 't': options.tool = optarg; break;
	case 'd': options.deadline = atoi(optarg); break;
	case 'w': options.report = atoi(optarg); break;
	case 'l': options.list = true; break;
	default: die(2, "unknown option; see the head of inject.c");
	}
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"at", 1, NULL, 'n'},	{"errno", 1, NULL, 'e'},    {"for-ever", 0, NULL, 'f'}, {"kill", 1, NULL, 'k'},	    {"hook", 1, NULL, 'h'},
		{"alone", 0, NULL, 'a'}, {"role", 1, NULL, 'r'},     {"changing", 0, NULL, 'c'}, {"only", 1, NULL, 'o'},	    {"tool", 1, NULL, 't'},
		{"deadline", 1, NULL, 'd'}, {"report", 1, NULL, 'w'}, {"list", 0, NULL, 'l'}, {"each", 1, NULL, 'm'},	{"signal", 1, NULL, 's'}, {NULL, 0, NULL, 0},
	};
	for (int option; (option = getopt_long(argc, argv, "+", known, NULL)) != -1;)
		take_option(option);
	if (optind >= argc)
		die(2, "usage: inject [OPTIONS] -- COMMAND…");
	if (!realpath(options.tool ? options.tool : argv[optind], tool))
		die(1, "the tool's program");
	(void)fcntl(options.report, F_SETFD, options.report > 2 ? FD_CLOEXEC : 0);
	set_alarm(options.deadline);
	begin(argv + optind);
	trace();
	report("{\"event\":\"end\",\"counted\":%ld,\"injected\":%s}", counted, injected ? "true" : "false");
	return options.at && !injected ? 3 : 0;
}
