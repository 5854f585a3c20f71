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

static int add_id(struct cgroup_view *view, uint64_t id)
{
	uint64_t *grown = realloc(view->ids, (view->id_count + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	view->ids = grown;
	view->ids[view->id_count++] = id;
	return 0;
}

static int add_pids(struct cgroup_view *view, char *text)
{
	size_t lines = 0;
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	pid_t *grown = lines ? realloc(view->pids, (view->pid_count + lines) * sizeof *grown) : NULL;
	if (!grown)
		return lines ? -ENOMEM : 0;
	view->pids = grown;
	for (char *line; (line = strsep(&text, "\n")) && *line;)
		view->pids[view->pid_count++] = (pid_t)strtol(line, NULL, 10);
	return 0;
}

static int read_members(int fd, struct cgroup_view *view)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = process_file(fd, "cgroup.procs", CGROUP_FILE_MAX, &text, &len);
	if (r == 0)
		return add_pids(view, text);
	if (r == -ENOMEM || r == -ENOENT || r == -ENODEV)
		return r;
	if (r != -EOPNOTSUPP) /* a threaded cgroup: its processes are listed by the domain above */
		view->closed = r;
	return 0;
}

static int list_children(int fd, const char *path, struct names *names)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = again < 0 ? NULL : fdopendir(again);
	if (!directory) {
		int code = -errno;
		close_quietly(again);
		return code;
	}
	int r = add_children(directory, path, names);
	(void)closedir(directory);
	return r;
}

/* With 64-bit inode numbers, which kernfs has on 64-bit kernels, the inode is the id. The link count counts subdirectories: to list the control files of
 * every leaf would cost the most of a look. It is read after the members, none of which can have gone into one that is not counted. */
static int view_one(int fd, const char *path, struct names *names, struct cgroup_view *view)
{
	struct stat st;
	int r = read_members(fd, view);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0)
		r = add_id(view, st.st_ino);
	if (r == 0 && st.st_nlink != 2)
		r = list_children(fd, path, names);
	return r == -ENOENT || r == -ENODEV ? 0 : r; /* one that was removed meanwhile has no members */
}

static int view_below(int top, const char *path, struct names *names, struct cgroup_view *view)
{
	AUTO_CLOSE int fd = openat(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENODEV ? 0 : -errno;
	return view_one(fd, path, names, view);
}

static int walk(int top, struct cgroup_view *view)
{
	CLEANUP(names_free) struct names names = {0};
	int r = view_one(top, ".", &names, view);
	for (size_t i = 0; r == 0 && i < names.n; i++)
		r = view_below(top, names.v[i], &names, view);
	return r;
}

void cgroup_view_free(struct cgroup_view *view)
{
	free(view->ids);
	free(view->pids);
	*view = (struct cgroup_view){0};
}

static int view_of(const char *cgroup, struct cgroup_view *ret_view, struct err *err)
{
	bool v2 = false;
	struct err why = {0};
	CLEANUP(cgroup_view_free) struct cgroup_view view = {0};
	AUTO_CLOSE int top = cgroup_open(cgroup, &v2, &why);
	int r = top == -ENOENT ? 0 : top < 0 ? top : walk(top, &view);
	if (r < 0)
		return top < 0 ? err_set(err, r, why.stage, why.subject, "%s", why.text) : err_code(err, r, "cgroup", cgroup);
	if (!v2)
		view.id_count = 0;
	*ret_view = view;
	view = (struct cgroup_view){0};
	return 0;
}

int group_view(const struct unit_group *group, struct cgroup_view *ret_view, struct err *err)
{
	if (*group->cgroup)
		return view_of(group->cgroup, ret_view, err);
	*ret_view = (struct cgroup_view){0};
	return 0;
}

int cgroup_pids(const char *cgroup, pid_t **ret_pids, size_t *ret_count, struct err *err)
{
	CLEANUP(cgroup_view_free) struct cgroup_view view = {0};
	int r = view_of(cgroup, &view, err);
	if (r == 0 && view.closed < 0)
		r = err_code(err, view.closed, "cgroup", cgroup);
	if (r < 0)
		return r;
	*ret_pids = TAKE_PTR(view.pids);
	*ret_count = view.pid_count;
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
