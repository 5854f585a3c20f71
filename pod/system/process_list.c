#include <errno.h>
#include <stdlib.h>

#include "pod/system/process.h"

void process_list_free(struct process_list *list)
{
	free(list->v);
	*list = (struct process_list){0};
}

int process_list_add(struct process_list *list, const struct process *process)
{
	if ((list->n & (list->n - 1)) == 0) { /* a full power of two */
		struct process *grown = realloc(list->v, (list->n ? 2 * list->n : 1) * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		list->v = grown;
	}
	list->v[list->n++] = *process;
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *left = a, *right = b;
	return (left->pid > right->pid) - (left->pid < right->pid);
}

void process_list_sort(struct process_list *list)
{
	if (!list->n)
		return;
	qsort(list->v, list->n, sizeof *list->v, by_pid);
	size_t kept = 1;
	for (size_t i = 1; i < list->n; i++)
		if (list->v[i].pid != list->v[kept - 1].pid)
			list->v[kept++] = list->v[i];
	list->n = kept;
}

const struct process *process_list_find(const struct process_list *list, pid_t pid)
{
	struct process key = {.pid = pid};
	return list->n ? bsearch(&key, list->v, list->n, sizeof *list->v, by_pid) : NULL;
}

bool process_unseen(int code)
{
	return code == -ESRCH || code == -ENOENT || code == -EACCES || code == -EPERM;
}
