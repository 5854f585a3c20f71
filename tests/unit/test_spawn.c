#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsops/deadline.h"
#include "pod/system/process.h"
#include "pod/system/spawn.h"

/* A glob of /proc/$$/fd would show the descriptor that it is read through. */
#define LIST_DESCRIPTORS "n=0; while [ $n -lt 64 ]; do [ ! -e /proc/$$/fd/$n ] || echo $n; n=$((n+1)); done"

static char dir[256];

static int make_dir(void **unused)
{
	(void)unused;
	(void)snprintf(dir, sizeof dir, "%s/spawn-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **unused)
{
	(void)unused;
	char command[300];
	(void)snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

static const char *file(const char *name, const void *bytes, size_t len, mode_t mode)
{
	static char path[512];
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

/* Runs a shell script with its output in a pipe; what it wrote. */
static void shell(struct spawn *request, const char *script, char out[2048], int *ret_status)
{
	int ends[2];
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	request->program = "/bin/sh";
	request->argv = argv;
	request->stdio[1] = ends[1];
	struct spawned spawned;
	struct err err = {0};
	if (spawn(request, &spawned, &err) < 0)
		fail_msg("%s", err.text);
	close(ends[1]);
	size_t len = 0;
	for (ssize_t n; len < 2047 && (n = read(ends[0], out + len, 2047 - len)) > 0;)
		len += (size_t)n;
	out[len] = 0;
	close(ends[0]);
	int status = request->daemon ? 0 : spawn_reap(spawned.pid);
	if (ret_status)
		*ret_status = status;
	if (spawned.pidfd >= 0)
		close(spawned.pidfd);
}

static int failed(const char *program, struct err *err)
{
	char *argv[] = {(char *)"x", NULL};
	struct spawn request = SPAWN_DEFAULT;
	struct spawned spawned;
	request.program = program;
	request.argv = argv;
	*err = (struct err){0};
	int r = spawn(&request, &spawned, err);
	int left = (int)waitpid(-1, NULL, WNOHANG);
	assert_true(left < 0 && errno == ECHILD); /* no child is left of a failed start */
	return r;
}

static void X25_the_cause_is_named(void **unused)
{
	(void)unused;
	struct err err;
	Elf64_Ehdr foreign = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_EXEC,
			      .e_machine = EM_S390, .e_version = EV_CURRENT, .e_ehsize = sizeof foreign};
	assert_int_equal(failed("/nowhere/at/all", &err), -ENOENT);
	assert_non_null(strstr(err.text, "no such file"));
	assert_int_equal(failed(file("interpreter", "#! /nowhere/sh -e\n", 18, 0755), &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/sh is missing"));
	assert_int_equal(failed(file("dos", "#!/bin/sh\r\n", 11, 0755), &err), -ENOENT);
	assert_non_null(strstr(err.text, "carriage return"));
	assert_int_equal(failed(file("plain", "#!/bin/sh\n", 10, 0644), &err), -EACCES);
	assert_non_null(strstr(err.text, "not executable"));
	assert_int_equal(failed(dir, &err), -EACCES);
	assert_non_null(strstr(err.text, "is a directory"));
	assert_int_equal(failed(file("foreign", &foreign, sizeof foreign, 0755), &err), -ENOEXEC);
	assert_non_null(strstr(err.text, "another architecture"));
	assert_int_equal(failed(file("text", "hello\n", 6, 0755), &err), -ENOEXEC);
	assert_non_null(strstr(err.text, "neither a program nor a script"));
	assert_int_equal(failed(file("empty", "", 0, 0755), &err), -ENOEXEC);
	assert_non_null(strstr(err.text, "empty file"));
	assert_string_equal(err.stage, "exec");
	char link[512];
	(void)snprintf(link, sizeof link, "%s/dangling", dir);
	assert_int_equal(symlink("nothing", link), 0);
	assert_int_equal(failed(link, &err), -ENOENT);
	assert_non_null(strstr(err.text, "link to nothing"));
}

static void a_directory_that_is_not_there_is_named(void **unused)
{
	(void)unused;
	struct spawn request = SPAWN_DEFAULT;
	struct spawned spawned;
	struct err err = {0};
	char *argv[] = {(char *)"true", NULL};
	request.program = "/bin/true";
	request.argv = argv;
	request.cwd = "/nowhere";
	assert_int_equal(spawn(&request, &spawned, &err), -ENOENT);
	assert_string_equal(err.stage, "directory");
	assert_string_equal(err.subject, "/nowhere");
}

static void X42_only_what_was_asked_for_is_inherited(void **unused)
{
	(void)unused;
	char out[2048];
	struct spawn request = SPAWN_DEFAULT;
	int leak = open("/dev/null", O_RDONLY); /* without close-on-exec, as careless libraries do */
	int keep = fcntl(leak, F_DUPFD_CLOEXEC, 20);
	request.keep = &keep;
	request.keep_count = 1;
	shell(&request, LIST_DESCRIPTORS, out, NULL);
	char expected[64];
	(void)snprintf(expected, sizeof expected, "0\n1\n2\n%d\n", keep);
	assert_string_equal(out, expected);
	close(leak);
	close(keep);
	int low = 1;
	request.keep = &low;
	struct spawned spawned;
	assert_int_equal(spawn(&request, &spawned, NULL), -EINVAL);
}

static void X62_the_child_has_default_signals(void **unused)
{
	(void)unused;
	char out[2048];
	struct spawn request = SPAWN_DEFAULT;
	sigset_t all, before;
	int status = -1;
	(void)signal(SIGCHLD, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGRTMIN + 1, SIG_IGN);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	shell(&request, "grep -E 'SigBlk|SigIgn' /proc/self/status", out, &status);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGRTMIN + 1, SIG_DFL);
	assert_string_equal(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	assert_int_equal(status, -ECHILD); /* the kernel gave it away, and the wait ended all the same */
	shell(&request, "exit 7", out, &status);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* Every combination of closed standard descriptors of the caller. */
static void X61_closed_standard_descriptors(void **unused)
{
	(void)unused;
	for (int closed = 0; closed < 8; closed++) {
		(void)fflush(NULL);
		pid_t pid = fork();
		if (pid == 0) {
			char out_path[512];
			(void)snprintf(out_path, sizeof out_path, "%s/out%d", dir, closed);
			int out = open(out_path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
			out = fcntl(out, F_DUPFD_CLOEXEC, 10);
			for (int fd = 0; fd < 3; fd++)
				if (closed & (1 << fd))
					close(fd);
			char *argv[] = {(char *)"sh", (char *)"-c", (char *)LIST_DESCRIPTORS "; readlink /proc/$$/fd/0", NULL};
			struct spawn request = SPAWN_DEFAULT;
			struct spawned spawned;
			request.program = "/bin/sh";
			request.argv = argv;
			request.stdio[1] = out;
			int r = spawn(&request, &spawned, NULL);
			_exit(r < 0 ? 1 : spawn_reap(spawned.pid) != 0 ? 2 : spawned.pidfd < 0 ? 3 : 0);
		}
		int status = -1;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		char path[512], text[256];
		(void)snprintf(path, sizeof path, "%s/out%d", dir, closed);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof text - 1);
		close(fd);
		text[n > 0 ? n : 0] = 0;
		assert_string_equal(text, "0\n1\n2\n/dev/null\n");
	}
}

/* Standard descriptors that are each other's targets. */
static void stdio_may_be_given_in_any_order(void **unused)
{
	(void)unused;
	(void)fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		char path[512];
		(void)snprintf(path, sizeof path, "%s/swapped", dir);
		int out = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		(void)dup2(out, 0);
		(void)dup2(null, 1);
		(void)dup2(null, 2);
		char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo one; echo two >&2; cat", NULL};
		struct spawn request = SPAWN_DEFAULT;
		struct spawned spawned;
		request.program = "/bin/sh";
		request.argv = argv;
		request.stdio[0] = 1;
		request.stdio[1] = request.stdio[2] = 0;
		_exit(spawn(&request, &spawned, NULL) < 0 || spawn_reap(spawned.pid) != 0);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	char path[512], text[64] = "";
	(void)snprintf(path, sizeof path, "%s/swapped", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof text - 1), 8);
	close(fd);
	assert_string_equal(text, "one\ntwo\n");
}

static void sessions_and_directories(void **unused)
{
	(void)unused;
	char out[2048];
	struct spawn request = SPAWN_DEFAULT;
	const char *script = "set -- $(cat /proc/$$/stat); echo $([ $5 = $$ ] && echo group) $([ $6 = $$ ] && echo session); pwd";
	request.cwd = "/";
	shell(&request, script, out, NULL);
	assert_string_equal(out, "\n/\n");
	request.session = SPAWN_GROUP;
	shell(&request, script, out, NULL);
	assert_string_equal(out, "group\n/\n");
	request.session = SPAWN_SESSION;
	request.cwd = NULL;
	request.cwd_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	shell(&request, script, out, NULL);
	assert_string_equal(out, "group session\n/proc\n");
	close(request.cwd_fd);
}

static void a_daemon_is_no_child(void **unused)
{
	(void)unused;
	char out[2048];
	struct spawn request = SPAWN_DEFAULT;
	request.daemon = true;
	shell(&request, "set -- $(cat /proc/$$/stat); echo $4 $([ $6 = $$ ] && echo leads)", out, NULL);
	assert_true(atoi(out) > 0);
	assert_int_not_equal(atoi(out), getpid());
	assert_null(strstr(out, "leads"));
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void the_environment_is_the_one_that_was_given(void **unused)
{
	(void)unused;
	char out[2048];
	char *envp[] = {(char *)"ONLY=this", NULL};
	struct spawn request = SPAWN_DEFAULT;
	request.envp = envp;
	shell(&request, "cat /proc/$$/environ | tr '\\0' ' '", out, NULL);
	assert_string_equal(out, "ONLY=this ");
}

static void a_tied_child_ends_with_its_parent(void **unused)
{
	(void)unused;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)fflush(NULL);
	pid_t parent = fork();
	if (parent == 0) {
		char *argv[] = {(char *)"sleep", (char *)"1000", NULL};
		struct spawn request = SPAWN_DEFAULT;
		struct spawned spawned = {0};
		request.program = "/bin/sleep";
		request.argv = argv;
		request.stdio[1] = ends[1];
		request.death_signal = SIGKILL;
		_exit(spawn(&request, &spawned, NULL) < 0);
	}
	close(ends[1]);
	int status = -1;
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_int_equal(status, 0);
	struct pollfd gone = {.fd = ends[0], .events = POLLIN};
	assert_int_equal(poll(&gone, 1, 10000), 1); /* its end of the pipe is closed */
	assert_true(gone.revents & POLLHUP);
	close(ends[0]);
}

/* Whatever the kernel makes of a group that was killed once: never a success without a program that runs. */
static void a_group_that_was_killed(void **unused)
{
	(void)unused;
	char mount[512], path[700];
	if (cgroup2_mount(mount, sizeof mount, NULL) < 0 || access(mount, W_OK) < 0) {
		assert_int_not_equal(geteuid(), 0); /* only a plain user may lack one */
		return;
	}
	(void)snprintf(path, sizeof path, "%s/spawn-%d", mount, (int)getpid());
	assert_int_equal(mkdir(path, 0755), 0);
	char *argv[] = {(char *)"sleep", (char *)"1000", NULL};
	struct spawn request = SPAWN_DEFAULT;
	struct spawned spawned = {.pidfd = -1};
	request.program = "/bin/sleep";
	request.argv = argv;
	request.cgroup_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(spawn(&request, &spawned, NULL), 0);
	assert_true(spawned.in_cgroup);
	assert_int_equal(cgroup_write(path, "cgroup.kill", "1"), 0);
	assert_int_equal(spawn_reap(spawned.pid), SIGKILL);
	close(spawned.pidfd);
	int r = spawn(&request, &spawned, NULL);
	if (r == 0) {
		assert_int_equal(waitpid(spawned.pid, NULL, WNOHANG), 0);
		assert_int_equal(kill(spawned.pid, SIGKILL), 0);
		assert_int_equal(spawn_reap(spawned.pid), SIGKILL);
		close(spawned.pidfd);
	} else {
		assert_int_equal(r, -ECHILD);
	}
	close(request.cgroup_fd);
	struct deadline until = deadline_in_ms(5000);
	struct backoff backoff = {0};
	while (rmdir(path) < 0 && !deadline_passed(until))
		backoff_sleep(&backoff, until);
	assert_int_equal(access(path, F_OK), -1);
}

static void no_descriptor_is_lost(void **unused)
{
	(void)unused;
	struct err err;
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(before);
	for (int i = 0; i < 20; i++)
		(void)failed("/nowhere", &err);
	int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X25_the_cause_is_named),
		cmocka_unit_test(a_directory_that_is_not_there_is_named),
		cmocka_unit_test(X42_only_what_was_asked_for_is_inherited),
		cmocka_unit_test(X62_the_child_has_default_signals),
		cmocka_unit_test(X61_closed_standard_descriptors),
		cmocka_unit_test(stdio_may_be_given_in_any_order),
		cmocka_unit_test(sessions_and_directories),
		cmocka_unit_test(a_daemon_is_no_child),
		cmocka_unit_test(the_environment_is_the_one_that_was_given),
		cmocka_unit_test(a_tied_child_ends_with_its_parent),
		cmocka_unit_test(a_group_that_was_killed),
		cmocka_unit_test(no_descriptor_is_lost),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
