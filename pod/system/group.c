#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/process.h"

#define ENVIRON_MAX (8UL << 20)
#define CHILDREN_MAX (16UL << 20)
#define PARENT_PASSES 3
#define ANCESTORS_MAX 65536
#define LOOKS 2 /* a scan is no snapshot: "empty" is believed the second time */

static struct process hidden_process(pid_t pid)
{
	return (struct process){.pid = pid, .state = '?'};
}

static int add_pid(struct process_list *list, pid_t pid)
{
	struct process process = hidden_process(pid);
	if (pid > 0) {
		int r = process_read(pid, &process, NULL);
		if (r == -ESRCH || (r == 0 && !process_is_live(&process)))
			return 0;
		if (r == -EACCES)
			process = hidden_process(pid);
		else if (r < 0)
			return r;
	}
	return process_list_add(list, &process);
}

static int add_cgroup(const char *cgroup, struct process_list *list, struct err *err)
{
	AUTO_FREE pid_t *pids = NULL;
	size_t count;
	int r = cgroup_pids(cgroup, &pids, &count, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		if ((r = add_pid(list, pids[i])) < 0)
			return err_code(err, r, "cgroup", cgroup);
	return 0;
}

static bool starts(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool names_pod(const char *bytes, size_t len, const struct unit_group *group)
{
	bool id = false, keeper = group->unkept, another = false;
	for (const char *entry = bytes; entry < bytes + len; entry += strlen(entry) + 1) {
		id |= starts(entry, "KIROCREW_POD_ID=") && !strcmp(entry + strlen("KIROCREW_POD_ID="), group->pod_id);
		another |= *group->pod_name && starts(entry, "KIROCREW_POD_NAME=") && strcmp(entry + strlen("KIROCREW_POD_NAME="), group->pod_name) != 0;
		keeper |= starts(entry, "KIROCREW_POD_KEEPER=");
	}
	return id && keeper && !another;
}

/* An environment that the kernel does not show us is somebody else's. Nearly all do not carry the id: whose the number is now is asked only of
 * one that does. */
static int carries_id(const struct process *process, const struct unit_group *group, bool *ret_carries)
{
	char name[40];
	AUTO_FREE char *environ_bytes = NULL;
	size_t len;
	(void)snprintf(name, sizeof name, "/proc/%d/environ", (int)process->pid);
	int r = process_file(AT_FDCWD, name, ENVIRON_MAX, &environ_bytes, &len);
	if (r == 0 && names_pod(environ_bytes, len, group)) {
		AUTO_CLOSE int directory = process_open(process);
		*ret_carries = directory >= 0;
		r = directory < 0 ? directory : 0;
	}
	return process_unseen(r) ? 0 : r;
}

static int is_marked(const struct unit_group *group, const struct process *process, bool *ret_marked)
{
	if (!*group->pod_id || process->pid == getpid() || process->pid == group->tree)
		return 0;
	return carries_id(process, group, ret_marked);
}

/* By index in the scan: is it a member? Walks up to the tree's process or to one that carries the id. */
static bool descends(const struct process_list *all, const bool *carries, size_t index, pid_t tree)
{
	const struct process *process = &all->v[index];
	for (size_t steps = 0; steps <= all->n; steps++) {
		if (carries[process - all->v])
			return true;
		if (tree && process->parent == tree && process->pid != tree)
			return true;
		process = process_list_find(all, process->parent);
		if (!process)
			return false;
	}
	return false;
}

static pid_t live_tree(const struct unit_group *group)
{
	struct process tree;
	if (group->tree <= 0)
		return 0;
	if (group->tree_start && (process_read(group->tree, &tree, NULL) < 0 || tree.start != group->tree_start))
		return 0; /* the number is somebody else's now */
	return group->tree;
}

static int add_descendants(const struct unit_group *group, pid_t tree, struct process_list *list, struct err *err)
{
	AUTO_PROCESSES struct process_list all = {0};
	int r = process_scan(&all, err);
	if (r < 0)
		return r;
	AUTO_FREE bool *carries = calloc(all.n + 1, sizeof *carries);
	if (!carries)
		return err_code(err, -ENOMEM, "processes", NULL);
	for (size_t i = 0; i < all.n; i++)
		if ((r = is_marked(group, &all.v[i], &carries[i])) < 0)
			return err_code(err, r, "processes", "/proc");
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].pid != tree && descends(&all, carries, i, tree) && (r = process_list_add(list, &all.v[i])) < 0)
			return err_code(err, r, "processes", NULL);
	return 0;
}

/* The parent as it is now: one that ended meanwhile has left its child to another. -ESRCH: there is none. */
static int climb(struct process *at)
{
	for (int pass = 0; pass < PARENT_PASSES; pass++) {
		struct process parent, now;
		pid_t wanted = at->parent;
		int r = wanted > 0 ? process_read(wanted, &parent, NULL) : -ESRCH;
		if (r == 0 && parent.start <= at->start) {
			*at = parent;
			return 0;
		}
		if (r < 0 && !process_unseen(r))
			return r;
		r = process_read(at->pid, &now, NULL);
		if (r < 0 || now.start != at->start || now.parent == wanted)
			return r < 0 ? r : -ESRCH;
		at->parent = now.parent;
	}
	return -ESRCH;
}

