#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct call table[] = {
	{SYS_openat, "openat", {EMFILE, EACCES, EIO, ENOMEM, ELOOP, ESTALE, EINTR, ENOSPC}, false, 1, true},
	{SYS_openat2, "openat2", {EMFILE, EACCES, EIO, ENOMEM, ELOOP, ESTALE, EAGAIN}, false, 1, true},
	{SYS_open, "open", {EMFILE, EACCES, EIO, ENOMEM, EINTR}, false, 0, false},
	{SYS_mkdirat, "mkdirat", {ENOSPC, EACCES, EIO, EDQUOT, EROFS}, true, 1, true},
	{SYS_unlinkat, "unlinkat", {EIO, EACCES, EROFS, ENOMEM}, true, 1, true},
	{SYS_renameat, "renameat", {ENOSPC, EIO, EACCES, EDQUOT}, true, 1, true},
	{SYS_renameat2, "renameat2", {ENOSPC, EIO, EACCES, EDQUOT}, true, 1, true},
	{SYS_rename, "rename", {ENOSPC, EIO, EACCES}, true, 0, false},
	{SYS_linkat, "linkat", {ENOSPC, EIO, EACCES, EMLINK}, true, 1, true},
	{SYS_symlinkat, "symlinkat", {ENOSPC, EIO, EACCES}, true, 2, true},
	{SYS_unlink, "unlink", {EIO, EACCES}, true, 0, false},
	{SYS_mkdir, "mkdir", {ENOSPC, EACCES}, true, 0, false},
	{SYS_rmdir, "rmdir", {EIO, EACCES}, true, 0, false},
	{SYS_mknodat, "mknodat", {ENOSPC, EACCES}, true, 1, true},
	{SYS_fstat, "fstat", {EIO, ENOMEM, ESTALE}, false, 0, false},
	{SYS_newfstatat, "newfstatat", {EIO, ENOMEM, EACCES, ESTALE}, false, 1, true},
	{SYS_statx, "statx", {EIO, ENOMEM, EACCES, ESTALE}, false, 1, true},
	{SYS_fstatfs, "fstatfs", {EIO, ENOMEM, EINTR}, false, 0, false},
	{SYS_getdents64, "getdents64", {EIO, ENOMEM}, false, 0, false},
	{SYS_readlinkat, "readlinkat", {EIO, ENOMEM, EACCES}, false, 1, true},
	{SYS_readlink, "readlink", {EIO, ENOMEM, EACCES}, false, 0, false},
	{SYS_faccessat2, "faccessat2", {EACCES, EIO, ENOMEM}, false, 1, true},
	{SYS_faccessat, "faccessat", {EACCES, EIO, ENOMEM}, false, 1, true},
	{SYS_access, "access", {EACCES, EIO, ENOMEM}, false, 0, false},
	{SYS_read, "read", {EIO, EINTR, ENOMEM}, false, 0, false},
	{SYS_pread64, "pread64", {EIO, EINTR}, false, 0, false},
	{SYS_write, "write", {ENOSPC, EIO, EINTR, EDQUOT}, true, 0, false},
	{SYS_pwrite64, "pwrite64", {ENOSPC, EIO, EDQUOT}, true, 0, false},
	{SYS_writev, "writev", {ENOSPC, EIO}, true, 0, false},
	{SYS_copy_file_range, "copy_file_range", {ENOSPC, EIO, ENOMEM}, true, 0, false},
	{SYS_sendfile, "sendfile", {EIO, ENOMEM}, true, 0, false},
	{SYS_ftruncate, "ftruncate", {EIO, EINTR}, true, 0, false},
	{SYS_fallocate, "fallocate", {ENOSPC, EIO}, true, 0, false},
	{SYS_fsync, "fsync", {EIO, ENOSPC, EDQUOT}, false, 0, false},
	{SYS_fdatasync, "fdatasync", {EIO, ENOSPC}, false, 0, false},
	{SYS_fchmod, "fchmod", {EIO, EROFS}, true, 0, false},
	{SYS_fchmodat, "fchmodat", {EIO, EROFS, EACCES}, true, 1, true},
	{SYS_fchown, "fchown", {EIO, EROFS}, true, 0, false},
	{SYS_utimensat, "utimensat", {EACCES, EROFS}, true, 1, true},
	{SYS_chdir, "chdir", {EACCES, EIO, ENOMEM}, false, 0, false},
	{SYS_fchdir, "fchdir", {EACCES, EIO}, false, 0, false},
	{SYS_getcwd, "getcwd", {ENOMEM, EACCES}, false, 0, false},
	{SYS_flock, "flock", {EINTR, ENOLCK}, false, 0, false},
	{SYS_fcntl, "fcntl", {EMFILE}, false, 0, false},
	{SYS_dup2, "dup2", {EMFILE, EINTR}, false, 0, false},
	{SYS_dup3, "dup3", {EMFILE, EINTR}, false, 0, false},
	{SYS_pipe2, "pipe2", {EMFILE, ENFILE}, false, 0, false},
	{SYS_close_range, "close_range", {ENOMEM, EMFILE}, false, 0, false},
	{SYS_socket, "socket", {EMFILE, ENOMEM, ENOBUFS}, false, 0, false},
	{SYS_socketpair, "socketpair", {EMFILE, ENOMEM}, false, 0, false},
	{SYS_bind, "bind", {ENOMEM, EACCES, EROFS}, true, 0, false},
	{SYS_listen, "listen", {ENOBUFS}, true, 0, false},
	{SYS_connect, "connect", {ENOMEM, EACCES, EINTR}, false, 0, false},
	{SYS_accept4, "accept4", {EMFILE, EINTR, ENOMEM, ECONNABORTED}, false, 0, false},
	{SYS_sendto, "sendto", {ENOMEM, EINTR, ENOBUFS}, true, 0, false},
	{SYS_sendmsg, "sendmsg", {ENOMEM, EINTR, ENOBUFS}, true, 0, false},
	{SYS_recvfrom, "recvfrom", {ENOMEM, EINTR, ECONNRESET}, false, 0, false},
	{SYS_recvmsg, "recvmsg", {ENOMEM, EINTR}, false, 0, false},
	{SYS_getsockopt, "getsockopt", {ENOMEM}, false, 0, false},
	{SYS_setsockopt, "setsockopt", {ENOMEM}, false, 0, false},
	{SYS_poll, "poll", {EINTR, ENOMEM}, false, 0, false},
	{SYS_ppoll, "ppoll", {EINTR, ENOMEM}, false, 0, false},
	{SYS_epoll_create1, "epoll_create1", {EMFILE, ENOMEM}, false, 0, false},
	{SYS_epoll_ctl, "epoll_ctl", {ENOMEM, ENOSPC}, false, 0, false},
	{SYS_epoll_wait, "epoll_wait", {EINTR}, false, 0, false},
	{SYS_inotify_init1, "inotify_init1", {EMFILE, ENOMEM}, false, 0, false},
	{SYS_inotify_add_watch, "inotify_add_watch", {ENOSPC, ENOMEM}, false, 0, false},
	{SYS_signalfd4, "signalfd4", {EMFILE, ENOMEM}, false, 0, false},
	{SYS_timerfd_create, "timerfd_create", {EMFILE, ENOMEM}, false, 0, false},
	{SYS_eventfd2, "eventfd2", {EMFILE, ENOMEM}, false, 0, false},
	{SYS_memfd_create, "memfd_create", {EMFILE, ENOMEM}, false, 0, false},
	{SYS_clone, "clone", {EAGAIN, ENOMEM}, true, 0, false},
	{SYS_clone3, "clone3", {EAGAIN, ENOMEM}, true, 0, false},
	{SYS_fork, "fork", {EAGAIN, ENOMEM}, true, 0, false},
	{SYS_vfork, "vfork", {EAGAIN, ENOMEM}, true, 0, false},
	{SYS_execve, "execve", {ENOMEM, EIO, EACCES}, true, 0, false},
	{SYS_waitid, "waitid", {EINTR}, false, 0, false},
	{SYS_wait4, "wait4", {EINTR}, false, 0, false},
	{SYS_kill, "kill", {EPERM}, true, 0, false},
	{SYS_pidfd_open, "pidfd_open", {EMFILE, ENOMEM}, false, 0, false},
	{SYS_pidfd_send_signal, "pidfd_send_signal", {EPERM}, true, 0, false},
	{SYS_getrandom, "getrandom", {EINTR, ENOSYS}, false, 0, false},
	{SYS_prlimit64, "prlimit64", {EPERM}, false, 0, false},
	{SYS_prctl, "prctl", {EINVAL}, false, 0, false},
	{SYS_ioctl, "ioctl", {EIO, ENOMEM}, false, 0, false},
};
/* The paths of calls that take no directory are their first argument. */
static bool path_is_first(long number)
{
	return number == SYS_open || number == SYS_rename || number == SYS_unlink || number == SYS_mkdir || number == SYS_rmdir ||
	       number == SYS_readlink || number == SYS_access || number == SYS_chdir || number == SYS_execve;
}

