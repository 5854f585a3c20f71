/* Real children, cgroups and loopback sockets for the tests of processes and sockets. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/process.h"
#include "tests/unit/as_root.h"

#define PLAIN_USER 65534

#define NEED(condition, why)                                                        \
	do {                                                                        \
		if (!(condition)) {                                                 \
			const char *must = getenv("MUST_WORK");                     \
			if (must && !strcmp(must, "1"))                             \
				fail_msg("cannot be skipped here: %s", why);        \
			print_message("skipped: %s\n", why);                        \
			skip();                                                     \
		}                                                                   \
	} while (0)

static inline void nap_ms(long ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	(void)nanosleep(&pause, NULL);
}

/* In a child: -1 elsewhere. A body says ready() once its state is what the test wants. */
static int ready_fd = -1;
static inline void ready(void)
{
	if (write(ready_fd, "r", 1) != 1)
		_exit(99);
}
static inline void wait_for_ever(void)
{
	for (;;)
		(void)pause();
}

typedef void child_body(void *argument);

/* Forks, runs body in the child, and returns once the child has said ready(), `times` times. */
static inline pid_t start_children(child_body *body, void *argument, int times)
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		ready_fd = ends[1];
		(void)close(ends[0]);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody behind */
		body(argument);
		_exit(0);
	}
	(void)close(ends[1]);
	char byte;
	for (int i = 0; i < times; i++)
		assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	return pid;
}
static inline pid_t start_child(child_body *body, void *argument)
{
	return start_children(body, argument, 1);
}

/* Runs body in a child and returns its exit status; 128 + signal when it was killed. */
static inline int run_child(child_body *body, void *argument)
{
	int status;
	pid_t pid = start_children(body, argument, 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}
static inline bool child_lives(pid_t pid)
{
	siginfo_t info = {0};
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}
static inline void just_wait(void *argument)
{
	(void)argument;
	ready();
	wait_for_ever();
}

/* Inside a child that must not use cmocka. */
#define CHILD_CHECK(condition)                                                                \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                             \
		}                                                                             \
	} while (0)

static inline void become_plain_user(void)
{
	if (geteuid() != 0)
		return;
	CHILD_CHECK(setresgid(PLAIN_USER, PLAIN_USER, PLAIN_USER) == 0);
	CHILD_CHECK(setresuid(PLAIN_USER, PLAIN_USER, PLAIN_USER) == 0);
	CHILD_CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
}

/* A directory of our own directly below $TMPDIR or /tmp, canonical. */
static inline void make_directory(char out[PATH_MAX])
{
	const char *parent = getenv("TMPDIR");
	char template[PATH_MAX];
	(void)snprintf(template, sizeof template, "%s/kirocrew-test-XXXXXX", parent && *parent ? parent : "/tmp");
	assert_non_null(mkdtemp(template));
	assert_non_null(realpath(template, out));
}
static inline void remove_directory(const char *path)
{
	pid_t pid = fork();
	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", "--one-file-system", path, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
}

static inline void write_word(const char *directory, const char *file, const char *word)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/%s", directory, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, word, strlen(word)) < 0)
		(void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
	close_quietly(fd);
}

static inline bool make_cgroup_in(const char *mount, const char *group, char out[512])
{
	static int count;
	(void)snprintf(out, 512, "%s%s/kirocrew-test-%d-%d", mount, group, (int)getpid(), ++count);
	return mkdir(out, 0755) == 0;
}
/* A cgroup of our own, where we may make one: at the top, or below what was delegated to us (tests/real/delegated). */
static inline bool make_cgroup(char out[512])
{
	char mount[200], inside[200];
	if (cgroup2_mount(mount, sizeof mount, NULL) < 0)
		return false;
	return make_cgroup_in(mount, "", out) || (cgroup2_of(getpid(), inside, sizeof inside, NULL) == 0 && make_cgroup_in(mount, inside, out));
}
static inline void remove_cgroup(const char *path)
{
	for (int i = 0; rmdir(path) < 0 && errno == EBUSY && i < 200; i++)
		nap_ms(10);
}
static inline void enter_cgroup(const char *path)
{
	write_word(path, "cgroup.procs", "0");
}

/* A TCP listener on an address of the family; *port 0 is chosen and written back. -1 when it cannot be. */
static inline int listen_on(int family, const char *address, int *port, bool reuse_port, bool v6_only)
{
	const int one = 1, only = v6_only;
	struct sockaddr_storage storage = {0};
	socklen_t len;
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)&storage;
		*in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
		(void)inet_pton(AF_INET, address, &in->sin_addr);
		len = sizeof *in;
	} else {
		struct sockaddr_in6 *in = (struct sockaddr_in6 *)&storage;
		*in = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port)};
		(void)inet_pton(AF_INET6, address, &in->sin6_addr);
		len = sizeof *in;
	}
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (reuse_port)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
	if (bind(fd, (struct sockaddr *)&storage, len) < 0 || listen(fd, 16) < 0 || getsockname(fd, (struct sockaddr *)&storage, &len) < 0) {
		close_quietly(fd);
		return -1;
	}
	*port = ntohs(family == AF_INET ? ((struct sockaddr_in *)&storage)->sin_port : ((struct sockaddr_in6 *)&storage)->sin6_port);
	return fd;
}
