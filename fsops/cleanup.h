/* Scope cleanup: everything owned is released when its variable leaves scope (GCC and Clang `cleanup` attribute). */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

static inline void cleanup_free(void *slot) { free(*(void **)slot); }

/* Closes and keeps errno; a negative descriptor is nothing. */
static inline void close_quietly(int fd)
{
	int saved = errno;
	if (fd >= 0)
		(void)close(fd);
	errno = saved;
}
static inline void cleanup_fd(int *fd) { close_quietly(*fd); }

static inline void cleanup_file(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}

#define AUTO_FREE CLEANUP(cleanup_free)
#define AUTO_CLOSE CLEANUP(cleanup_fd)
#define AUTO_FCLOSE CLEANUP(cleanup_file)

/* Hands an owned descriptor or pointer over to the caller. */
static inline int take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}
#define TAKE_PTR(pointer)                        \
	({                                       \
		__typeof__(pointer) taken_ = (pointer); \
		(pointer) = NULL;                \
		taken_;                          \
	})
