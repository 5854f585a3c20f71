/* The processes of a unit: the tree below a process, and who carries the pod's id in the environment it was started with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/process.h"

#define ANCESTORS_MAX 65536
#define LOOKS 2 /* a scan is no snapshot: "empty" is believed the second time */

static bool starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What the kernel does not show us is somebody else's. */
static bool carries_id(const struct process *process, const char *pod_id)
{
	AUTO_FREE char *environ_bytes = NULL;
	size_t len = 0;
	bool id = false, keeper = false;
	if (process_environ(process, &environ_bytes, &len) < 0)
		return false;
	for (const char *entry = environ_bytes; entry < environ_bytes + len; entry += strlen(entry) + 1) {
		id |= starts(entry, "KIROCREW_POD_ID=") && strcmp(entry + strlen("KIROCREW_POD_ID="), pod_id) == 0;
		keeper |= starts(entry, "KIROCREW_POD_KEEPER=");
	}
	return id && keeper;
}

static bool is_marked(const struct unit_group *group, const struct process *process)
{
	return *group->pod_id && process->pid != getpid() && process->pid != group->tree && carries_id(process, group->pod_id);
}

static bool is_child_of_tree(const struct unit_group *group, const struct process *process)
{
	return group->tree > 0 && process->parent == group->tree && process->pid != group->tree;
}

static bool descends(const struct unit_group *group, const struct process_list *all, const bool *carries, size_t index)
{
	const struct process *process = &all->v[index];
	for (size_t steps = 0; process && steps <= all->n; steps++) {
		if (carries[process - all->v] || is_child_of_tree(group, process))
			return true;
		process = process_list_find(all, process->parent);
	}
	return false;
}

static int look(const struct unit_group *group, struct process_list *list, struct err *err)
{
	AUTO_PROCESSES struct process_list all = {0};
	int r = process_scan(&all, err);
	if (r < 0)
		return r;
	AUTO_FREE bool *carries = calloc(all.n + 1, sizeof *carries);
	if (!carries)
		return err_code(err, -ENOMEM, "processes", NULL);
	for (size_t i = 0; i < all.n; i++)
		carries[i] = is_marked(group, &all.v[i]);
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].pid != group->tree && descends(group, &all, carries, i) && process_list_add(list, &all.v[i]) < 0)
			return err_code(err, -ENOMEM, "processes", NULL);
	return 0;
}

int group_members(const struct unit_group *group, struct process_list *ret_list, struct err *err)
{
	AUTO_PROCESSES struct process_list list = {0};
	int r = 0;
	for (int looks = 0; r == 0 && !list.n && looks < LOOKS && (group->tree > 0 || *group->pod_id); looks++)
		r = look(group, &list, err);
	if (r < 0)
		return r;
	*ret_list = list;
	list = (struct process_list){0};
	return 0;
}

int group_has(const struct unit_group *group, pid_t pid, uint64_t start, bool *ret_has, struct err *err)
{
	struct process at;
	(void)err;
	*ret_has = false;
	if (process_read(pid, &at, NULL) < 0 || at.start != start || !process_is_live(&at))
		return 0;
	for (unsigned steps = 0; !*ret_has && steps < ANCESTORS_MAX; steps++) {
		*ret_has = is_marked(group, &at) || is_child_of_tree(group, &at);
		if (at.parent <= 0 || process_read(at.parent, &at, NULL) < 0)
			break;
	}
	return 0;
}

/* There are no control groups. */
int group_socket_holder(const struct cgroup_view *view, uint64_t inode, struct process *ret_holder)
{
	(void)view, (void)inode;
	*ret_holder = (struct process){0};
	return 0;
}

void cgroup_view_free(struct cgroup_view *view)
{
	*view = (struct cgroup_view){0};
}

int group_view(const struct unit_group *group, struct cgroup_view *ret_view, struct err *err)
{
	(void)group, (void)err;
	*ret_view = (struct cgroup_view){0};
	return 0;
}

int cgroup_write(const char *cgroup, const char *file, const char *word)
{
	(void)cgroup, (void)file, (void)word;
	return -ENOENT;
}
