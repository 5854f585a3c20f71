/* A directory of its own for each test, real victims, and the ways in which a host can be worse than the one the tests run on. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsops/cleanup.h"
#include "fsops/pin.h"
#include "fsops/tree.h"
#include "tests/unit/as_root.h"

#define PLAIN_UID 65534
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Inside of a forked child, where a cmocka assertion would jump into the parent's runner. */
#define CHECK(condition)                                                                                                                   \
	do {                                                                                                                               \
		if (!(condition)) {                                                                                                        \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                                  \
			_exit(1);                                                                                                          \
		}                                                                                                                          \
	} while (0)

/* A skip says why; where everything must work it is a failure. */
#define SKIP_BECAUSE(...)                                                                                                                  \
	do {                                                                                                                               \
		fprintf(stderr, "skipped: " __VA_ARGS__);                                                                                  \
		fprintf(stderr, "\n");                                                                                                     \
		const char *must_ = getenv("MUST_WORK");                                                                                   \
		if (must_ && strcmp(must_, "1") == 0)                                                                                      \
			fail_msg("a skip, but MUST_WORK=1");                                                                               \
		skip();                                                                                                                    \
	} while (0)

struct fixture {
	char path[PATH_MAX];
	struct pin base; /* of path */
	size_t descriptors;
};

static inline size_t count_descriptors(void)
{
	size_t count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static inline int fixture_up_in(void **state, const char *parent)
{
	struct fixture *f = calloc(1, sizeof *f);
	const char *tmp = getenv("TMPDIR");
	snprintf(f->path, sizeof f->path, "%s/fsops-XXXXXX", tmp && tmp[0] == '/' ? tmp : parent);
	f->descriptors = count_descriptors();
	f->base = PIN_NONE;
	*state = f;
	if (!mkdtemp(f->path))
		return -1;
	return pin_open(f->path, &f->base, NULL);
}

static inline int fixture_up(void **state)
{
	return fixture_up_in(state, "/tmp");
}

/* Hundreds of thousands of entries: in memory if that can be had, because a journal takes minutes to make them. */
static inline int fixture_up_big(void **state)
{
	return fixture_up_in(state, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static inline int fixture_down(void **state)
{
	struct fixture *f = *state;
	pin_close(&f->base);
	bool leak = count_descriptors() != f->descriptors;
	if (leak)
		fprintf(stderr, "descriptors: %zu before, %zu after\n", f->descriptors, count_descriptors());
	AUTO_PIN struct pin parent = PIN_NONE;
	char *slash = strrchr(f->path, '/');
	*slash = '\0';
	struct tree_left left;
	struct err err = {0};
	int r = pin_open(f->path[0] ? f->path : "/", &parent, &err);
	if (!r)
		r = tree_remove(&parent, slash + 1, deadline_in_ms(2000), &left, &err);
	if (r)
		fprintf(stderr, "teardown: %s\n", err.text);
	free(f);
	return r || leak ? -1 : 0;
}

#define FS_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_up, fixture_down)
#define FS_BIG_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_up_big, fixture_down)

static inline void put_file(int at, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		fprintf(stderr, "put_file %s: errno %d\n", name, errno);
		abort();
	}
}

static inline void put_dir(int at, const char *name)
{
	if (mkdirat(at, name, 0755) < 0) {
		fprintf(stderr, "put_dir %s: errno %d\n", name, errno);
		abort();
	}
}

static inline bool exists(int at, const char *name)
{
	struct stat st;
	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline bool holds(int at, const char *name, const char *text)
{
	char got[4096];
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof got);
	return n == (ssize_t)strlen(text) && memcmp(got, text, strlen(text)) == 0;
}

static inline mode_t mode_of(int at, const char *name)
{
	struct stat st = {0};
	(void)fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW);
	return st.st_mode & 07777;
}

/* victim/{precious, inner/precious}: what no operation may reach through a link. */
static inline void put_victim(int at)
{
	put_dir(at, "victim");
	put_dir(at, "victim/inner");
	put_file(at, "victim/precious", "precious");
	put_file(at, "victim/inner/precious", "precious");
	if (fchmodat(at, "victim", 0755, 0) < 0)
		abort();
}

static inline bool victim_is_whole(int at)
{
	struct stat st = {0};
	return holds(at, "victim/precious", "precious") && holds(at, "victim/inner/precious", "precious") &&
	       fstatat(at, "victim", &st, 0) == 0 && st.st_nlink == 3 && (st.st_mode & 07777) == 0755;
}

static inline int exit_status(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* 0 if the function came back in a child of its own; it says failure with CHECK. */
static inline int in_child(void (*function)(struct fixture *), struct fixture *f)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		function(f);
		_exit(0);
	}
	return exit_status(pid);
}

