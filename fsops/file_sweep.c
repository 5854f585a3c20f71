#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "fsops/listing.h"

static bool left_by(const char *entry, const char *name)
{
	const char *at = strchr(entry, '@');
	return file_is_temporary(entry) && at && strcmp(at + 1, name) == 0;
}

static int sweep_entry(const struct pin *at, const char *entry, const char *const *names, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (left_by(entry, names[i]))
			return file_remove(at, entry, NULL, err);
	return 0;
}

int file_sweep(const struct pin *at, const char *const *names, size_t count, struct err *err)
{
	int fd = openat(at->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		close_quietly(fd);
		return err_code(err, -errno, "sweep", NULL);
	}
	const struct dirent *entry;
	int r = 0, more;
	while (r == 0 && (more = listing_next(dir, &entry)) != 0)
		r = more < 0 ? err_code(err, more, "sweep", NULL) : sweep_entry(at, entry->d_name, names, count, err);
	(void)closedir(dir);
	return r;
}
