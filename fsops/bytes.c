#include "fsops/bytes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/bytes_kernel.h"
#include "fsops/cleanup.h"

#define PIECE (8u << 20) /* between two looks at the clock */
#define BUFFER (256u << 10)

static bool clone_whole(int from, int to, uint64_t size)
{
	struct stat st;
	if (bytes_kernel_clone(from, to) < 0)
		return false;
	/* It clones what is there now, which may be more than was asked for; less is for the others to find out. */
	if (fstat(to, &st) == 0 && (uint64_t)st.st_size >= size && ftruncate(to, (off_t)size) == 0)
		return true;
	(void)!ftruncate(to, 0);
	return false;
}

/* Is it the call that does not fit these files, and not the files that are bad? */
static bool not_offered(int code)
{
	return code == EXDEV || code == EINVAL || code == ENOSYS || code == EOPNOTSUPP || code == EPERM || code == ETXTBSY;
}

/* *done counts on from where it stands. 1: another way has to go on. */
static int copy_in_kernel(int from, int to, uint64_t size, uint64_t *done, struct deadline until)
{
	while (*done < size) {
		if (deadline_passed(until))
			return -ETIMEDOUT;
		off_t in = (off_t)*done, out = (off_t)*done;
		uint64_t left = size - *done;
		ssize_t n = bytes_kernel_range(from, &in, to, &out, left < PIECE ? (size_t)left : PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && !not_offered(errno))
			return -errno;
		if (n <= 0)
			return 1;
		*done += (uint64_t)n;
	}
	return 0;
}

static int write_at(int to, const char *bytes, size_t len, uint64_t at)
{
	while (len) {
		ssize_t n = pwrite(to, bytes, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

static int copy_by_hand(int from, int to, uint64_t size, uint64_t *done, struct deadline until)
{
	AUTO_FREE char *buffer = malloc(BUFFER);
	if (!buffer)
		return -ENOMEM;
	while (*done < size) {
		if (deadline_passed(until))
			return -ETIMEDOUT;
		uint64_t left = size - *done;
		ssize_t n = pread(from, buffer, left < BUFFER ? (size_t)left : BUFFER, (off_t)*done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EAGAIN;
		int r = write_at(to, buffer, (size_t)n, *done);
		if (r < 0)
			return r;
		*done += (uint64_t)n;
	}
	return 0;
}

int bytes_copy(int from, int to, uint64_t size, struct deadline until, struct err *err)
{
	uint64_t done = 0;
	if (size == 0 || clone_whole(from, to, size))
		return 0;
	int r = copy_in_kernel(from, to, size, &done, until);
	if (r == 1)
		r = copy_by_hand(from, to, size, &done, until);
	if (r == -EAGAIN)
		return err_set(err, r, "copy", NULL, "the file became shorter while it was read");
	if (r == -ETIMEDOUT)
		return err_set(err, r, "copy", NULL, "the time was up after %llu of %llu bytes", (unsigned long long)done,
			       (unsigned long long)size);
	return r < 0 ? err_code(err, r, "copy", NULL) : 0;
}
