/* The entries of a directory in batches, without a DIR: nothing but the descriptor has to stay open. Internal to fsops. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As getdents64(2) writes it. */
struct entry {
	uint64_t ino;
	int64_t next; /* place behind this entry, for entries_seek */
	uint16_t size;
	uint8_t type; /* DT_… */
	char name[];
};

/* The next batch, of a directory that has been read up to `place`. Its length in bytes, 0 at the end, or -errno. */
ssize_t entries_read(int fd, int64_t place, void *bytes, size_t size);
/* Goes on at `place` (0: the beginning). What had to be read for that and lies behind it is given in `bytes`: its length, or -errno. */
ssize_t entries_seek(int fd, int64_t place, void *bytes, size_t size);
