/* Rendered units, read by systemd itself. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsops/cleanup.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_text.h"
#include "unit_samples.h"

static char *render(void)
{
	char *text = NULL;
	struct err err = {0};
	if (unit_text_template(&input, &text, &err) < 0)
		fail_msg("%s: %s", err.subject, err.text);
	return text;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

/* Exit status; all that it says goes to *out. */
static int verify(const char *directory, const char *unit, char *out, size_t size)
{
	int fds[2];
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(fds[1], 1);
		(void)dup2(fds[1], 2);
		(void)setenv("XDG_RUNTIME_DIR", directory, 1);
		(void)setenv("HOME", directory, 1);
		(void)unsetenv("LD_PRELOAD");
		(void)execlp("systemd-analyze", "systemd-analyze", "--user", "verify", unit, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	size_t used = 0;
	for (ssize_t n; (n = read(fds[0], out + used, size - 1 - used)) > 0;)
		used += (size_t)n;
	out[used] = '\0';
	close(fds[0]);
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

struct place {
	char directory[64], program[160], unit[160];
};

static void place_make(struct place *place, const char *program)
{
	(void)snprintf(place->directory, sizeof place->directory, "/tmp/kcp-unit-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	(void)snprintf(place->program, sizeof place->program, "%s/%s", place->directory, program);
	(void)snprintf(place->unit, sizeof place->unit, "%s/kcp@.service", place->directory);
	write_file(place->program, "#!/bin/sh\n", 0700);
}

static void place_remove(struct place *place)
{
	char systemd[96];
	(void)snprintf(systemd, sizeof systemd, "%s/systemd", place->directory);
	(void)unlink(place->program);
	(void)unlink(place->unit);
	(void)rmdir(systemd);
	assert_int_equal(rmdir(place->directory), 0);
}

static void systemd_itself_takes_every_text(void **state)
{
	(void)state;
	struct place place;
	char said[8192];
	place_make(&place, "pro gram %h$$${X}");
	input.program = place.program;
	int works = 0;
	for (size_t i = 0; i <= COUNT(hostile); i++) {
		const char *value = i < COUNT(hostile) ? hostile[i] : "/plain";
		(void)snprintf(plane.root, sizeof plane.root, "%s", value);
		(void)snprintf(plane.home, sizeof plane.home, "%s", value);
		input.config_file = value;
		input.log_directory = i % 2 ? "/log %$\"'\\dir" : NULL;
		AUTO_FREE char *text = render();
		write_file(place.unit, text, 0600);
		int status = verify(place.directory, place.unit, said, sizeof said);
		if (status == 127 || strstr(said, "Failed to initialize manager")) {
			place_remove(&place);
			skip_unless_must_work(status == 127 ? "there is no systemd-analyze here" : "systemd-analyze cannot work here");
			return;
		}
		if (status != 0 || *said)
			fail_msg("status %d for %s: %s", status, value, said);
		works++;
	}
	/* The control: it does find fault. */
	write_file(place.unit, "[Service]\nExecStart=/bin/true\nMemorMax=1\n", 0600);
	(void)verify(place.directory, place.unit, said, sizeof said);
	assert_non_null(strstr(said, "MemorMax"));
	place_remove(&place);
	assert_int_equal(works, (int)COUNT(hostile) + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(systemd_itself_takes_every_text, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
