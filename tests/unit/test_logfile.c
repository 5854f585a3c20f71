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

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "pod/system/logfile.h"

static struct plane plane;
static char directory[256];
static const struct pod_name name = {"demo"};

static int begin(void **state)
{
	(void)state;
	const char *temporary = getenv("TMPDIR");
	snprintf(directory, sizeof directory, "%s/logfile.XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(directory))
		return -1;
	snprintf(plane.artifacts, sizeof plane.artifacts, "%s/artifacts", directory);
	return 0;
}

static int end(void **state)
{
	(void)state;
	char command[300];
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	return system(command);
}

static const char *below(const char *file)
{
	static char path[PLANE_PATH_MAX + 64];
	snprintf(path, sizeof path, "%s/demo/%s", plane.artifacts, file);
	return path;
}

static void begin_with(const char *text)
{
	AUTO_CLOSE int fd = -1;
	assert_int_equal(logfile_begin(&plane, &name, &fd, NULL), 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

static void append(const char *text)
{
	AUTO_CLOSE int fd = -1;
	assert_int_equal(logfile_open(&plane, &name, &fd, NULL), 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

static int copy(unsigned lines, char *out, size_t size)
{
	char path[300];
	snprintf(path, sizeof path, "%s/out", directory);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r = logfile_copy(&plane, &name, lines, false, fd, NULL);
	ssize_t n = pread(fd, out, size - 1, 0);
	assert_true(n >= 0);
	out[n] = 0;
	return r;
}

static void forget(void)
{
	struct stat st;
	assert_int_equal(logfile_forget(&plane, &name, NULL), 0);
	assert_int_equal(lstat(below(""), &st), -1);
}

static void private_from_the_first_byte(void **unused)
{
	(void)unused;
	struct stat st;
	mode_t before = umask(0);
	append("a\n");
	umask(0777);
	append("b\n");
	umask(before);
	assert_int_equal(stat(below("pod.log"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(below(""), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	forget();
	forget();
}

static void tails(void **unused)
{
	(void)unused;
	char out[256];
	assert_int_equal(copy(3, out, sizeof out), -ENOENT);
	append("one\ntwo\n\nfour");
	static const struct {
		unsigned lines;
		const char *expected;
	} rows[] = {{0, ""}, {1, "four"}, {2, "\nfour"}, {3, "two\n\nfour"}, {4, "one\ntwo\n\nfour"}, {99, "one\ntwo\n\nfour"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(copy(rows[i].lines, out, sizeof out), 0);
		assert_string_equal(out, rows[i].expected);
	}
	append("\n");
	assert_int_equal(copy(1, out, sizeof out), 0);
	assert_string_equal(out, "four\n");
	forget();
}

static void a_tail_over_many_blocks(void **unused)
{
	(void)unused;
	AUTO_FREE char *text = malloc(400001), *out = malloc(500000);
	memset(text, 'x', 400000);
	text[400000] = 0;
	for (size_t i = 0; i < 4; i++)
		text[i * 100000 + 99999] = '\n';
	append(text);
	assert_int_equal(copy(3, out, 500000), 0);
	assert_int_equal(strlen(out), 300000);
	forget();
}

static void rotates_once_at_16_MiB(void **unused)
{
	(void)unused;
	struct stat st;
	append("old\n");
	assert_int_equal(truncate(below("pod.log"), LOGFILE_ROTATE_BYTES - 1), 0);
	begin_with("x");
	assert_int_equal(stat(below("pod.log.1"), &st), -1);
	append("");	/* who runs, and wrote all that, still has it */
	assert_int_equal(logfile_line(&plane, &name, "", NULL), 0);
	assert_int_equal(stat(below("pod.log.1"), &st), -1);
	begin_with("new\n");
	assert_int_equal(stat(below("pod.log.1"), &st), 0);
	assert_int_equal(st.st_size, LOGFILE_ROTATE_BYTES + 1);
	assert_int_equal(stat(below("pod.log"), &st), 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(st.st_mode & 07777, 0600);
	forget();
}

static void a_log_that_is_another_file_as_well_is_begun_anew(void **unused)
{
	(void)unused;
	char victim[300];
	struct stat st;
	append("mine\n");
	(void)snprintf(victim, sizeof victim, "%s", below("victim"));
	assert_int_equal(rename(below("pod.log"), victim), 0);
	assert_int_equal(chmod(victim, 0644), 0);
	assert_int_equal(link(victim, below("pod.log")), 0);
	append("the pod's\n");
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(stat(below("pod.log"), &st), 0);
	assert_int_equal(st.st_size, 10);
	assert_int_equal(logfile_forget(&plane, &name, NULL), 0);
	assert_int_equal(stat(victim, &st), 0); /* it is no log, and its folder stays with it */
	assert_int_equal(stat(below("pod.log"), &st), -1);
	assert_int_equal(unlink(victim), 0);
	forget();
}

static void X07_links_and_odd_files_are_refused(void **unused)
{
	(void)unused;
	char victim[300], out[16];
	struct stat st;
	int fd = -1;
	snprintf(victim, sizeof victim, "%s/victim", directory);
	append("x\n");
	assert_int_equal(unlink(below("pod.log")), 0);
	assert_int_equal(symlink(victim, below("pod.log")), 0);
	assert_int_equal(logfile_open(&plane, &name, &fd, NULL), -ELOOP);
	assert_int_equal(copy(1, out, sizeof out), -ELOOP);
	assert_int_equal(lstat(victim, &st), -1);
	assert_int_equal(unlink(below("pod.log")), 0);
	/* Nobody at the other end: it must not be waited for. */
	assert_int_equal(mkfifo(below("pod.log"), 0600), 0);
	assert_true(logfile_open(&plane, &name, &fd, NULL) < 0);
	assert_int_equal(copy(1, out, sizeof out), -EINVAL);
	forget();

	char elsewhere[300], kept[320];
	snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", directory);
	snprintf(kept, sizeof kept, "%s/pod.log", elsewhere);
	assert_int_equal(mkdir(elsewhere, 0700), 0);
	assert_int_equal(close(open(kept, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	char folder[PLANE_PATH_MAX + 16];
	snprintf(folder, sizeof folder, "%s/demo", plane.artifacts);
	assert_int_equal(symlink(elsewhere, folder), 0);
	assert_int_equal(logfile_open(&plane, &name, &fd, NULL), -ELOOP);
	assert_int_equal(copy(1, out, sizeof out), -ELOOP);
	assert_int_equal(logfile_forget(&plane, &name, NULL), 0);
	assert_int_equal(stat(kept, &st), 0);
	assert_int_equal(lstat(folder, &st), 0);
	assert_int_equal(unlink(folder), 0);
	assert_int_equal(fd, -1);
}

static void read_until(int fd, const char *expected)
{
	char out[256] = "";
	size_t used = 0;
	while (!strstr(out, expected)) {
		struct pollfd readable = {.fd = fd, .events = POLLIN};
		assert_int_equal(poll(&readable, 1, 5000), 1);
		ssize_t n = read(fd, out + used, sizeof out - 1 - used);
		assert_true(n > 0);
		used += (size_t)n;
		out[used] = 0;
	}
}

static void follows_over_a_rotation_until_the_reader_is_gone(void **unused)
{
	(void)unused;
	int ends[2];
	append("first\n");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[0]);
		signal(SIGPIPE, SIG_IGN);
		_exit(logfile_copy(&plane, &name, 10, true, ends[1], NULL) == 0 ? 0 : 1);
	}
	close(ends[1]);
	read_until(ends[0], "first\n");
	append("second\n");
	read_until(ends[0], "second\n");
	AUTO_FREE char *old = strdup(below("pod.log"));
	assert_int_equal(rename(old, below("pod.log.1")), 0);
	append("third\n");
	read_until(ends[0], "third\n");
	close(ends[0]);
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	forget();
}

static void follows_until_the_pod_is_taken_down(void **unused)
{
	(void)unused;
	int ends[2], status = -1;
	append("first\n");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(logfile_copy(&plane, &name, 10, true, ends[1], NULL) == 0 ? 0 : 1);
	read_until(ends[0], "first\n");
	append("last words\n");
	forget();
	read_until(ends[0], "last words\n");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_from_the_first_byte),
		cmocka_unit_test(tails),
		cmocka_unit_test(a_tail_over_many_blocks),
		cmocka_unit_test(rotates_once_at_16_MiB),
		cmocka_unit_test(a_log_that_is_another_file_as_well_is_begun_anew),
		cmocka_unit_test(X07_links_and_odd_files_are_refused),
		cmocka_unit_test(follows_over_a_rotation_until_the_reader_is_gone),
		cmocka_unit_test(follows_until_the_pod_is_taken_down),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