static inline bool become_plain_user(void)
{
	if (geteuid() != 0)
		return true;
	return setgroups(0, NULL) == 0 && setresgid(PLAIN_UID, PLAIN_UID, PLAIN_UID) == 0 &&
	       setresuid(PLAIN_UID, PLAIN_UID, PLAIN_UID) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

/* From now on the calls with these numbers fail with `code`; -1 is no number. */
static inline bool deny_calls(int first, int second, int code)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first, 1, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)code & SECCOMP_RET_DATA)),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = COUNT(filter), .filter = filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* How a host may be. The same tests run on each, in a child of its own. */
struct host {
	const char *name;
	bool walk;     /* the component walk is chosen */
	int openat2;   /* not 0: openat2 fails with this */
	int statx;     /* not 0: statx fails with this, so that there are no mount ids from it */
	bool no_modes; /* fchmodat2 is missing */
	bool plain;    /* a plain user */
};

static const struct host hosts[] = {
    {.name = "openat2"},
    {.name = "walk", .walk = true},
    {.name = "openat2 and fchmodat2 denied, ENOSYS", .openat2 = ENOSYS, .no_modes = true},
    {.name = "openat2 denied, EPERM", .openat2 = EPERM},
    {.name = "walk without statx", .walk = true, .statx = ENOSYS},
    {.name = "plain user", .plain = true},
    {.name = "plain user, walk, no fchmodat2", .plain = true, .walk = true, .no_modes = true},
};

static inline bool become_host(const struct host *h)
{
	pin_use_openat2 = !h->walk;
	if (h->plain && !become_plain_user())
		return false;
	if (h->openat2 && (!deny_calls(SYS_openat2, -1, h->openat2) || syscall(SYS_openat2, -1, "", NULL, 0) != -1 || errno != h->openat2))
		return false;
	if (h->statx && !deny_calls(SYS_statx, -1, h->statx))
		return false;
	return !h->no_modes || deny_calls(452, -1, ENOSYS);
}

typedef int run_group(const char *title);

static inline int run_on_every_host(run_group *run)
{
	int failed = 0;
	for (size_t i = 0; i < COUNT(hosts); i++) {
		fflush(NULL);
		pid_t pid = fork();
		if (pid == 0) {
			int r = become_host(&hosts[i]) ? run(hosts[i].name) : 1;
			fflush(NULL);
			_exit(r ? 1 : 0);
		}
		int status = exit_status(pid);
		if (status)
			fprintf(stderr, "failed on host: %s (%d)\n", hosts[i].name, status);
		failed |= status;
	}
	return failed;
}

static inline bool write_to(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* A mount namespace of one's own, as root or through a user namespace. A pin from before would look into the old one. */
static inline bool own_mounts(struct fixture *f)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();
	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0)
		return false;
	if (uid) {
		(void)write_to("/proc/self/setgroups", "deny");
		snprintf(map, sizeof map, "0 %u 1", gid);
		if (!write_to("/proc/self/gid_map", map))
			return false;
		snprintf(map, sizeof map, "0 %u 1", uid);
		if (!write_to("/proc/self/uid_map", map))
			return false;
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	pin_close(&f->base);
	return pin_open(f->path, &f->base, NULL) == 0;
}

static inline void probe_mounts(struct fixture *f)
{
	CHECK(own_mounts(f));
}

#define NEED_MOUNTS(f)                                                                                                                     \
	do {                                                                                                                               \
		if (in_child(probe_mounts, f) != 0)                                                                                        \
			SKIP_BECAUSE("no mount namespace can be made here");                                                               \
	} while (0)

/* Runs the operation in a traced child and does `meddle` exactly before its call number `at` (from 1). Returns the exit status of the
 * child, -1 if the child made fewer calls, -2 if nothing can be traced here. */
static inline int with_meddling_at(unsigned at, void (*operation)(struct fixture *), void (*meddle)(struct fixture *), struct fixture *f)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(99);
		raise(SIGSTOP);
		operation(f);
		_exit(0);
	}
	int status;
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -2;
	(void)ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	unsigned stops = 0;
	bool met = false;
	for (int signal = 0;;) {
		(void)ptrace(met ? PTRACE_CONT : PTRACE_SYSCALL, pid, 0, signal);
		if (waitpid(pid, &status, 0) != pid)
			return -2;
		if (WIFEXITED(status))
			return met ? WEXITSTATUS(status) : -1;
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		bool call = WSTOPSIG(status) == (SIGTRAP | 0x80);
		signal = call ? 0 : WSTOPSIG(status);
		/* Every call stops twice: before and after. */
		if (call && ++stops == 2 * at - 1) {
			meddle(f);
			met = true;
		}
	}
}
