#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/process.h"

#define CGROUP_ROOT_INO 1 /* kernfs numbers its root so */
#define CGROUP_FILE_MAX (16UL << 20)

/* -ENOENT when it is gone. The root of a hierarchy is everybody's, never a unit's. */
static int cgroup_open(const char *path, bool *ret_v2, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_code(err, -errno, "cgroup", path);
	struct statfs fs;
	struct statx st;
	if (fstatfs(fd, &fs) < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO, &st) < 0)
		return err_code(err, -errno, "cgroup", path);
	if (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC)
		return err_set(err, -EINVAL, "cgroup", path, "this directory is no control group");
	if (st.stx_ino == CGROUP_ROOT_INO || (st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return err_set(err, -EINVAL, "cgroup", path, "the root of a hierarchy is no unit's control group");
	*ret_v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
	return take_fd(&fd);
}

/* Paths relative to the top, "." first; grown while it is walked. */
struct names {
	char **v;
	size_t n;
};
static void names_free(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
}
static int names_add(struct names *names, const char *parent, const char *name)
{
	char **grown = realloc(names->v, (names->n + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	names->v = grown;
	char *joined = NULL;
	if (asprintf(&joined, "%s/%s", parent, name) < 0)
		return -ENOMEM;
	names->v[names->n++] = joined;
	return 0;
}

static int add_children(DIR *directory, const char *path, struct names *names)
{
	const struct dirent *entry;
	int r;
	while ((r = listing_next(directory, &entry)) > 0)
		if (entry->d_type == DT_DIR && (r = names_add(names, path, entry->d_name)) < 0)
			return r;
	return r == -ENOENT || r == -ENODEV ? 0 : r;
}

/* kernfs counts subdirectories in the link count; to list the control files of every leaf would cost the most of a look. */
static bool has_children(int fd)
{
	struct stat st;
	return fstat(fd, &st) < 0 || st.st_nlink != 2;
}

/* Visits one cgroup of the tree; its children are queued. One that was removed meanwhile has no members. */
static int walk_step(int top, const char *path, struct names *names, int (*visit)(int fd, void *found), void *found)
{
	int fd = openat(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENODEV ? 0 : -errno;
	int r = visit(fd, found);
	DIR *directory = r == 0 && has_children(fd) ? fdopendir(fd) : NULL;
	if (directory)
		r = add_children(directory, path, names);
	else if (r == 0 && has_children(fd))
		r = -ENOMEM;
	if (directory)
		(void)closedir(directory);
	else
		close_quietly(fd);
	return r == -ENOENT || r == -ENODEV ? 0 : r;
}

static int walk(int top, int (*visit)(int fd, void *found), void *found)
{
	CLEANUP(names_free) struct names names = {0};
	int r = names_add(&names, ".", ".");
	for (size_t i = 0; r == 0 && i < names.n; i++)
		r = walk_step(top, names.v[i], &names, visit, found);
	return r;
}

struct pids {
	pid_t *v;
	size_t n;
};
static int visit_pids(int fd, void *found)
{
	struct pids *pids = found;
	AUTO_FREE char *text = NULL;
	size_t len, lines = 0;
	int r = process_file(fd, "cgroup.procs", CGROUP_FILE_MAX, &text, &len);
	if (r == -EOPNOTSUPP) /* a threaded cgroup: its processes are listed by the domain above */
		return 0;
	if (r < 0)
		return r;
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	if (!lines)
		return 0;
	pid_t *grown = realloc(pids->v, (pids->n + lines) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	pids->v = grown;
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n")) && *line;)
		pids->v[pids->n++] = (pid_t)strtol(line, NULL, 10);
	return 0;
}

int cgroup_pids(const char *cgroup, pid_t **ret_pids, size_t *ret_count, struct err *err)
{
	bool v2;
	struct err why = {0};
	AUTO_CLOSE int top = cgroup_open(cgroup, &v2, &why);
	struct pids pids = {0};
	int r = top == -ENOENT ? 0 : top < 0 ? top : walk(top, visit_pids, &pids);
	if (r < 0) {
		free(pids.v);
		return top < 0 ? err_set(err, r, why.stage, why.subject, "%s", why.text) : err_code(err, r, "cgroup", cgroup);
	}
	*ret_pids = pids.v;
	*ret_count = pids.n;
	return 0;
}

struct ids {
	uint64_t *v;
	size_t n;
};
/* With 64-bit inode numbers, which kernfs has on 64-bit kernels, the inode is the id. */
static int visit_id(int fd, void *found)
{
	struct ids *ids = found;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	uint64_t *grown = realloc(ids->v, (ids->n + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	ids->v = grown;
	ids->v[ids->n++] = st.st_ino;
	return 0;
}

int group_cgroup_ids(const struct unit_group *group, uint64_t **ret_ids, size_t *ret_count, struct err *err)
{
	struct ids ids = {0};
	struct err why = {0};
	bool v2 = false;
	AUTO_CLOSE int top = *group->cgroup ? cgroup_open(group->cgroup, &v2, &why) : -ENOENT;
	int r = top == -ENOENT ? 0 : top < 0 ? top : v2 ? walk(top, visit_id, &ids) : 0;
	if (r < 0) {
		free(ids.v);
		return top < 0 ? err_set(err, r, why.stage, why.subject, "%s", why.text) : err_code(err, r, "cgroup", group->cgroup);
	}
	*ret_ids = ids.v;
	*ret_count = ids.n;
	return 0;
}

int cgroup_write(const char *cgroup, const char *file, const char *word)
{
	bool v2;
	AUTO_CLOSE int top = cgroup_open(cgroup, &v2, NULL);
	if (top < 0)
		return top;
	AUTO_CLOSE int fd = openat(top, file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, word, strlen(word)) < 0 ? -errno : 0;
}

/* One that cannot be asked is taken, and will say why when it is used. */
static bool shows(const char *path, long magic)
{
	struct statfs fs;
	if (statfs(path, &fs) < 0)
		return errno != ENOENT && errno != EACCES;
	return (long)fs.f_type == magic;
}

static bool has_option(const char *options, const char *word)
{
	size_t len = strlen(word);
	for (const char *at = options; (at = strstr(at, word)); at += len)
		if ((at == options || at[-1] == ',') && (at[len] == '\0' || at[len] == ','))
			return true;
	return false;
}

/* The best mount of a hierarchy: one with root "/" first, the later one (which covers an earlier) of equals. Borrowed, or NULL. */
static const struct mount *best_mount(const struct mount_list *mounts, const char *type, const char *option, long magic)
{
	const struct mount *best = NULL;
	for (size_t i = 0; i < mounts->n; i++) {
		const struct mount *mount = &mounts->v[i];
		if (strcmp(mount->type, type) || (option && !has_option(mount->options, option)) || !shows(mount->point, magic))
			continue;
		if (!best || !strcmp(mount->root, "/") || strcmp(best->root, "/"))
			best = mount;
	}
	return best;
}

static int own_mounts(struct mount_list *ret_mounts, struct err *err)
{
	int r = proc_required(err);
	if (r < 0)
		return r;
	AUTO_CLOSE int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = self < 0 ? -errno : mounts_read(self, ret_mounts);
	return r < 0 ? err_code(err, r, "mounts", "/proc/self/mountinfo") : 0;
}

static int put(char *out, size_t size, const char *first, const char *second, struct err *err)
{
	int n = snprintf(out, size, "%s%s", first, second);
	return n < 0 || (size_t)n >= size ? err_code(err, -ENAMETOOLONG, "cgroup", first) : 0;
}

int cgroup2_mount(char *out, size_t size, struct err *err)
{
	AUTO_MOUNTS struct mount_list mounts = {0};
	int r = own_mounts(&mounts, err);
	if (r < 0)
		return r;
	const struct mount *mount = best_mount(&mounts, "cgroup2", NULL, CGROUP2_SUPER_MAGIC);
	if (!mount)
		return err_set(err, -ENOENT, "cgroup", "cgroup2", "cgroup2 is not mounted");
	return put(out, size, mount->point, "", err);
}

/* The part of a hierarchy's path that is below what the mount shows; NULL: outside. */
static const char *below_mount(const struct mount *mount, const char *path)
{
	size_t len = strcmp(mount->root, "/") ? strlen(mount->root) : 0;
	if (strncmp(path, mount->root, len) || (path[len] != '/' && path[len] != '\0') || !strncmp(path, "/..", 3))
		return NULL;
	return path[len] ? path + len : "/";
}

static char *line_after(char *text, const char *prefix)
{
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (!strncmp(line, prefix, strlen(prefix)))
			return line + strlen(prefix);
	return NULL;
}

int cgroup2_of(pid_t pid, char *out, size_t size, struct err *err)
{
	AUTO_MOUNTS struct mount_list mounts = {0};
	struct process process;
	int r = own_mounts(&mounts, err);
	if (r == 0)
		r = process_read(pid, &process, err);
	if (r < 0)
		return r;
	const struct mount *mount = best_mount(&mounts, "cgroup2", NULL, CGROUP2_SUPER_MAGIC);
	if (!mount)
		return err_set(err, -ENOENT, "cgroup", "cgroup2", "cgroup2 is not mounted");
	AUTO_CLOSE int directory = process_open(&process);
	AUTO_FREE char *text = NULL;
	size_t len;
	r = directory < 0 ? directory : process_file(directory, "cgroup", CGROUP_FILE_MAX, &text, &len);
	if (r < 0)
		return err_code(err, r, "cgroup", process.comm);
	const char *path = line_after(text, "0::");
	const char *below = path ? below_mount(mount, path) : NULL;
	if (!below)
		return err_set(err, -EXDEV, "cgroup", path ? path : "",
			       "the control group is outside of the hierarchy that is mounted here");
	return put(out, size, below, "", err);
}

int cgroup_directory(const char *control_group, char *out, size_t size, struct err *err)
{
	AUTO_MOUNTS struct mount_list mounts = {0};
	int r = own_mounts(&mounts, err);
	if (r < 0)
		return r;
	if (*control_group != '/' || !control_group[1] || strstr(control_group, "/.."))
		return err_set(err, -EINVAL, "cgroup", control_group, "this is no control group of a unit");
	const struct mount *candidates[] = {
	    best_mount(&mounts, "cgroup2", NULL, CGROUP2_SUPER_MAGIC),
	    best_mount(&mounts, "cgroup", "name=systemd", CGROUP_SUPER_MAGIC),
	};
	for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
		const char *below = candidates[i] ? below_mount(candidates[i], control_group) : NULL;
		AUTO_FREE char *path = NULL;
		struct stat st;
		if (!below)
			continue;
		if (asprintf(&path, "%s%s", candidates[i]->point, below) < 0)
			return err_code(err, -ENOMEM, "cgroup", control_group);
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			return put(out, size, path, "", err);
		if (errno != ENOENT && errno != ENOTDIR)
			return err_code(err, -errno, "cgroup", path);
	}
	return err_set(err, -ENOENT, "cgroup", control_group, "there is no such control group");
}
