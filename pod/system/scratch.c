#include "pod/system/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "fsops/file.h"
#include "fsops/tree.h"
#include "pod/system/process.h"

#define PREFIX "probe-"
#define OWNERS_MAX 4
#define OWNER_BYTES_MAX 4096
#define NAME_TRIES 16

/* Held through its own open file description: a pin is shared with children, a lock must not be. */
static int lock_parent(const struct pin *parent, struct deadline until, int *ret_fd, struct err *err)
{
	AUTO_CLOSE int fd = openat(parent->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_code(err, -errno, "scratch", "mcp-tmp");
	struct backoff pause = {0};
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_code(err, -errno, "scratch", "mcp-tmp");
		if (deadline_passed(until))
			return err_set(err, -EWOULDBLOCK, "scratch", "mcp-tmp", "somebody else makes or sweeps temp directories for too long");
		backoff_sleep(&pause, until);
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

static int write_owners(const struct pin *dir, const struct scratch *scratch, struct err *err)
{
	return file_replace(dir, ".owner", scratch->owner_text, strlen(scratch->owner_text), 0600, err);
}

static int add_owner(struct scratch *scratch, pid_t pid, struct err *err)
{
	struct process process;
	if (scratch->owners == OWNERS_MAX)
		return err_set(err, -E2BIG, "scratch", scratch->name, "too many owners");
	int r = process_read(pid, &process, err);
	if (r < 0)
		return r;
	size_t len = strlen(scratch->owner_text);
	(void)snprintf(scratch->owner_text + len, sizeof scratch->owner_text - len, "%d %" PRIu64 "\n", (int)pid, process.start);
	scratch->owners++;
	return 0;
}

static int make_named(struct scratch *scratch, struct pin *ret_dir, struct err *err)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		uint32_t random;
		bool made = false;
		AUTO_PIN struct pin dir = PIN_NONE;
		if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
			return err_code(err, -errno, "scratch", "getrandom");
		(void)snprintf(scratch->name, sizeof scratch->name, PREFIX "%08" PRIx32, random);
		int r = pin_make_child(&scratch->parent, scratch->name, 0700, &made, &dir, err);
		if (r < 0)
			return r;
		if (made) {
			*ret_dir = pin_take(&dir);
			return 0;
		}
	}
	return err_set(err, -EEXIST, "scratch", "mcp-tmp", "no free name");
}

static void forget(struct scratch *scratch)
{
	pin_close(&scratch->tmp);
	pin_close(&scratch->parent);
	*scratch = SCRATCH_NONE;
}

static int make_in(struct scratch *scratch, const char *run_path, struct err *err)
{
	AUTO_PIN struct pin dir = PIN_NONE;
	int r = add_owner(scratch, getpid(), err);
	if (r == 0)
		r = make_named(scratch, &dir, err);
	if (r < 0)
		return r;
	int n = snprintf(scratch->path, sizeof scratch->path, "%s/mcp-tmp/%s/tmp", run_path, scratch->name);
	if (n < 0 || (size_t)n >= sizeof scratch->path || (size_t)n >= PLANE_PATH_MAX)
		r = err_set(err, -ENAMETOOLONG, "scratch", run_path, "the path of the temp directory would be too long");
	if (r == 0)
		r = write_owners(&dir, scratch, err);
	if (r == 0)
		r = pin_make_child(&dir, "tmp", 0700, NULL, &scratch->tmp, err);
	if (r < 0) {
		struct tree_left left;
		(void)tree_remove(&scratch->parent, scratch->name, deadline_in_ms(1000), &left, NULL);
	}
	return r;
}

int scratch_make(const struct pin *home, const char *run_path, struct deadline until, struct scratch *ret_scratch, struct err *err)
{
	struct scratch scratch = SCRATCH_NONE;
	AUTO_PIN struct pin run = PIN_NONE;
	AUTO_CLOSE int lock = -1;
	int r = pin_make_child(home, "run", 0700, NULL, &run, err);
	if (r == 0)
		r = pin_make_child(&run, "mcp-tmp", 0700, NULL, &scratch.parent, err);
	if (r == 0)
		r = lock_parent(&scratch.parent, until, &lock, err);
	if (r == 0)
		r = make_in(&scratch, run_path, err);
	if (r < 0) {
		forget(&scratch);
		return r;
	}
	*ret_scratch = scratch;
	return 0;
}

