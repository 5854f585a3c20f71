#include "pod/model/worktree_list.h"

#include <stdio.h>
#include <string.h>

#define BRANCH "branch refs/heads/"
#define WORKTREE "worktree "

static bool starts(const char *attribute, const char *head)
{
	return strncmp(attribute, head, strlen(head)) == 0;
}

static bool is_called(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	return strcmp(slash ? slash + 1 : path, name) == 0;
}

static bool take(const char *path, char *out, size_t size)
{
	if (!path || *path != '/' || strlen(path) >= size)
		return false;
	(void)snprintf(out, size, "%s", path);
	return true;
}

/* Attributes end with a NUL, records with an empty attribute; the last must be whole. */
bool worktree_list_find(const char *output, size_t len, const char *name, char *out, size_t size)
{
	const char *path = NULL, *on_branch = NULL;
	for (const char *at = output, *end = output + len; at < end;) {
		const char *stop = memchr(at, '\0', (size_t)(end - at));
		if (!stop)
			break;
		if (starts(at, WORKTREE)) {
			path = at + strlen(WORKTREE);
			if (is_called(path, name))
				return take(path, out, size);
		} else if (path && !on_branch && starts(at, BRANCH) && strcmp(at + strlen(BRANCH), name) == 0) {
			on_branch = path;
		}
		at = stop + 1;
	}
	return take(on_branch, out, size);
}
