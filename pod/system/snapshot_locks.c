#include "pod/system/snapshot_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>

/* sqlite.org/fileformat2.html, "The Lock-Byte Page"; sqlite.org/walformat.html, "Locks" */
#define PENDING_BYTE 0x40000000
#define RESERVED_BYTE (PENDING_BYTE + 1)
#define SHARED_FIRST (PENDING_BYTE + 2)
#define SHARED_BYTES 510
#define WAL_READ_LOCK(n) (123 + (n))
#define WAL_READERS 5

#ifndef F_OFD_SETLK
/* One process, one thread, one descriptor per file: the old locks do the same there. */
#define F_OFD_SETLK F_SETLK
#define F_OFD_GETLK F_GETLK
#endif

static int lock_range(int fd, short type, off_t start, off_t len)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
	if (fcntl(fd, F_OFD_SETLK, &range) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

static int refused_lock(struct err *err, int code, const char *sentence)
{
	return code == -EAGAIN ? err_set(err, code, "lock", NULL, "%s", sentence) : err_code(err, code, "lock", NULL);
}

int lock_database_shared(int database, struct err *err)
{
	/* PENDING first: a writer that waits for its readers to go lets nobody new in. */
	int r = lock_range(database, F_RDLCK, PENDING_BYTE, 1);
	if (r == 0) {
		r = lock_range(database, F_RDLCK, SHARED_FIRST, SHARED_BYTES);
		(void)lock_range(database, F_UNLCK, PENDING_BYTE, 1);
	}
	return r < 0 ? refused_lock(err, r, "another process holds the database locked") : 0;
}

int lock_wal_still(int shm, struct err *err)
{
	int r = lock_range(shm, F_RDLCK, WAL_READ_LOCK(0), 1);
	if (r < 0)
		return refused_lock(err, r, "a checkpoint of the database is under way");
	/* The highest first: readers look for theirs from the lowest. */
	for (int i = WAL_READERS - 1; i > 0; i--) {
		r = lock_range(shm, F_RDLCK, WAL_READ_LOCK(i), 1);
		if (r != -EAGAIN)
			break;
	}
	return r < 0 ? refused_lock(err, r, "the WAL of the database is being begun anew or recovered") : 0;
}

int database_is_reserved(int database, bool *ret_reserved, struct err *err)
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = RESERVED_BYTE, .l_len = 1};
	if (fcntl(database, F_OFD_GETLK, &range) < 0)
		return err_code(err, -errno, "lock", NULL);
	*ret_reserved = range.l_type != F_UNLCK;
	return 0;
}