int scratch_own(struct scratch *scratch, pid_t leader, struct err *err)
{
	if (scratch->parent.fd < 0)
		return 0;
	AUTO_PIN struct pin dir = PIN_NONE;
	int r = pin_child(&scratch->parent, scratch->name, &dir, err);
	if (r == 0)
		r = add_owner(scratch, leader, err);
	return r < 0 ? r : write_owners(&dir, scratch, err);
}

int scratch_remove(struct scratch *scratch, struct deadline until, struct err *err)
{
	if (scratch->parent.fd < 0)
		return 0;
	struct tree_left left;
	pin_close(&scratch->tmp);
	int r = tree_remove(&scratch->parent, scratch->name, until, &left, err);
	if (r < 0)
		(void)err_prepend(err, "the temp directory %s is left", scratch->path);
	forget(scratch);
	return r;
}

void scratch_leave(struct scratch *scratch)
{
	forget(scratch);
}

/* A zombie is signalled like a member, and may stay for ever where nobody reaps it. */
static bool has_live_member(pid_t group)
{
	AUTO_PROCESSES struct process_list all = {0};
	if (process_scan(&all, NULL) < 0)
		return true;
	for (size_t i = 0; i < all.n; i++)
		if (getpgid(all.v[i].pid) == group)
			return true;
	return false;
}

/* A number that is not taken anew while a group bears it: so a leader that is gone leaves its group to be asked by number. */
static bool group_lives(pid_t leader, uint64_t start)
{
	struct process process;
	struct err why = {0};
	int r = process_read(leader, &process, &why);
	if (r == 0 && (process.start != start || process_is_live(&process)))
		return process.start == start;
	if (r < 0 && r != -ESRCH)
		return true;
	return (kill(-leader, 0) == 0 || errno == EPERM) && has_live_member(leader);
}

static bool is_owned(const struct pin *dir)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	struct err why = {0};
	int r = file_read(dir, ".owner", OWNER_BYTES_MAX, &text, &len, &why);
	if (r < 0) /* what is no plain file was not written by us, so nobody of ours lives there */
		return r != -ENOENT && r != -EFBIG && !pin_other_stands(dir, ".owner", S_IFREG);
	for (char *line = text; line && *line;) {
		int pid = 0;
		uint64_t start = 0;
		if (sscanf(line, "%d %" SCNu64, &pid, &start) == 2 && pid > 0 && group_lives(pid, start))
			return true;
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return false;
}

static int sweep_one(const struct pin *parent, const char *name, struct deadline until, size_t *removed, struct err *err)
{
	AUTO_PIN struct pin dir = PIN_NONE;
	struct tree_left left;
	struct err why = {0};
	int r = pin_child(parent, name, &dir, &why);
	if (r == 0 && is_owned(&dir))
		return 0;
	if (r < 0 && r != -ENOENT && !pin_other_stands(parent, name, S_IFDIR)) {
		(void)err_prepend(&why, "a temp directory cannot be looked at");
		if (err)
			*err = why;
		return r;
	}
	r = tree_remove(parent, name, until, &left, err);
	if (r == 0)
		(*removed)++;
	return r;
}

static int sweep_in(const struct pin *parent, struct deadline until, size_t *removed, struct err *err)
{
	int fd = openat(parent->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), first = 0;
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		int code = -errno;
		close_quietly(fd);
		return err_code(err, code, "scratch", "mcp-tmp");
	}
	const struct dirent *entry;
	int more;
	while ((more = listing_next(list, &entry)) > 0) {
		if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1))
			continue;
		int r = sweep_one(parent, entry->d_name, until, removed, first ? NULL : err);
		if (r < 0 && !first)
			first = r;
	}
	(void)closedir(list);
	return more < 0 && !first ? err_code(err, more, "scratch", "mcp-tmp") : first;
}

int scratch_sweep(const struct pin *home, struct deadline until, size_t *ret_removed, struct err *err)
{
	AUTO_PIN struct pin run = PIN_NONE, parent = PIN_NONE;
	AUTO_CLOSE int lock = -1;
	struct err why = {0};
	size_t removed = 0;
	int r = pin_child(home, "run", &run, &why);
	if (r == 0)
		r = pin_child(&run, "mcp-tmp", &parent, &why);
	if (r == -ENOENT) {
		r = 0;
	} else {
		if (r == 0)
			r = lock_parent(&parent, until, &lock, &why);
		if (r == 0)
			r = sweep_in(&parent, until, &removed, &why);
	}
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	if (ret_removed)
		*ret_removed = removed;
	return 0;
}
