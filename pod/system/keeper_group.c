#include "pod/system/keeper_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/records.h"

#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1U << 2)
#endif
#define STOP_ROUNDS 8
#define TREE_DEPTH 12
#define TREE_DIRECTORIES 8192

void keeper_cgroup_name(const char *prefix, const struct pod_name *name, const char *id, char out[KEEPER_CGROUP_NAME_MAX])
{
	(void)snprintf(out, KEEPER_CGROUP_NAME_MAX, "%s-%s-%.8s", prefix, name->text, *id ? id : "00000000");
}

static int join(char *out, size_t size, const char *a, const char *b, const char *c)
{
	int n = snprintf(out, size, "%s%s/%s", a, strcmp(b, "/") == 0 ? "" : b, c);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int below_own(const char *name, char *out, size_t size)
{
	char mount[512], own[512];
	int r = cgroup2_mount(mount, sizeof mount, NULL);
	if (r == 0)
		r = cgroup2_of(getpid(), own, sizeof own, NULL);
	return r < 0 ? r : join(out, size, mount, own, name);
}

struct search {
	const char *name;
	char *out;
	size_t size;
	unsigned left; /* directories that may still be opened */
};

static int search_below(int fd, const char *path, unsigned depth, struct search *s);

static int search_entry(int dir, const char *path, const char *entry, unsigned depth, struct search *s)
{
	char child[512];
	if (join(child, sizeof child, path, "/", entry) < 0)
		return -ENOENT;
	if (strcmp(entry, s->name) == 0) {
		(void)snprintf(s->out, s->size, "%s", child);
		return 0;
	}
	if (depth >= TREE_DEPTH)
		return -ENOENT;
	int fd = openat(dir, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return process_unseen(-errno) ? -ENOENT : -errno;
	return search_below(fd, child, depth + 1, s);
}

/* Takes fd over. */
static int search_below(int fd, const char *path, unsigned depth, struct search *s)
{
	DIR *dir = s->left > 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		int code = s->left > 0 && !process_unseen(-errno) ? -errno : -ENOENT;
		close_quietly(fd);
		return code;
	}
	s->left--;
	const struct dirent *entry;
	int r = -ENOENT, more = 0;
	while (r == -ENOENT && (more = listing_next(dir, &entry)) > 0)
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			r = search_entry(dirfd(dir), path, entry->d_name, depth, s);
	(void)closedir(dir);
	return r == -ENOENT && more < 0 && !process_unseen(more) && more != -ENODEV ? more : r;
}

int keeper_cgroup_find(const char *name, char *out, size_t size)
{
	char path[512], mount[512];
	struct stat st;
	if (below_own(name, path, sizeof path) == 0 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		(void)snprintf(out, size, "%s", path);
		return 0;
	}
	int r = cgroup2_mount(mount, sizeof mount, NULL);
	if (r < 0)
		return r == -ENOSYS ? -ENOENT : r; /* without /proc there is no way to ask; others say so */
	int fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return process_unseen(-errno) ? -ENOENT : -errno;
	struct search search = {.name = name, .out = out, .size = size, .left = TREE_DIRECTORIES};
	return search_below(fd, mount, 0, &search);
}

bool keeper_cgroup_plausible(const char *mount, const char *path, const char *name)
{
	size_t len = strlen(mount);
	const char *last = strrchr(path, '/');
	return len && strncmp(path, mount, len) == 0 && path[len] == '/' && !strstr(path, "/../") && last && strcmp(last + 1, name) == 0;
}

/* Children first; a group is removed like a directory although it shows files. Returns 0 when it is gone. */
static int remove_groups(int parent, const char *name, unsigned depth)
{
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	int code = -errno, fd = depth < TREE_DEPTH ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		close_quietly(fd);
		return code;
	}
	for (const struct dirent *entry; listing_next(dir, &entry) > 0;)
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			(void)remove_groups(dirfd(dir), entry->d_name, depth + 1);
	(void)closedir(dir);
	return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

static int open_to_enter(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0 ? -errno : take_fd(&fd);
}

int keeper_cgroup_make(const char *name, char *out, size_t size, int *ret_fd)
{
	char path[512];
	int r = below_own(name, path, sizeof path < size ? sizeof path : size);
	if (r < 0)
		return r;
	(void)remove_groups(AT_FDCWD, path, 0);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	int fd = open_to_enter(path);
	if (fd < 0) { /* nobody would know of it */
		(void)remove_groups(AT_FDCWD, path, 0);
		return fd;
	}
	(void)snprintf(out, size, "%s", path);
	*ret_fd = fd;
	return 0;
}

int keeper_cgroup_remove(const char *path, struct deadline until)
{
	struct backoff backoff = {0};
	int r;
	while ((r = remove_groups(AT_FDCWD, path, 0)) == -EBUSY && !deadline_passed(until))
		backoff_sleep(&backoff, until);
	return r;
}

void keeper_group_terminate(const struct unit_group *group)
{
	AUTO_PROCESSES struct process_list list = {0};
	if (*group->cgroup)
		(void)cgroup_write(group->cgroup, "cgroup.freeze", "0");
	if (group_members(group, &list, NULL) < 0)
		return;
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i].pid != getpid() && process_signal(&list.v[i], SIGTERM, NULL) == 0)
			(void)process_signal(&list.v[i], SIGCONT, NULL);
}

/* Stops all members, until a look finds none that still runs: from then on nothing is born. */
static void stop_forkers(const struct unit_group *group)
{
	for (int round = 0; round < STOP_ROUNDS; round++) {
		AUTO_PROCESSES struct process_list list = {0};
		bool running = false;
		if (group_members(group, &list, NULL) < 0)
			return;
		for (size_t i = 0; i < list.n; i++)
			if (list.v[i].state != 'T' && list.v[i].pid != getpid()) {
				(void)process_signal(&list.v[i], SIGSTOP, NULL);
				running = true;
			}
		if (!running)
			return;
	}
}

/* Atomic against fork and as quick for thousands as for one, which a look at each is not while they take all the processor time. The pidfd stands
 * for the group after its leader has ended, too. Linux 6.9. */
static void kill_process_group(int leader)
{
	if (leader >= 0)
		(void)syscall(SYS_pidfd_send_signal, leader, SIGKILL, NULL, PIDFD_SIGNAL_PROCESS_GROUP);
}

void keeper_group_kill_pass(const struct unit_group *group, int leader)
{
	AUTO_PROCESSES struct process_list list = {0};
	kill_process_group(leader);
	if (*group->cgroup)
		(void)cgroup_write(group->cgroup, "cgroup.kill", "1");
	stop_forkers(group);
	if (group_members(group, &list, NULL) < 0)
		return;
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i].pid != getpid())
			(void)process_signal(&list.v[i], SIGKILL, NULL);
}
