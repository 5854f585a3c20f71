/* Commands, our own program, a checkout's configuration. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child_test.h"
#include "pod/model/refusal.h"
#include "pod/system/command.h"
#include "pod/system/surroundings.h"
#include "pod/system/surroundings_program.h"

static char start[PLANE_PATH_MAX]; /* where this program was started */

static int without_proc(void)
{
	char known[PLANE_PATH_MAX], found[PLANE_PATH_MAX];
	surroundings_program(NULL, known);
	CHECK(*known == '/');
	if (!own_mounts() || mount("tmpfs", "/proc", "tmpfs", 0, NULL) < 0) {
		dprintf(failed_pipe, "no private mounts: %s", strerror(errno));
		return SKIPPED;
	}
	CHECK(access("/proc/self/exe", F_OK) < 0);
	CHECK(chdir("/") == 0);
	surroundings_program(start, found);
	struct stat a, b;
	CHECK(stat(known, &a) == 0 && stat(found, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	return 0;
}
static void X64_program_is_known_without_proc(void **state)
{
	(void)state;
	in_child(without_proc);
}

/* In a copy of this program, at `self`: replaced while it runs, as an upgrade does. */
static int replaced_program(const char *self)
{
	char found[PLANE_PATH_MAX];
	failed_pipe = 2;
	CHECK(unlink(self) == 0);
	surroundings_program(NULL, found);
	CHECK(!*found);
	put_file(self, "#!/bin/sh\n", 0700);
	surroundings_program(NULL, found);
	CHECK(strcmp(found, self) == 0);
	return 0;
}

static void upgraded_program_has_its_old_name(void **state)
{
	(void)state;
	char copy[128], command[PLANE_PATH_MAX + 256], self[PLANE_PATH_MAX];
	surroundings_program(NULL, self);
	(void)snprintf(copy, sizeof copy, "%s/copy", top);
	(void)snprintf(command, sizeof command, "cp '%s' '%s' && '%s' --replaced '%s'", self, copy, copy, copy);
	assert_int_equal(system(command), 0);
}

static void make_commands(void)
{
	CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 && mkdir("a/dir", 0755) == 0);
	put_file("a/plain", "#!/bin/sh\n", 0644);
	put_file("b/plain", "#!/bin/sh\n", 0755);
	put_file("b/only", "#!/bin/sh\n", 0755);
	put_file("a/closed", "#!/bin/sh\n", 0644);
	CHECK(symlink("only", "b/link") == 0);
}

static int search_commands(void)
{
	char path[300], out[PLANE_PATH_MAX];
	struct err err = {0};
	make_commands();
	(void)snprintf(path, sizeof path, "%s/a:%s/missing:%s/b", top, top, top);
	CHECK(command_find("only", path, top, out, sizeof out, &err) == 0 && strcmp(out, below_top("b/only")) == 0);
	CHECK(command_find("plain", path, top, out, sizeof out, &err) == 0 && strcmp(out, below_top("b/plain")) == 0);
	CHECK(command_find("link", path, top, out, sizeof out, &err) == 0 && strcmp(out, below_top("b/link")) == 0);
	strcpy(out, "untouched");
	CHECK(command_find("nowhere", path, top, out, sizeof out, &err) == -ENOENT);
	CHECK(strstr(err.text, "not found: nowhere, searched ") && strstr(err.text, path));
	CHECK(command_find("closed", path, top, out, sizeof out, &err) == -EACCES && strstr(err.text, below_top("a/closed")));
	CHECK(command_find("dir", path, top, out, sizeof out, &err) == -EACCES && strstr(err.text, "directory"));
	CHECK(command_find("", path, top, out, sizeof out, &err) == -ENOENT);
	CHECK(command_find("only", "", top, out, sizeof out, &err) == -ENOENT);
	CHECK(command_find("only", "b:./b::", top, out, sizeof out, &err) == -ENOENT); /* relative directories are not searched */
	CHECK(command_find("only", path, top, out, 4, &err) == -ENAMETOOLONG);
	CHECK(strcmp(out, "untouched") == 0 || strlen(out) < 4);
	return 0;
}
static void L25_command_is_found_or_named_with_what_was_searched(void **state)
{
	(void)state;
	in_child(search_commands);
}

static int path_commands(void)
{
	char out[PLANE_PATH_MAX];
	struct err err = {0};
	make_commands();
	CHECK(command_find("./b/only", "/nonexistent", top, out, sizeof out, &err) == 0 && strcmp(out, below_top("b/only")) == 0);
	CHECK(command_find("b/only", "/nonexistent", top, out, sizeof out, &err) == 0 && strcmp(out, below_top("b/only")) == 0);
	CHECK(command_find(below_top("b/only"), "", "", out, sizeof out, &err) == 0 && strcmp(out, below_top("b/only")) == 0);
	CHECK(command_find("./b/only", "", "", out, sizeof out, &err) == -ENOENT && strstr(err.text, "working directory"));
	CHECK(command_find("./b/none", "", top, out, sizeof out, &err) == -ENOENT && strstr(err.text, below_top("b/none")));
	CHECK(command_find("a/closed", "", top, out, sizeof out, &err) == -EACCES);
	CHECK(command_find("a/dir", "", top, out, sizeof out, &err) == -EACCES);
	CHECK(command_find("b/only/x", "", top, out, sizeof out, &err) == -ENOENT);
	return 0;
}
static void L25_word_with_a_slash_is_made_absolute(void **state)
{
	(void)state;
	in_child(path_commands);
}

static int checkout(void)
{
	struct ini ini;
	struct err err = {0};
	CHECK(mkdir("co", 0755) == 0);
	CHECK(checkout_ini_read(below_top("none"), &ini, &err) == 0 && !ini.payload_exec && !ini.identity_count);
	CHECK(checkout_ini_read(below_top("co"), &ini, &err) == 0 && !ini.payload_exec && !ini.identity_count);
	put_file("co/kirocrew-pod.ini", "[payload]\nexec = serve --port {port}\n", 0600);
	CHECK(checkout_ini_read(below_top("co"), &ini, &err) == 0);
	CHECK(ini.payload_exec && strcmp(ini.payload_exec, "serve --port {port}") == 0);
	ini_free(&ini);
	put_file("co/kirocrew-pod.ini", "[plane]\nroot = /\n", 0600);
	CHECK(checkout_ini_read(below_top("co"), &ini, &err) < 0 && err.refusal == REFUSAL_BAD_CONFIG);
	CHECK(rename("co/kirocrew-pod.ini", "co/real.ini") == 0 && symlink("real.ini", "co/kirocrew-pod.ini") == 0);
	CHECK(checkout_ini_read(below_top("co"), &ini, &err) < 0 && err.refusal == REFUSAL_BAD_CONFIG);
	CHECK(strcmp(err.subject, below_top("co/kirocrew-pod.ini")) == 0);
	CHECK(unlink("co/kirocrew-pod.ini") == 0 && mkfifo("co/kirocrew-pod.ini", 0600) == 0);
	CHECK(checkout_ini_read(below_top("co"), &ini, &err) < 0 && err.refusal == REFUSAL_BAD_CONFIG);
	return 0;
}
static void X08_checkout_configuration_is_read_no_follow(void **state)
{
	(void)state;
	in_child(checkout);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--replaced") == 0)
		return replaced_program(argv[2]);
	if (!getcwd(start, sizeof start))
		return 1;
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(X64_program_is_known_without_proc, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(upgraded_program_has_its_old_name, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(L25_command_is_found_or_named_with_what_was_searched, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(L25_word_with_a_slash_is_made_absolute, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(X08_checkout_configuration_is_read_no_follow, make_top, remove_top),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
