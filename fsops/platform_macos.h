/* macOS in the words of Linux. Included before everything else in every file of a macOS build. Close-on-exec is set a moment after the birth of a
 * descriptor where the system cannot do it at birth: this program has one thread. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Neither reads nor writes and needs no permission to; a FIFO is not waited for. */
#define O_PATH O_EVTONLY
#define O_PATH_ITSELF (O_EVTONLY | O_SYMLINK)
#define AT_NO_AUTOMOUNT 0 /* autofs is never triggered by stat(2) here */

extern char **environ;

static inline int fd_set_cloexec(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static inline int pipe2(int ends[2], int flags)
{
	if (pipe(ends) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		if (fd_set_cloexec(ends[i]) < 0 || ((flags & O_NONBLOCK) && fcntl(ends[i], F_SETFL, O_NONBLOCK) < 0)) {
			int saved = errno;
			(void)close(ends[0]);
			(void)close(ends[1]);
			errno = saved;
			return -1;
		}
	return 0;
}

static inline ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	(void)flags;
	arc4random_buf(bytes, size);
	return (ssize_t)size;
}

/* The two of glibc that are never NULL for what exists. */
static inline const char *strerrordesc_np(int code)
{
	return strerror(code);
}

static inline const char *sigdescr_np(int number)
{
	return strsignal(number);
}

/* The GNU one returns the text. */
static inline char *strerror_gnu(int code, char *buffer, size_t size)
{
	if (strerror_r(code, buffer, size) != 0)
		(void)snprintf(buffer, size, "error %d", code);
	return buffer;
}
#define strerror_r strerror_gnu

static inline void *mempcpy(void *to, const void *from, size_t size)
{
	return (char *)memcpy(to, from, size) + size;
}

#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#define ELIBBAD EBADMACHO
#define ST_NOEXEC 0 /* statvfs(3) does not tell */

/* The kernel has them, and not every SDK names them (bsd/sys/fcntl.h of XNU). */
#ifndef F_OFD_SETLK
#define F_OFD_SETLK 90
#define F_OFD_SETLKW 91
#define F_OFD_GETLK 92
#endif

#define SOCK_CLOEXEC 0x10000000
#define SOCK_NONBLOCK 0x20000000
static inline int socket_with_flags(int domain, int type, int protocol)
{
	int fd = socket(domain, type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), protocol);
	if (fd < 0)
		return -1;
	if (((type & SOCK_CLOEXEC) && fd_set_cloexec(fd) < 0) || ((type & SOCK_NONBLOCK) && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)) {
		int saved = errno;
		(void)close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}
#define socket socket_with_flags

/* A file without a name. */
#define MFD_CLOEXEC 1u
static inline int memfd_create(const char *name, unsigned flags)
{
	char path[PATH_MAX];
	const char *directory = getenv("TMPDIR");
	(void)flags;
	(void)snprintf(path, sizeof path, "%s/%s.XXXXXX", directory && *directory == '/' ? directory : "/tmp", name);
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

/* Only ever called to take back what is pending. */
static inline int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *patience)
{
	sigset_t pending;
	int number;
	(void)info, (void)patience;
	if (sigpending(&pending) < 0)
		return -1;
	for (int candidate = 1; candidate < NSIG; candidate++)
		if (sigismember(set, candidate) && sigismember(&pending, candidate))
			return sigwait(set, &number) == 0 ? number : -1;
	errno = EAGAIN;
	return -1;
}
