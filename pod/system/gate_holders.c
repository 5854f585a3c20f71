#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/process.h"

/* A descriptor on a file system that does not answer must not hold us up: what is cached is enough to tell who it is. */
static bool is_file(int at, const char *name, const struct stat *file)
{
	struct statx st;
	return statx(at, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &st) == 0 && st.stx_ino == file->st_ino &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == file->st_dev;
}

static int has_open(const struct process *process, const struct stat *file, bool *ret_has)
{
	AUTO_CLOSE int directory = process_open(process);
	int fd = directory < 0 ? directory : openat(directory, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return directory < 0 ? directory : -errno;
	DIR *fds = fdopendir(fd);
	if (!fds) {
		int code = -errno;
		close_quietly(fd);
		return code;
	}
	const struct dirent *entry;
	int r = 0;
	while (!*ret_has && (r = listing_next(fds, &entry)) > 0)
		*ret_has = is_file(fd, entry->d_name, file);
	(void)closedir(fds);
	return r < 0 ? r : 0;
}

int process_gate_holders(const struct pin *pods_dir, const char *gate_name, struct process_list *ret_list, struct err *err)
{
	AUTO_PROCESSES struct process_list all = {0}, list = {0};
	struct stat gate;
	int r = process_scan(&all, err);
	if (r < 0)
		return r;
	bool there = fstatat(pods_dir->fd, gate_name, &gate, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno != ENOENT)
		return err_code(err, -errno, "gate", gate_name);
	for (size_t i = 0; there && i < all.n; i++) {
		bool holds = false;
		r = all.v[i].pid == getpid() ? 0 : has_open(&all.v[i], &gate, &holds);
		r = r < 0 && !process_unseen(r) ? r : holds ? process_list_add(&list, &all.v[i]) : 0;
		if (r < 0)
			return err_code(err, r, "gate", gate_name);
	}
	*ret_list = list;
	list = (struct process_list){0};
	return 0;
}
