/* Processes, from /proc, cgroup2 and pidfds. A pid number is nobody: it is only ever signalled through a pidfd whose start time was compared. proc(5), pidfd_open(2). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/facts.h"

struct process {
	pid_t pid, parent;
	uint64_t start; /* clock ticks since boot, field 22 of stat; 0: it exists and /proc hides it (hidepid) */
	char comm[64];  /* raw bytes; "" hidden */
	char state;     /* '?' hidden */
	long threads;
	bool ending;	/* the leader runs no code of its own any more, though it may still give back what it had (PF_EXITING) */
};
struct process_list {
	struct process *v;
	size_t n;
};
void process_list_free(struct process_list *list);
#define AUTO_PROCESSES __attribute__((cleanup(process_list_free)))
int process_list_add(struct process_list *list, const struct process *process); /* -ENOMEM */
void process_list_sort(struct process_list *list);                              /* by pid, each once */
const struct process *process_list_find(const struct process_list *list, pid_t pid); /* of a sorted list; NULL */

/* One process, by the pid of its leader. -ESRCH: nobody, or only a thread has this number. -EACCES: it exists and /proc hides it (hidepid).
 * -ENOSYS "needs /proc". A zombie is read like any other. The name is what stands before the last ')'. */
int process_read(pid_t pid, struct process *ret_process, struct err *err);
/* False for a zombie; true for one whose leader has ended while other threads run. */
bool process_is_live(const struct process *process);
/* Has every thread begun to end? Such a process does nothing any more, however long it still takes. By a directory of process_open. -ESRCH. */
int process_is_ending(int directory, bool *ret_ending);
/* Every live process that /proc shows, sorted; a process whose parent ended meanwhile is asked again. -ENOSYS "needs /proc". */
int process_scan(struct process_list *ret_list, struct err *err);
/* The /proc directory of exactly this process (start time compared), which stays its own when the number is given to another. An owned
 * O_PATH descriptor, or -ESRCH, -EACCES. */
int process_open(const struct process *process);
/* The same of the process that has the number now, a leader's, which is read on the way. */
int process_hold(pid_t pid, struct process *ret_process);
/* A whole file below such a directory, as it is when read: at most `max` bytes (-EFBIG), malloc'ed, NUL behind. Negative errno. */
int process_file(int directory, const char *name, size_t max, char **ret_bytes, size_t *ret_len);
/* The environment that it was started with: entries that end with NUL, malloc'ed, NUL behind. -ESRCH; -EACCES: closed to us. */
int process_environ(const struct process *process, char **ret_bytes, size_t *ret_len);
/* Of a look below /proc/<pid>: the process is gone, or what is asked is closed to us. After any other error nothing is known of it, and who
 * looks for somebody has not found out that there is nobody. */
bool process_unseen(int code);
/* Inode numbers of its open sockets; v is malloc'ed. -ESRCH; -EACCES: closed to us. */
struct process_sockets {
	uint64_t *v;
	size_t n;
};
int process_sockets_read(const struct process *process, struct process_sockets *ret_sockets);
/* Has it this one open? By such a directory. */
int process_has_socket(int directory, uint64_t inode, bool *ret_has);
int proc_required(struct err *err); /* 0, or -ENOSYS "needs /proc" */

/* SIGKILL (or another) to exactly this process: pidfd, start time compared, then pidfd_send_signal. -ESRCH when it is gone or reused,
 * when its start time is not known, and for pid 1. */
int process_signal(const struct process *process, int signal, struct err *err);

/* Every live process (zombies left out) of the group, sorted: members of the cgroup and its descendants, and the descendants of `tree`,
 * and with pod_id this user's processes whose environment carries that KIROCREW_POD_ID and a KIROCREW_POD_KEEPER (with `unkept`, with or without),
 * and no other KIROCREW_POD_NAME than pod_name, with their descendants.
 * A group that is gone is empty; "empty" is looked at twice. A member that /proc hides is listed with start 0. -ENOSYS "needs /proc";
 * -EINVAL when the cgroup is no cgroup, or the root of its hierarchy. */