const struct call *call_named(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(table); i++)
		if (strlen(table[i].name) == len && strncmp(table[i].name, name, len) == 0)
			return &table[i];
	return NULL;
}

int call_errno(const struct call *call, unsigned k)
{
	return k < CALL_ERRNOS ? call->errnos[k] : 0;
}

static const struct call *call_numbered(long number)
{
	for (size_t i = 0; i < COUNT(table); i++)
		if (table[i].number == number)
			return &table[i];
	return NULL;
}

static bool peek(pid_t pid, uint64_t address, void *into, size_t size)
{
	struct iovec here = {.iov_base = into, .iov_len = size}, there = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
	return process_vm_readv(pid, &here, 1, &there, 1, 0) > 0;
}

static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e || *text == '"' || *text == '\\')
			*text = '?';
}

static void peek_text(pid_t pid, uint64_t address, char *text, size_t size)
{
	memset(text, 0, size);
	if (!address)
		return;
	size_t to_page_end = 4096 - (size_t)(address & 4095);
	size_t first = to_page_end < size - 1 ? to_page_end : size - 1;
	if (peek(pid, address, text, first) && strnlen(text, first) == first && first < size - 1)
		(void)peek(pid, address + first, text + first, size - 1 - first);
	text[size - 1] = '\0';
	make_printable(text);
}

