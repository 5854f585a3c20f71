#include "pod/system/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"

#define STAT_BYTES 1024
#define ENVIRON_MAX (8UL << 20)
#define PARENT_PASSES 3
#define EXITING 0x4 /* PF_EXITING: linux/sched.h of the kernel, field 9 of stat */

int proc_required(struct err *err)
{
	struct statfs fs;
	if (statfs("/proc", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
		return 0;
	return err_set(err, -ENOSYS, "processes", "/proc", "needs /proc, and it is not mounted");
}

/* The name may hold anything, ')' and newlines included; the numbers behind it cannot. */
static int parse_stat(char *text, struct process *ret_process)
{
	struct process process = {0};
	char *name = strchr(text, '('), *end = strrchr(text, ')');
	if (!name || !end || end < name)
		return -EBADMSG;
	size_t len = (size_t)(end - name) - 1;
	if (len >= sizeof process.comm)
		len = sizeof process.comm - 1;
	memcpy(process.comm, name + 1, len);
	process.pid = (pid_t)strtol(text, NULL, 10);
	unsigned flags;
	int fields = sscanf(end + 1, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %" SCNu64, &process.state,
			    &process.parent, &flags, &process.threads, &process.start);
	if (fields != 5)
		return -EBADMSG;
	process.ending = flags & EXITING;
	*ret_process = process;
	return 0;
}

static int read_stat(int at, const char *name, struct process *ret_process)
{
	char text[STAT_BYTES];
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, text, sizeof text - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return parse_stat(text, ret_process);
}

static int pidfd_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

static int pidfd_signal(int pidfd, int signal)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

static int nobody(pid_t pid, struct err *err)
{
	char subject[24];
	(void)snprintf(subject, sizeof subject, "%d", (int)pid);
	return err_set(err, -ESRCH, "process", subject, "there is no such process");
}

/* What a stat file that is not there means. */
static int not_shown(pid_t pid, int pidfd, int code, struct err *err)
{
	int r = proc_required(err);
	if (r < 0)
		return r;
	bool exists = code == -EPERM || code == -EACCES || (pidfd >= 0 && pidfd_signal(pidfd, 0) != -ESRCH);
	char subject[24];
	(void)snprintf(subject, sizeof subject, "%d", (int)pid);
	return exists ? err_set(err, -EACCES, "process", subject, "/proc hides this process (hidepid)") : nobody(pid, err);
}

int process_read(pid_t pid, struct process *ret_process, struct err *err)
{
	if (pid <= 0)
		return nobody(pid, err);
	/* /proc answers for the number of a thread, too; only a leader has a pidfd. */
	AUTO_CLOSE int pidfd = pidfd_of(pid);
	if (pidfd == -ESRCH || pidfd == -EINVAL || pidfd == -ENOENT)
		return nobody(pid, err);
	char name[40];
	(void)snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
	int r = read_stat(AT_FDCWD, name, ret_process);
	if (r == -ESRCH || r == -ENOENT || r == -EPERM || r == -EACCES)
		return not_shown(pid, pidfd, r, err);
	return r < 0 ? err_code(err, r, "process", name) : 0;
}

bool process_is_live(const struct process *process)
{
	return (process->state != 'Z' && process->state != 'X') || process->threads > 1;
}

int process_is_ending(int directory, bool *ret_ending)
{
	const struct dirent *entry;
	AUTO_CLOSE int fd = openat(directory, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *threads = fd < 0 ? NULL : fdopendir(fd);
	if (!threads)
		return errno == ENOENT ? -ESRCH : -errno;
	(void)take_fd(&fd);
	bool ending = true;
	int r = 0;
	while (r >= 0 && ending && (r = listing_next(threads, &entry)) > 0) {
		struct process thread = {0};
		char name[NAME_MAX + 8];
		(void)snprintf(name, sizeof name, "%s/stat", entry->d_name);
		int code = read_stat(dirfd(threads), name, &thread);
		bool gone = code == -ESRCH || code == -ENOENT;
		r = code < 0 && !gone ? code : 0;
		ending = gone || thread.ending;
	}
	(void)closedir(threads);
	if (r >= 0)
		*ret_ending = ending;
	return r < 0 ? r : 0;
}

int process_hold(pid_t pid, struct process *ret_process)
{
	char name[24];
	(void)snprintf(name, sizeof name, "/proc/%d", (int)pid);
	AUTO_CLOSE int fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int r = read_stat(fd, "stat", ret_process);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return take_fd(&fd);
}

int process_open(const struct process *process)
{
	struct process now;
	AUTO_CLOSE int fd = process_hold(process->pid, &now);
	return fd < 0 || now.start == process->start ? take_fd(&fd) : -ESRCH;
}

int process_file(int directory, const char *name, size_t max, char **ret_bytes, size_t *ret_len)
{
	AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	AUTO_FREE char *bytes = NULL;
	size_t len = 0, room = 0;
	for (;;) {
		if (room - len < 2) {
			room = room ? 2 * room : 4096;
			char *grown = realloc(bytes, room);
			if (!grown)
				return -ENOMEM;
			bytes = grown;
		}
		ssize_t n = read(fd, bytes + len, room - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	bytes[len] = '\0';
	*ret_bytes = TAKE_PTR(bytes);
	*ret_len = len;
	return 0;
}

int process_environ(const struct process *process, char **ret_bytes, size_t *ret_len)
{
	AUTO_CLOSE int directory = process_open(process);
	return directory < 0 ? directory : process_file(directory, "environ", ENVIRON_MAX, ret_bytes, ret_len);
}

/* A parent that ended between the two reads would cut its children off their tree. */
static void ask_again_for_parents(int proc, struct process_list *list)
{
	bool changed = true;
	for (int pass = 0; changed && pass < PARENT_PASSES; pass++) {
		changed = false;
		for (size_t i = 0; i < list->n; i++) {
			struct process *child = &list->v[i], now;
			if (!child->parent || process_list_find(list, child->parent))
				continue;
			char name[24];
			(void)snprintf(name, sizeof name, "%d/stat", (int)child->pid);
			if (read_stat(proc, name, &now) < 0 || now.start != child->start || now.parent == child->parent)
				continue;
			child->parent = now.parent;
			changed = true;
		}
	}
}

static int scan_into(DIR *proc, struct process_list *list)
{
	const struct dirent *entry;
	int more;
	while ((more = listing_next(proc, &entry)) > 0) {
		if (*entry->d_name < '1' || *entry->d_name > '9')
			continue;
		char name[sizeof entry->d_name + 8];
		(void)snprintf(name, sizeof name, "%s/stat", entry->d_name);
		struct process process;
		int r = read_stat(dirfd(proc), name, &process);
		if (process_unseen(r) || r == -EBADMSG)
			continue;
		if (r < 0)
			return r;
		if ((r = process_list_add(list, &process)) < 0)
			return r;
	}
	return more;
}

int process_scan(struct process_list *ret_list, struct err *err)
{
	int r = proc_required(err);
	if (r < 0)
		return r;
	AUTO_PROCESSES struct process_list list = {0}, live = {0};
	DIR *proc = opendir("/proc");
	if (!proc)
		return err_code(err, -errno, "processes", "/proc");
	r = scan_into(proc, &list);
	process_list_sort(&list);
	ask_again_for_parents(dirfd(proc), &list);
	(void)closedir(proc);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		if (process_is_live(&list.v[i]))
			r = process_list_add(&live, &list.v[i]);
	if (r < 0)
		return err_code(err, r, "processes", "/proc");
	*ret_list = live;
	live = (struct process_list){0};
	return 0;
}

int process_signal(const struct process *process, int signal, struct err *err)
{
	if (process->pid <= 1 || !process->start)
		return nobody(process->pid, err);
	AUTO_CLOSE int pidfd = pidfd_of(process->pid);
	if (pidfd == -ESRCH || pidfd == -EINVAL || pidfd == -ENOENT)
		return nobody(process->pid, err);
	char subject[24];
	(void)snprintf(subject, sizeof subject, "%d", (int)process->pid);
	if (pidfd < 0)
		return err_code(err, pidfd, "pidfd_open", subject);
	/* The pidfd came first: if the start time is the expected one now, it was the same process then. */
	struct process now;
	int r = process_read(process->pid, &now, err);
	if (r < 0)
		return r;
	if (now.start != process->start)
		return nobody(process->pid, err);
	r = pidfd_signal(pidfd, signal);
	return r < 0 ? err_code(err, r, "signal", subject) : 0;
}
