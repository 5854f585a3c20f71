/* Runs a command in a world where openat2(2) is not there (ENOSYS), as on kernels before 5.6 and below some container runtimes, and renameat2(2) does
 * not know RENAME_NOREPLACE (EINVAL), as on FUSE, NFS and 9p. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 4 * sizeof(uint64_t)), /* little endian: the flags */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RENAME_NOREPLACE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	if (argc < 2)
		return 2;
	/* Without no_new_privs where it can be had: setuid helpers that the tests start (fusermount3) keep working. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)) {
		perror("seccomp");
		return 1;
	}
	(void)execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
