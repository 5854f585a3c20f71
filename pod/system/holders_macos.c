/* Who has the home or the boot gate open, from libproc. What the kernel closes to us is skipped. */
#include <errno.h>
#include <fcntl.h>
#include <libproc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/proc_info.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/process.h"

static bool below(const char *path, const char *top)
{
	size_t len = strlen(top);
	return len && strncmp(path, top, len) == 0 && (path[len] == '/' || !path[len]);
}

struct home_names {
	const char *given;
	char real[MAXPATHLEN]; /* as the kernel spells it; "" unknown */
};

static bool in_home(const struct home_names *home, const char *path)
{
	return below(path, home->given) || below(path, home->real);
}

static bool stands_in_home(pid_t pid, const struct home_names *home)
{
	struct proc_vnodepathinfo where;
	char program[PROC_PIDPATHINFO_MAXSIZE];
	if (proc_pidinfo(pid, PROC_PIDVNODEPATHINFO, 0, &where, sizeof where) == (int)sizeof where &&
	    (in_home(home, where.pvi_cdir.vip_path) || in_home(home, where.pvi_rdir.vip_path)))
		return true;
	return proc_pidpath(pid, program, sizeof program) > 0 && in_home(home, program);
}

/* Descriptors of files and directories; malloc'ed. */
static struct proc_fdinfo *files_of(pid_t pid, size_t *ret_count)
{
	*ret_count = 0;
	int bytes = proc_pidinfo(pid, PROC_PIDLISTFDS, 0, NULL, 0);
	struct proc_fdinfo *fds = bytes > 0 ? malloc((size_t)bytes) : NULL;
	bytes = fds ? proc_pidinfo(pid, PROC_PIDLISTFDS, 0, fds, bytes) : 0;
	for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof *fds; i++)
		if (fds[i].proc_fdtype == PROX_FDTYPE_VNODE)
			fds[(*ret_count)++] = fds[i];
	return fds;
}

static bool has_file_in_home(pid_t pid, const struct home_names *home)
{
	size_t count;
	AUTO_FREE struct proc_fdinfo *fds = files_of(pid, &count);
	for (size_t i = 0; i < count; i++) {
		struct vnode_fdinfowithpath info;
		if (proc_pidfdinfo(pid, fds[i].proc_fd, PROC_PIDFDVNODEPATHINFO, &info, sizeof info) == (int)sizeof info &&
		    in_home(home, info.pvip.vip_path))
			return true;
	}
	return false;
}

static bool has_file(pid_t pid, const struct stat *file)
{
	size_t count;
	AUTO_FREE struct proc_fdinfo *fds = files_of(pid, &count);
	for (size_t i = 0; i < count; i++) {
		struct vnode_fdinfo info;
		if (proc_pidfdinfo(pid, fds[i].proc_fd, PROC_PIDFDVNODEINFO, &info, sizeof info) == (int)sizeof info &&
		    info.pvi.vi_stat.vst_ino == file->st_ino && (dev_t)info.pvi.vi_stat.vst_dev == file->st_dev)
			return true;
	}
	return false;
}

int process_holders(const struct pin *home, const char *path, struct process_list *ret_list, struct err *err)
{
	AUTO_PROCESSES struct process_list all = {0}, list = {0};
	struct home_names names = {.given = path};
	if (fcntl(home->fd, F_GETPATH, names.real) < 0)
		return err_code(err, -errno, "holders", path);
	int r = process_scan(&all, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++) {
		pid_t pid = all.v[i].pid;
		if (pid != getpid() && (stands_in_home(pid, &names) || has_file_in_home(pid, &names)) && process_list_add(&list, &all.v[i]) < 0)
			return err_code(err, -ENOMEM, "holders", path);
	}
	*ret_list = list;
	list = (struct process_list){0};
	return 0;
}

int process_gate_holders(const struct pin *pods_dir, const char *gate_name, struct process_list *ret_list, struct err *err)
{
	AUTO_PROCESSES struct process_list all = {0}, list = {0};
	struct stat gate;
	int r = process_scan(&all, err);
	if (r < 0)
		return r;
	bool there = fstatat(pods_dir->fd, gate_name, &gate, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno != ENOENT)
		return err_code(err, -errno, "gate", gate_name);
	for (size_t i = 0; there && i < all.n; i++)
		if (all.v[i].pid != getpid() && has_file(all.v[i].pid, &gate) && process_list_add(&list, &all.v[i]) < 0)
			return err_code(err, -ENOMEM, "gate", gate_name);
	*ret_list = list;
	list = (struct process_list){0};
	return 0;
}
