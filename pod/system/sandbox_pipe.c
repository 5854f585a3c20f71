#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/process.h"
#include "pod/system/sandbox.h"

static bool is_below(const struct process_list *all, const struct process *process, pid_t root)
{
	for (size_t steps = 0; process && steps <= all->n; steps++) {
		if (process->parent == root)
			return true;
		process = process_list_find(all, process->parent);
	}
	return false;
}

/* Whoever cannot be looked at may hold it. */
static bool may_hold(const struct process *process, ino_t pipe)
{
	AUTO_CLOSE int directory = process_open(process);
	int fds = directory < 0 ? -1 : openat(directory, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fds < 0 ? NULL : fdopendir(fds);
	if (!list) {
		close_quietly(fds);
		return directory >= 0;
	}
	const struct dirent *entry;
	bool holds = false;
	int more = 0;
	while (!holds && (more = listing_next(list, &entry)) > 0) {
		struct stat st;
		holds = fstatat(dirfd(list), entry->d_name, &st, 0) == 0 && S_ISFIFO(st.st_mode) && st.st_ino == pipe;
	}
	(void)closedir(list);
	return holds || (more < 0 && more != -ENOENT && more != -ESRCH);
}

bool sandbox_holds_pipe(const struct sandbox *sandbox, ino_t pipe)
{
	AUTO_PROCESSES struct process_list all = {0};
	if (sandbox->kind != SANDBOX_BWRAP || process_scan(&all, NULL) < 0)
		return true;
	bool anybody = false;
	for (size_t i = 0; i < all.n; i++) {
		if (!is_below(&all, &all.v[i], sandbox->inner))
			continue;
		if (may_hold(&all.v[i], pipe))
			return true;
		anybody = true;
	}
	return !anybody; /* not started yet, or the end of the sandbox is near */
}