static void look_directory(pid_t pid, int fd, char *text, size_t size)
{
	char link[64];
	(void)snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/%d/cwd" : "/proc/%d/fd/%d", (int)pid, fd);
	ssize_t n = readlink(link, text, size - 1);
	text[n < 0 ? 0 : n] = '\0';
	make_printable(text);
}

/* Of fcntl only what makes a descriptor or a lock can fail; a child's own descriptors are sealed with prctl and prlimit in many places that ask only. */
static bool can_fail(long number, const uint64_t args[6])
{
	if (number == SYS_fcntl)
		return args[1] == F_DUPFD_CLOEXEC || args[1] == F_DUPFD || args[1] == F_OFD_SETLK || args[1] == F_OFD_GETLK || args[1] == F_SETLK;
	if (number == SYS_prctl)
		return args[0] == PR_SET_CHILD_SUBREAPER || args[0] == PR_SET_PDEATHSIG;
	if (number == SYS_prlimit64)
		return args[2] != 0;
	return true;
}

static bool makes_file(pid_t pid, long number, const uint64_t args[6])
{
	struct open_how how = {0};
	if (number == SYS_openat)
		return args[2] & O_CREAT;
	if (number == SYS_open)
		return args[1] & O_CREAT;
	return number == SYS_openat2 && peek(pid, args[2], &how, sizeof how) && (how.flags & O_CREAT);
}

bool call_look(pid_t pid, long number, const uint64_t args[6], struct call_made *ret_made)
{
	const struct call *call = call_numbered(number);
	if (!call || !can_fail(number, args))
		return false;
	struct call_made made = {.call = call, .changes = call->changes || makes_file(pid, number, args)};
	memcpy(made.args, args, sizeof made.args);
	if (call->path)
		peek_text(pid, args[call->path], made.path, sizeof made.path);
	else if (path_is_first(number))
		peek_text(pid, args[0], made.path, sizeof made.path);
	if (call->at)
		look_directory(pid, (int)args[call->path - 1], made.directory, sizeof made.directory);
	else
		look_directory(pid, (int)args[0], made.directory, path_is_first(number) ? 1 : sizeof made.directory);
	*ret_made = made;
	return true;
}

int call_filter_install(void)
{
	struct sock_filter filter[COUNT(table) + 3];
	size_t n = 0;
	_Static_assert(COUNT(table) < 250, "a jump is one byte long");
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < COUNT(table); i++)
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)table[i].number, (unsigned char)(COUNT(table) - i), 0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
	/* Without no_new_privs where it can be had: what the payload gains by setuid stays as it is. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
