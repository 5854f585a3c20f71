/* The processes of a unit: the tree below a process, and who carries the pod's id in the environment it was started with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/process.h"

#define LOOKS 2 /* a scan is no snapshot: "empty" is believed the second time */

static bool starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* After argc come the path, NULs, argc words, then the environment. */
static bool block_carries(const char *block, size_t len, const char *pod_id)
{
	bool id = false, keeper = false;
	for (const char *entry = block + sizeof(int); entry < block + len; entry += strlen(entry) + 1) {
		id |= starts(entry, "KIROCREW_POD_ID=") && strcmp(entry + strlen("KIROCREW_POD_ID="), pod_id) == 0;
		keeper |= starts(entry, "KIROCREW_POD_KEEPER=");
	}
	return id && keeper;
}

/* What the kernel does not show us is somebody else's. KERN_PROCARGS2, sysctl(3). */
static bool carries_id(pid_t pid, const char *pod_id)
{
	int max = 0, wanted[] = {CTL_KERN, KERN_ARGMAX}, name[] = {CTL_KERN, KERN_PROCARGS2, pid};
	size_t len = sizeof max;
	if (sysctl(wanted, 2, &max, &len, NULL, 0) < 0 || max <= 0)
		return false;
	AUTO_FREE char *block = malloc((size_t)max + 1);
	len = (size_t)max;
	if (!block || sysctl(name, 3, block, &len, NULL, 0) < 0 || len < sizeof(int))
		return false;
	block[len] = '\0';
	return block_carries(block, len, pod_id);
}

static bool descends(const struct process_list *all, const bool *carries, size_t index, pid_t tree)
{
	const struct process *process = &all->v[index];
	for (size_t steps = 0; process && steps <= all->n; steps++) {
		if (carries[process - all->v] || (tree && process->parent == tree && process->pid != tree))
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
	for (size_t i = 0; *group->pod_id && i < all.n; i++)
		carries[i] = all.v[i].pid != getpid() && all.v[i].pid != group->tree && carries_id(all.v[i].pid, group->pod_id);
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].pid != group->tree && descends(&all, carries, i, group->tree) && process_list_add(list, &all.v[i]) < 0)
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

/* There are no control groups. */
int group_cgroup_ids(const struct unit_group *group, uint64_t **ret_ids, size_t *ret_count, struct err *err)
{
	(void)group, (void)err;
	*ret_ids = NULL;
	*ret_count = 0;
	return 0;
}

int cgroup_write(const char *cgroup, const char *file, const char *word)
{
	(void)cgroup, (void)file, (void)word;
	return -ENOENT;
}
