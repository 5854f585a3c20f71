/* Shared by the tests of the seal: a directory of one's own, children with a right taken away, skips that CI turns into failures. */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PLAIN_USER 65534

#define SKIP(...)                                       \
	do {                                            \
		print_message("skipped: " __VA_ARGS__); \
		print_message("\n");                    \
		const char *must_ = getenv("MUST_WORK"); \
		if (must_ && !strcmp(must_, "1"))       \
			fail_msg("MUST_WORK is set");   \
		skip();                                 \
	} while (0)

static char test_dir[PATH_MAX - 2048];

static inline const char *at(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* test_dir + "/" + the words; a ring of eight buffers. */
static inline const char *at(const char *format, ...)
{
	static char ring[8][PATH_MAX];
	static unsigned turn;
	char *out = ring[turn++ % 8];
	int n = snprintf(out, PATH_MAX, "%s/", test_dir);
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(out + n, (size_t)(PATH_MAX - n), format, arguments);
	va_end(arguments);
	return out;
}

static inline void make_dir(const char *path)
{
	if (mkdir(path, 0700) < 0)
		fail_msg("mkdir %s: %m", path);
}
static inline void make_link(const char *target, const char *path)
{
	if (symlink(target, path) < 0)
		fail_msg("symlink %s: %m", path);
}
static inline void make_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}
static inline bool exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

static inline void remove_tree(const char *path)
{
	pid_t child = fork();
	if (child == 0) {
		execlp("rm", "rm", "-rf", "--one-file-system", path, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(child, NULL, 0);
}

static inline int test_dir_make(void **state)
{
	(void)state;
	const char *base = getenv("TMPDIR");
	char made[PATH_MAX - 2048], real[PATH_MAX];
	(void)snprintf(made, sizeof made, "%.1500s/seal-XXXXXX", base && *base == '/' ? base : "/tmp");
	if (!mkdtemp(made) || !realpath(made, real) || strlen(real) >= sizeof test_dir)
		return -1;
	memcpy(test_dir, real, strlen(real) + 1);
	return 0;
}
static inline int test_dir_remove(void **state)
{
	(void)state;
	remove_tree(test_dir);
	return 0;
}

static inline void as_plain_user(void)
{
	if (geteuid() == 0 && (setresgid(PLAIN_USER, PLAIN_USER, PLAIN_USER) < 0 || setresuid(PLAIN_USER, PLAIN_USER, PLAIN_USER) < 0))
		_exit(120);
}

/* In a child; its answer is its exit status. */
static inline int in_child(int (*body)(void *), void *argument)
{
	(void)fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(body(argument));
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = write(fd, text, strlen(text));
		(void)n;
		(void)close(fd);
	}
}
/* A mount namespace of our own, also for a plain user (then in a user namespace); false when the host forbids it. */
static inline bool own_mounts(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];
	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0)
		return false;
	if (uid) {
		write_text("/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof map, "0 %u 1", uid);
		write_text("/proc/self/uid_map", map);
		(void)snprintf(map, sizeof map, "0 %u 1", gid);
		write_text("/proc/self/gid_map", map);
	}
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
