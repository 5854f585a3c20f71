/* Processes, from libproc. There is no pidfd: a process is signalled by its number a moment after its start time was compared. libproc.h,
 * sys/proc_info.h. */
#include "pod/system/process.h"

#include <errno.h>
#include <libproc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/proc_info.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "fsops/cleanup.h"

#define ZOMBIE 5 /* SZOMB of sys/proc.h */
#define ROOM_FOR_NEW 64

int proc_required(struct err *err)
{
	(void)err;
	return 0;
}

int process_read(pid_t pid, struct process *ret_process, struct err *err)
{
	struct proc_bsdinfo info;
	errno = 0;
	if (proc_pidinfo(pid, PROC_PIDTBSDINFO, 0, &info, sizeof info) != (int)sizeof info)
		return err_code(err, errno == EPERM ? -EACCES : -ESRCH, "process", NULL);
	struct process process = {
		.pid = pid,
		.parent = (pid_t)info.pbi_ppid,
		.start = info.pbi_start_tvsec * 1000000 + info.pbi_start_tvusec,
		.state = info.pbi_status == ZOMBIE ? 'Z' : 'R',
		.threads = 1,
	};
	(void)snprintf(process.comm, sizeof process.comm, "%.*s", (int)sizeof info.pbi_comm, info.pbi_comm);
	*ret_process = process;
	return 0;
}

bool process_is_live(const struct process *process)
{
	return process->state != 'Z';
}

static int add_live(struct process_list *list, pid_t pid)
{
	struct process process;
	if (pid <= 0 || process_read(pid, &process, NULL) < 0 || !process_is_live(&process))
		return 0;
	return process_list_add(list, &process);
}

int process_scan(struct process_list *ret_list, struct err *err)
{
	AUTO_PROCESSES struct process_list list = {0};
	int bytes = proc_listpids(PROC_ALL_PIDS, 0, NULL, 0);
	if (bytes <= 0)
		return err_code(err, -errno, "processes", NULL);
	size_t room = (size_t)bytes + ROOM_FOR_NEW * sizeof(pid_t);
	AUTO_FREE pid_t *pids = malloc(room);
	if (!pids)
		return err_code(err, -ENOMEM, "processes", NULL);
	bytes = proc_listpids(PROC_ALL_PIDS, 0, pids, (int)room);
	if (bytes <= 0)
		return err_code(err, -errno, "processes", NULL);
	for (size_t i = 0; i < (size_t)bytes / sizeof *pids; i++)
		if (add_live(&list, pids[i]) < 0)
			return err_code(err, -ENOMEM, "processes", NULL);
	process_list_sort(&list);
	*ret_list = list;
	list = (struct process_list){0};
	return 0;
}

/* Where the environment begins in what KERN_PROCARGS2 tells: the number of words, the path, NULs, the words, the environment. */
static size_t environ_offset(const char *block, size_t len)
{
	int words;
	memcpy(&words, block, sizeof words);
	size_t at = sizeof words + strlen(block + sizeof words);
	while (at < len && !block[at])
		at++;
	for (; words > 0 && at < len; words--)
		at += strlen(block + at) + 1;
	return at < len ? at : len;
}

static int args_read(pid_t pid, char **ret_block, size_t *ret_len)
{
	int max = 0, wanted[] = {CTL_KERN, KERN_ARGMAX}, name[] = {CTL_KERN, KERN_PROCARGS2, pid};
	size_t len = sizeof max;
	if (sysctl(wanted, 2, &max, &len, NULL, 0) < 0)
		return -errno;
	AUTO_FREE char *block = calloc((size_t)max + 1, 1);
	if (!block)
		return -ENOMEM;
	len = (size_t)max;
	if (sysctl(name, 3, block, &len, NULL, 0) < 0 || len < sizeof(int)) /* EINVAL for what is closed to us and for what has ended */
		return kill(pid, 0) < 0 && errno == ESRCH ? -ESRCH : -EACCES;
	*ret_block = TAKE_PTR(block);
	*ret_len = len;
	return 0;
}

int process_environ(const struct process *process, char **ret_bytes, size_t *ret_len)
{
	AUTO_FREE char *block = NULL;
	size_t len = 0;
	struct process now;
	int r = args_read(process->pid, &block, &len);
	if (r == 0)
		r = process_read(process->pid, &now, NULL);
	if (r < 0)
		return r;
	if (now.start != process->start)
		return -ESRCH;
	size_t at = environ_offset(block, len);
	memmove(block, block + at, len + 1 - at);
	*ret_bytes = TAKE_PTR(block);
	*ret_len = len - at;
	return 0;
}

int process_sockets_read(const struct process *process, struct process_sockets *ret_sockets)
{
	int bytes = proc_pidinfo(process->pid, PROC_PIDLISTFDS, 0, NULL, 0);
	if (bytes <= 0)
		return errno == EPERM ? -EACCES : -ESRCH;
	AUTO_FREE struct proc_fdinfo *fds = malloc((size_t)bytes);
	AUTO_FREE uint64_t *found = malloc((size_t)bytes / sizeof *fds * sizeof *found + sizeof *found);
	if (!fds || !found)
		return -ENOMEM;
	bytes = proc_pidinfo(process->pid, PROC_PIDLISTFDS, 0, fds, bytes);
	size_t n = 0;
	for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof *fds; i++) {
		struct socket_fdinfo info;
		if (fds[i].proc_fdtype == PROX_FDTYPE_SOCKET &&
		    proc_pidfdinfo(process->pid, fds[i].proc_fd, PROC_PIDFDSOCKETINFO, &info, sizeof info) == (int)sizeof info)
			found[n++] = info.psi.soi_so;
	}
	struct process now;
	if (process_read(process->pid, &now, NULL) < 0 || now.start != process->start)
		return -ESRCH;
	*ret_sockets = (struct process_sockets){.v = TAKE_PTR(found), .n = n};
	return 0;
}

int process_signal(const struct process *process, int signal, struct err *err)
{
	struct process now;
	int r = process->start && process->pid > 1 ? process_read(process->pid, &now, NULL) : -ESRCH;
	if (r == 0 && now.start != process->start)
		r = -ESRCH;
	if (r == 0 && kill(process->pid, signal) < 0)
		r = -errno;
	return r < 0 ? err_code(err, r, "signal", NULL) : 0;
}

int process_left_program(pid_t pid, const char *program, bool *ret_left, struct err *err)
{
	char path[PROC_PIDPATHINFO_MAXSIZE];
	struct stat ours, its;
	if (stat(program, &ours) < 0)
		return err_code(err, -errno, "program", program);
	if (proc_pidpath(pid, path, sizeof path) <= 0 || stat(path, &its) < 0)
		*ret_left = errno == EACCES || errno == EPERM;
	else
		*ret_left = its.st_dev != ours.st_dev || its.st_ino != ours.st_ino;
	return 0;
}