int group_members(const struct unit_group *group, struct process_list *ret_list, struct err *err);
/* The same answer for one process, without a look at all the others: its ancestors are asked, as they are now. */
int group_has(const struct unit_group *group, pid_t pid, uint64_t start, bool *ret_has, struct err *err);
/* The cgroup and its descendants, in one walk. */
struct cgroup_view {
	uint64_t *ids; /* kernfs ids, for comparison with INET_DIAG_CGROUP_ID; none on a v1 hierarchy */
	size_t id_count;
	pid_t *pids; /* unsorted; 0 stands for one of a pid namespace that is not seen from here */
	size_t pid_count;
	int closed; /* negative errno: the members of one could not be read, and are missing */
};
void cgroup_view_free(struct cgroup_view *view);
/* Of the group; one that is gone, or has no cgroup, is empty. */
int group_view(const struct unit_group *group, struct cgroup_view *ret_view, struct err *err);
/* One of the view's processes that has the socket open: *ret_holder, pid 0 when there is none. -EACCES: none, but one could not be looked into. */
int group_socket_holder(const struct cgroup_view *view, uint64_t inode, struct process *ret_holder);
/* cgroup.kill where it can, else SIGSTOP to all, then SIGKILL through pidfds, until nothing is left or the deadline; survivors are named in
 * *ret_survivors (0 is returned then, too). A frozen cgroup is thawed. Ourselves are never signalled, but are named as a survivor. */
int group_kill(const struct unit_group *group, struct deadline until, struct process_list *ret_survivors, struct err *err);

/* Pids of the cgroup and its descendants, unsorted; 0 stands for one of a pid namespace that is not seen from here. malloc'ed. Gone: none. */
int cgroup_pids(const char *cgroup, pid_t **ret_pids, size_t *ret_count, struct err *err);
/* Writes one word to a control file of the cgroup ("cgroup.kill"). Negative errno; -ENOENT where the kernel has no such file. */
int cgroup_write(const char *cgroup, const char *file, const char *word);
/* Absolute directory where cgroup2 is mounted here, one that shows the whole hierarchy first; -ENOENT. */
int cgroup2_mount(char *out, size_t size, struct err *err);
/* cgroup2 path of a process below that mount ("/a/b"). -EXDEV: outside of what is mounted here. */
int cgroup2_of(pid_t pid, char *out, size_t size, struct err *err);
/* Absolute directory of a manager's control group ("/user.slice/…"): below cgroup2, else in the v1 hierarchy name=systemd of hybrid hosts.
 * -ENOENT in neither. */
int cgroup_directory(const char *control_group, char *out, size_t size, struct err *err);

/* One line of proc_pid_mountinfo(5), escapes undone; strings are borrowed from the list. */
struct mount {
	uint64_t id;
	dev_t dev;
	const char *root, *point, *type, *options; /* options: of the file system */
};
struct mount_list {
	struct mount *v;
	size_t n;
	char *text;
};
int mounts_read(int process_directory, struct mount_list *ret_list); /* negative errno */
void mount_list_free(struct mount_list *list);
#define AUTO_MOUNTS __attribute__((cleanup(mount_list_free)))
void unescape_octal(char *text); /* \040 → space, in place */

/* Processes of this user (of everybody for root; not ourselves) whose cwd, root, exe, an open file or a mapping is below the directory: by
 * /proc link text under every spelling that the home has in the process's mount namespace (and under `path`), and for directories by device
 * and inode of each ancestor. Deleted entries count. Skipped: what the kernel closes to us, that is other users' processes and those that
 * are not dumpable. Sockets and pipes in the home hold nothing. */
int process_holders(const struct pin *home, const char *path, struct process_list *ret_list, struct err *err);
/* Was this process started with KIROCREW_HOME naming that directory (by device and inode)? A process that is gone does not serve it. -EACCES: its
 * environment is closed to us. */
int process_serves_home(pid_t pid, const struct pin *home, bool *ret_serves, struct err *err);
/* Processes (not ourselves) that have the boot gate file open, by device and inode. No such file: none. */
int process_gate_holders(const struct pin *pods_dir, const char *gate_name, struct process_list *ret_list, struct err *err);
/* Does the process live, and run another file than this program (by device and inode of /proc/<pid>/exe)? One whose program may not be
 * looked at (proc(5): not dumpable) is not ours any more. */
int process_left_program(pid_t pid, const char *program, bool *ret_left, struct err *err);
