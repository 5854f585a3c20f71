/* escape HOME SCRATCH OUTSIDE_PID: tries every way that is known to write below HOME/run from inside a sandbox; prints the name of each that
 * worked, one a line. "carve-out" is the one that should. HOME/run/file is an existing file there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *home;

static const char *in(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *in(const char *root, const char *format, ...)
{
	static char ring[8][PATH_MAX];
	static unsigned turn;
	char *out = ring[turn++ % 8];
	int n = snprintf(out, PATH_MAX, "%s/", root);
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(out + n, (size_t)(PATH_MAX - n), format, arguments);
	va_end(arguments);
	return out;
}

static void tell(bool worked, const char *what)
{
	if (worked)
		(void)printf("%s\n", what);
	(void)fflush(stdout);
}

static bool can_create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	(void)close(fd);
	return true;
}
static bool can_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool worked = fd >= 0 && write(fd, "evil", 4) == 4;
	if (fd >= 0)
		(void)close(fd);
	return worked;
}
static bool run_is_open(void)
{
	return can_create(in(home, "run/evil")) || can_write(in(home, "run/file"));
}

static void plainly(void)
{
	tell(can_create(in(home, "run/new")), "create");
	tell(can_write(in(home, "run/file")), "write");
	tell(mkdir(in(home, "run/dir"), 0700) == 0, "mkdir");
	tell(chmod(in(home, "run/file"), 0777) == 0, "chmod");
	tell(truncate(in(home, "run/file"), 0) == 0, "truncate");
	tell(symlink("x", in(home, "run/link")) == 0, "symlink");
	tell(link(in(home, "run/file"), in(home, "hard")) == 0, "hard-link-out");
	tell(link("/etc/hostname", in(home, "run/hard")) == 0, "hard-link-in");
	tell(rename(in(home, "run/file"), in(home, "run/other")) == 0, "rename");
	tell(rename(in(home, "run/other"), in(home, "taken")) == 0, "rename-out");
	tell(unlink(in(home, "run/file")) == 0, "unlink");
	tell(rename(in(home, "run"), in(home, "run-away")) == 0, "move-run");
	char away[PATH_MAX];
	(void)snprintf(away, sizeof away, "%s-away", home);
	tell(rename(home, away) == 0, "move-home");
	tell(syscall(SYS_renameat2, AT_FDCWD, home, AT_FDCWD, away, 2) == 0, "exchange-home");
}

static void by_mounts(const char *how)
{
	char name[64];
	bool worked = mount(NULL, in(home, "run"), NULL, MS_REMOUNT | MS_BIND, NULL) == 0 && run_is_open();
	(void)snprintf(name, sizeof name, "%sremount", how);
	tell(worked, name);
	worked = umount2(in(home, "run"), MNT_DETACH) == 0 && run_is_open();
	(void)snprintf(name, sizeof name, "%sumount-run", how);
	tell(worked, name);
	worked = umount2(home, MNT_DETACH) == 0 && run_is_open();
	(void)snprintf(name, sizeof name, "%sumount-home", how);
	tell(worked, name);
	(void)mkdir(in(home, "alias"), 0700);
	worked = mount("/", in(home, "alias"), NULL, MS_BIND, NULL) == 0 && can_create(in(home, "alias%s/run/evil", home));
	worked |= mount("/", in(home, "alias"), NULL, MS_BIND | MS_REC, NULL) == 0 && can_create(in(home, "alias%s/run/evil", home));
	worked |= mount(home, in(home, "alias"), NULL, MS_BIND, NULL) == 0 && can_create(in(home, "alias/run/evil"));
	(void)snprintf(name, sizeof name, "%sbind", how);
	tell(worked, name);
	worked = mount(in(home, "run"), in(home, "alias"), NULL, MS_BIND, NULL) == 0 &&
		 (can_create(in(home, "alias/evil")) || (mount(NULL, in(home, "alias"), NULL, MS_REMOUNT | MS_BIND, NULL) == 0 && can_create(in(home, "alias/evil"))));
	(void)snprintf(name, sizeof name, "%sbind-run", how);
	tell(worked, name);
	worked = mount("none", "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0 && run_is_open();
	(void)snprintf(name, sizeof name, "%sremount-root", how);
	tell(worked, name);
}

static void write_map(const char *file, unsigned id)
{
	char map[32];
	(void)snprintf(map, sizeof map, "0 %u 1", id);
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = write(fd, map, strlen(map));
		(void)n;
		(void)close(fd);
	}
}
static void in_a_nested_user_namespace(void)
{
	unsigned uid = geteuid();
	pid_t child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
			write_map("/proc/self/uid_map", uid);
			(void)mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
			by_mounts("nested-");
		}
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
}

static void by_proc(const char *outside)
{
	char root[64], path[PATH_MAX];
	(void)snprintf(root, sizeof root, "/proc/%s/root", outside);
	(void)snprintf(path, sizeof path, "%s%s/run/evil", root, home);
	tell(can_create(path), "proc-outside");
	DIR *proc = opendir("/proc");
	for (struct dirent *e; proc && (e = readdir(proc));) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof path, "/proc/%.20s/root%s/run/evil", e->d_name, home);
		tell(can_create(path), "proc-root");
		(void)snprintf(path, sizeof path, "/proc/%.20s/ns/mnt", e->d_name);
		int ns = open(path, O_RDONLY | O_CLOEXEC);
		tell(ns >= 0 && setns(ns, CLONE_NEWNS) == 0 && run_is_open(), "setns");
		(void)close(ns);
	}
	if (proc)
		(void)closedir(proc);
}

static void by_descriptors(void)
{
	for (int fd = 3; fd < 4096; fd++) {
		struct stat st;
		if (fstat(fd, &st) == 0)
			tell(true, "descriptor");
	}
}

static void by_the_scratch(const char *scratch)
{
	tell(can_create(in(scratch, "mine")), "carve-out");
	char away[PATH_MAX];
	(void)snprintf(away, sizeof away, "%s-away", scratch);
	tell(rename(scratch, away) == 0, "move-scratch");
	tell(can_write(in(scratch, "../.owner")), "write-owner");
	tell(unlink(in(scratch, "../.owner")) == 0, "unlink-owner");
	tell(can_create(in(scratch, "../beside")), "beside-scratch");
	tell(can_create(in(scratch, "../../../above")), "above-scratch");
	if (symlink(in(home, "run"), in(scratch, "back")) < 0)
		(void)fprintf(stderr, "no link in the scratch\n");
	tell(can_create(in(scratch, "back/evil")), "link-back");
	tell(rename(in(scratch, "mine"), in(home, "run/mine")) == 0, "rename-in");
	tell(link(in(scratch, "mine"), in(home, "run/mine")) == 0, "link-in");
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	home = argv[1];
	by_descriptors();
	plainly();
	by_mounts("");
	in_a_nested_user_namespace();
	by_proc(argv[3]);
	by_the_scratch(argv[2]);
	tell(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1, "new-privileges");
	tell(chroot("/proc/1/root") == 0, "chroot");
	return 0;
}
