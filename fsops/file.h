/* Whole small files below a pin: bounded, no-follow, never blocking, of a regular file only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fsops/err.h"
#include "fsops/pin.h"

/* *ret_bytes is malloc'ed, with a NUL behind the len bytes. -ENOENT; -ELOOP a link; -EINVAL not a regular file (named: FIFO,
 * socket, directory, device); -EFBIG more than max bytes. A FIFO is never waited for and a device never opened for reading. */
int file_read(const struct pin *at, const char *name, size_t max, char **ret_bytes, size_t *ret_len, struct err *err);

/* The same of a name that readdir(3) has just told to be a regular file: it is opened at once and judged afterwards. Only who puts a FIFO there
 * in between has it opened, which waits for nobody. */
int file_read_listed(const struct pin *at, const char *name, size_t max, char **ret_bytes, size_t *ret_len, struct err *err);

/* The same for an absolute path whose parent is resolved once. */
int file_read_path(const char *path, size_t max, char **ret_bytes, size_t *ret_len, struct err *err);

/* Create-only: -EEXIST leaves what is there alone. The mode holds from the first byte whatever the umask. Not synced.
 * A failed write takes the name away again. */
int file_create(const struct pin *at, const char *name, const void *bytes, size_t len, mode_t mode, struct err *err);

/* Old or new, never torn: unique temporary name, fsync, rename, fsync of the directory. A link at `name` is replaced, not followed;
 * a directory there is -EISDIR. The temporary name (".tmp-<16 hex>@<name>") is removed on failure. */
int file_replace(const struct pin *at, const char *name, const void *bytes, size_t len, mode_t mode, struct err *err);
/* The same without the last step, old or new still: after a power cut the new one may be lost until the names were synced. */
int file_replace_unsynced(const struct pin *at, const char *name, const void *bytes, size_t len, mode_t mode, struct err *err);
/* fsync of the directory, where its file system has that. */
int file_sync_names(const struct pin *at, struct err *err);
/* Is it the temporary name of a file_replace that was killed? */
bool file_is_temporary(const char *name);
/* Removes what killed file_replace calls of these names have left. The caller holds the lock under which they are written. */
int file_sweep(const struct pin *at, const char *const *names, size_t count, struct err *err);

/* unlink, no-follow; a name that is not there is success. -EISDIR for a directory. *ret_removed may be NULL. */
int file_remove(const struct pin *at, const char *name, bool *ret_removed, struct err *err);

/* write(2) until done; -errno. */
int write_all(int fd, const void *bytes, size_t len);
