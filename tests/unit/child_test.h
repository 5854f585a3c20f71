/* Tests that change their environment, directory, user or mounts: each runs in a child of its own, with a clean environment. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pod/model/plane.h"

#define SKIPPED 77

static char top[64]; /* the test's directory, the working directory of each child */

static inline int make_top(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof top, "/tmp/kcp-around-XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(chmod(top, 0755), 0);
	return 0;
}

static inline int remove_top(void **state)
{
	(void)state;
	char command[128];
	(void)snprintf(command, sizeof command, "rm -rf '%s'", top);
	return system(command);
}

/* In the child a failed condition ends it with the line's number, which the parent names. */
static int failed_pipe = -1;
#define CHECK(condition)                                                                                                                   \
	do {                                                                                                                               \
		if (!(condition)) {                                                                                                        \
			dprintf(failed_pipe, "line %d: %s", __LINE__, #condition);                                                         \
			_exit(1);                                                                                                          \
		}                                                                                                                          \
	} while (0)

static inline void in_child(int (*run)(void))
{
	int fds[2];
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		failed_pipe = fds[1];
		(void)alarm(20); /* nothing here may hang */
		char home[128];
		(void)snprintf(home, sizeof home, "%s/home", top);
		CHECK(chdir(top) == 0);
		CHECK(mkdir(home, 0755) == 0 || errno == EEXIST);
		CHECK(clearenv() == 0);
		CHECK(setenv("HOME", home, 1) == 0);
		_exit(run());
	}
	close(fds[1]);
	char said[1024];
	ssize_t n = read(fds[0], said, sizeof said - 1);
	said[n > 0 ? n : 0] = '\0';
	close(fds[0]);
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		const char *must = getenv("MUST_WORK");
		if (must && strcmp(must, "1") == 0)
			fail_msg("cannot be tested here: %s", said);
		print_message("skipped: %s\n", said);
		skip();
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("status 0x%x, %s", (unsigned)status, said);
}

static inline void put_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(fchmod(fd, mode) == 0);
	CHECK(close(fd) == 0);
}

static inline void put_config(const char *directory, const char *text)
{
	char path[256];
	CHECK(mkdir(directory, 0755) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof path, "%s/kirocrew-pod", directory);
	CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof path, "%s/kirocrew-pod/config.ini", directory);
	put_file(path, text, 0600);
}

static inline char *below_top(const char *relative)
{
	static char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", top, relative);
	return path;
}

static inline void put_proc(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(close(fd) == 0);
}

/* A user namespace in which we stay who we are: files can be made on its mounts. */
static inline bool own_users(void)
{
	char uids[32], gids[32];
	(void)snprintf(uids, sizeof uids, "%u %u 1", (unsigned)getuid(), (unsigned)getuid());
	(void)snprintf(gids, sizeof gids, "%u %u 1", (unsigned)getgid(), (unsigned)getgid());
	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	put_proc("/proc/self/uid_map", uids);
	put_proc("/proc/self/setgroups", "deny");
	put_proc("/proc/self/gid_map", gids);
	return true;
}

static inline bool own_mounts(void)
{
	return (getuid() == 0 || own_users()) && unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