static int in_cgroup(const char *cgroup, pid_t pid, bool *ret_in)
{
	AUTO_FREE pid_t *pids = NULL;
	size_t count = 0;
	int r = cgroup_pids(cgroup, &pids, &count, NULL);
	for (size_t i = 0; r == 0 && !*ret_in && i < count; i++)
		*ret_in = pids[i] == pid;
	return r;
}

static int holds_socket(pid_t pid, uint64_t inode, struct process *ret_process, bool *ret_holds)
{
	AUTO_CLOSE int directory = pid > 0 ? process_hold(pid, ret_process) : -EACCES;
	*ret_holds = false;
	if (directory < 0)
		return directory;
	return process_is_live(ret_process) ? process_has_socket(directory, inode, ret_holds) : -ESRCH;
}

int group_socket_holder(const struct cgroup_view *view, uint64_t inode, struct process *ret_holder)
{
	int closed = 0;
	*ret_holder = (struct process){0};
	for (size_t i = 0; i < view->pid_count; i++) {
		struct process process;
		bool found;
		int r = holds_socket(view->pids[i], inode, &process, &found);
		if (found) {
			*ret_holder = process;
			return 0;
		}
		if (r < 0 && !process_unseen(r))
			return r;
		closed = r == -EACCES || r == -EPERM ? -EACCES : closed;
	}
	return view->closed < 0 ? view->closed : closed;
}

static int has(const struct unit_group *group, pid_t pid, uint64_t start, bool *ret_has)
{
	struct process at;
	int r = process_read(pid, &at, NULL);
	if (r < 0 || at.start != start || !process_is_live(&at))
		return r;
	if (*group->cgroup)
		r = in_cgroup(group->cgroup, pid, ret_has);
	pid_t tree = live_tree(group);
	if (!tree && !*group->pod_id)
		return r;
	for (unsigned steps = 0; r == 0 && !*ret_has && steps < ANCESTORS_MAX; steps++) {
		r = is_marked(group, &at, ret_has);
		*ret_has |= tree && at.parent == tree && at.pid != tree;
		if (r == 0 && !*ret_has)
			r = climb(&at);
	}
	return r;
}

int group_has(const struct unit_group *group, pid_t pid, uint64_t start, bool *ret_has, struct err *err)
{
	bool found = false;
	int r = has(group, pid, start, &found);
	if (r < 0 && !process_unseen(r))
		return err_code(err, r, "processes", NULL);
	*ret_has = found;
	return 0;
}

/* With hidepid even process 1 is not there for others. */
static bool proc_hides(void)
{
	return access("/proc/1/stat", R_OK) < 0;
}

static int add_children_of_thread(int task, const char *thread, struct process_list *list)
{
	AUTO_FREE char *name = NULL, *text = NULL;
	size_t len;
	if (asprintf(&name, "%s/children", thread) < 0)
		return -ENOMEM;
	if (process_file(task, name, CHILDREN_MAX, &text, &len) < 0)
		return 0;
	int r = 0;
	char *rest = text;
	for (char *word; r == 0 && (word = strsep(&rest, " ")) && *word;) {
		struct process process;
		pid_t pid = (pid_t)strtol(word, NULL, 10);
		if (pid > 0 && process_read(pid, &process, NULL) == -EACCES)
			r = add_pid(list, pid);
	}
	return r;
}

/* Children that /proc hides still stand in their parent's list of children. */
static int add_hidden_children(pid_t parent, struct process_list *list)
{
	char path[40];
	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
	DIR *task = opendir(path);
	if (!task)
		return 0;
	const struct dirent *entry;
	int r = 0, more = 0;
	while (r == 0 && (more = listing_next(task, &entry)) > 0)
		r = add_children_of_thread(dirfd(task), entry->d_name, list);
	(void)closedir(task);
	return r < 0 || more == -ESRCH ? r : more;
}

static int add_hidden(pid_t tree, struct process_list *list, struct err *err)
{
	size_t seen = list->n;
	int r = tree ? add_hidden_children(tree, list) : 0;
	for (size_t i = 0; r == 0 && i < seen; i++)
		if (list->v[i].start)
			r = add_hidden_children(list->v[i].pid, list);
	return r < 0 ? err_code(err, r, "processes", NULL) : 0;
}

static int look(const struct unit_group *group, struct process_list *list, struct err *err)
{
	int r = *group->cgroup ? add_cgroup(group->cgroup, list, err) : 0;
	pid_t tree = live_tree(group);
	if (r == 0 && (tree || *group->pod_id))
		r = add_descendants(group, tree, list, err);
	if (r == 0 && tree && proc_hides())
		r = add_hidden(tree, list, err);
	process_list_sort(list);
	return r;
}

int group_members(const struct unit_group *group, struct process_list *ret_list, struct err *err)
{
	AUTO_PROCESSES struct process_list list = {0};
	int r = proc_required(err);
	for (int looks = 0; r == 0 && !list.n && looks < LOOKS; looks++)
		r = look(group, &list, err);
	if (r < 0)
		return r;
	*ret_list = list;
	list = (struct process_list){0};
	return 0;
}
