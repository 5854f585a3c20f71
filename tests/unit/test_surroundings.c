/* Home, working directory, configuration, plane. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child_test.h"
#include "pod/model/refusal.h"
#include "pod/system/surroundings.h"

static bool is_empty(const char *directory)
{
	return rmdir(directory) == 0 && mkdir(directory, 0755) == 0;
}

static struct surroundings read_well(const char *config)
{
	struct surroundings s = {0};
	struct err err = {0};
	if (surroundings_read(config, &s, &err) < 0) {
		dprintf(failed_pipe, "%s: %s", err.subject, err.text);
		_exit(1);
	}
	return s;
}

static struct err read_badly(const char *config)
{
	struct surroundings s;
	memset(&s, 0x5a, sizeof s);
	struct err err = {0};
	int r = surroundings_read(config, &s, &err);
	CHECK(r < 0);
	CHECK(r == err.code);
	CHECK(s.cwd[0] == 0x5a && s.cwd[sizeof s.cwd - 1] == 0x5a); /* outputs only on success */
	return err;
}

static int plain(void)
{
	char home[256];
	(void)snprintf(home, sizeof home, "%s", below_top("home"));
	struct surroundings s = read_well(NULL);
	CHECK(strcmp(s.plane.home, home) == 0);
	CHECK(strcmp(s.cwd, top) == 0);
	CHECK(strncmp(s.plane.root, home, strlen(home)) == 0);
	CHECK(s.plane.base_port == 7810 || *s.config_file); /* unless this machine has a configuration in /etc */
	CHECK(s.program[0] == '/' && access(s.program, X_OK) == 0);
	CHECK(is_empty(home));
	surroundings_free(&s);
	return 0;
}
static void reads_and_writes_nothing(void **state)
{
	(void)state;
	in_child(plain);
}

static const char *passwd_home(void)
{
	struct stat st;
	const struct passwd *entry = getpwuid(getuid());
	const char *home = entry ? entry->pw_dir : NULL;
	return home && *home == '/' && home[1] && stat(home, &st) == 0 && S_ISDIR(st.st_mode) ? home : NULL;
}

static int unusable_home(void)
{
	put_file("file", "", 0600);
	const char *const values[] = {NULL, "", "relative", "/nonexistent/x", below_top("file")};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		CHECK((values[i] ? setenv("HOME", values[i], 1) : unsetenv("HOME")) == 0);
		if (!passwd_home()) {
			CHECK(read_badly(NULL).refusal == REFUSAL_BAD_CONFIG);
			continue;
		}
		struct surroundings s = read_well(NULL);
		CHECK(strcmp(s.plane.home, passwd_home()) == 0);
		surroundings_free(&s);
	}
	return 0;
}
static void L21_unusable_home_is_taken_from_passwd(void **state)
{
	(void)state;
	in_child(unusable_home);
}

/* A user whose passwd entry helps as little. */
static int nobody(void)
{
	bool become =
	    getuid() == 0 ? setresgid(54321, 54321, 54321) == 0 && setresuid(54321, 54321, 54321) == 0 : unshare(CLONE_NEWUSER) == 0;
	if (!become || passwd_home()) {
		dprintf(failed_pipe, "no way to be a user without a home");
		return SKIPPED;
	}
	const char *const values[] = {NULL, "", "relative", "/nonexistent/x"};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		CHECK((values[i] ? setenv("HOME", values[i], 1) : unsetenv("HOME")) == 0);
		struct err err = read_badly(NULL);
		CHECK(err.refusal == REFUSAL_BAD_CONFIG);
		CHECK(strcmp(err.subject, "HOME") == 0);
		CHECK(!values[i] || !*values[i] || strstr(err.text, values[i]));
		CHECK(strstr(err.text, "passwd"));
	}
	return 0;
}
static void L21_neither_is_one_clear_error(void **state)
{
	(void)state;
	in_child(nobody);
}

static int xdg(void)
{
	put_config(below_top("c"), "[plane]\nbase-port = 9000\n");
	CHECK(mkdir("home/.config", 0755) == 0);
	put_config("home/.config", "[plane]\nbase-port = 9100\n");
	put_config("rel", "[plane]\nbase-port = 9200\n");
	CHECK(setenv("XDG_CONFIG_HOME", below_top("c"), 1) == 0);
	CHECK(setenv("XDG_DATA_HOME", "/d", 1) == 0);
	struct surroundings s = read_well(NULL);
	CHECK(s.plane.base_port == 9000);
	CHECK(strcmp(s.config_file, below_top("c/kirocrew-pod/config.ini")) == 0);
	CHECK(strcmp(s.plane.config_home, below_top("c")) == 0);
	CHECK(strcmp(s.plane.data_home, "/d") == 0);
	surroundings_free(&s);
	const char *const ignored[] = {"", "rel"};
	for (size_t i = 0; i < 2; i++) {
		CHECK(setenv("XDG_CONFIG_HOME", ignored[i], 1) == 0);
		CHECK(setenv("XDG_DATA_HOME", ignored[i], 1) == 0);
		s = read_well(NULL);
		CHECK(s.plane.base_port == 9100);
		CHECK(strcmp(s.plane.config_home, below_top("home/.config")) == 0);
		CHECK(strcmp(s.plane.data_home, below_top("home/.local/share")) == 0);
		surroundings_free(&s);
	}
	return 0;
}
static void relative_and_empty_xdg_count_as_unset(void **state)
{
	(void)state;
	in_child(xdg);
}

static int precedence(void)
{
	put_config(below_top("c"), "[plane]\nbase-port = 9000\n");
	put_file("mine.ini", "[plane]\nbase-port = 9300\nport-span = 7\n", 0600);
	CHECK(setenv("XDG_CONFIG_HOME", below_top("c"), 1) == 0);
	struct surroundings s = read_well("mine.ini");
	CHECK(s.plane.base_port == 9300);
	CHECK(strcmp(s.config_file, below_top("mine.ini")) == 0);
	surroundings_free(&s);
	CHECK(setenv("KIROCREW_POD_BASE_PORT", "9400", 1) == 0);
	s = read_well(below_top("mine.ini"));
	CHECK(s.plane.base_port == 9400 && s.plane.port_span == 7);
	surroundings_free(&s);
	CHECK(setenv("KIROCREW_POD_BASE_PORT", "", 1) == 0);
	s = read_well("mine.ini");
	CHECK(s.plane.base_port == 9300);
	surroundings_free(&s);
	return 0;
}
static void first_configuration_wins_and_the_environment_over_it(void **state)
{
	(void)state;
	in_child(precedence);
}

static int odd_configs(void)
{
	struct err err = read_badly("missing.ini");
	CHECK(err.code == -ENOENT && strstr(err.text, "missing.ini"));
	CHECK(mkfifo("fifo", 0600) == 0);
	CHECK(mkdir("directory", 0755) == 0);
	CHECK(read_badly("fifo").code < 0);
	CHECK(read_badly("directory").code < 0);
	CHECK(read_badly("/dev/null").code < 0);
	put_file("unknown.ini", "[plane]\nbogus = 1\n", 0600);
	err = read_badly("unknown.ini");
	CHECK(err.refusal == REFUSAL_BAD_CONFIG);
	CHECK(strstr(err.subject, "unknown.ini") || strstr(err.text, "unknown.ini"));
	char *big = malloc(CONFIG_BYTES_MAX + 2);
	CHECK(big);
	memset(big, '\n', CONFIG_BYTES_MAX + 1);
	big[CONFIG_BYTES_MAX + 1] = '\0';
	put_file("big.ini", big, 0600);
	free(big);
	CHECK(read_badly("big.ini").code == -EFBIG);
	/* The file that is searched for is no different once it exists. */
	put_config(below_top("c"), "");
	CHECK(unlink("c/kirocrew-pod/config.ini") == 0);
	CHECK(mkfifo("c/kirocrew-pod/config.ini", 0600) == 0);
	CHECK(setenv("XDG_CONFIG_HOME", below_top("c"), 1) == 0);
	err = read_badly(NULL);
	CHECK(strstr(err.text, below_top("c/kirocrew-pod/config.ini")));
	return 0;
}
static void X08_configuration_that_cannot_be_read_is_an_error(void **state)
{
	(void)state;
	in_child(odd_configs);
}

static int linked_config(void)
{
	put_file("dotfile.ini", "[plane]\nbase-port = 9500\n", 0600);
	CHECK(symlink("dotfile.ini", "link.ini") == 0);
	struct surroundings s = read_well("link.ini");
	CHECK(s.plane.base_port == 9500);
	CHECK(strcmp(s.config_file, below_top("link.ini")) == 0);
	surroundings_free(&s);
	CHECK(symlink("loop.ini", "loop.ini") == 0);
	CHECK(read_badly("loop.ini").code == -ELOOP);
	return 0;
}
static void configuration_may_be_a_link_of_the_operators(void **state)
{
	(void)state;
	in_child(linked_config);
}

static int etc_config(void)
{
	if (!own_mounts() || mount("tmpfs", "/etc", "tmpfs", 0, NULL) < 0) {
		dprintf(failed_pipe, "no private mounts: %s", strerror(errno));
		return SKIPPED;
	}
	struct surroundings s = read_well(NULL);
	CHECK(!*s.config_file);
	surroundings_free(&s);
	put_config("/etc", "[plane]\nbase-port = 9600\n");
	s = read_well(NULL);
	CHECK(s.plane.base_port == 9600);
	CHECK(strcmp(s.config_file, "/etc/kirocrew-pod/config.ini") == 0);
	surroundings_free(&s);
	put_config(below_top("c"), "");
	CHECK(setenv("XDG_CONFIG_HOME", below_top("c"), 1) == 0);
	s = read_well(NULL);
	CHECK(s.plane.base_port == 7810); /* first found wins, they are not joined */
	surroundings_free(&s);
	return 0;
}
static void etc_is_searched_last(void **state)
{
	(void)state;
	in_child(etc_config);
}

static int no_cwd(void)
{
	CHECK(mkdir("gone", 0755) == 0 && chdir("gone") == 0 && rmdir(below_top("gone")) == 0);
	struct surroundings s = read_well(NULL);
	CHECK(!*s.cwd);
	surroundings_free(&s);
	CHECK(setenv("KIROCREW_POD_ROOT", "pods", 1) == 0);
	CHECK(read_badly(NULL).refusal == REFUSAL_BAD_CONFIG);
	CHECK(setenv("KIROCREW_POD_ROOT", "/pods", 1) == 0);
	CHECK(read_badly("x.ini").code < 0);
	return 0;
}
static void X65_deleted_working_directory_is_no_error(void **state)
{
	(void)state;
	in_child(no_cwd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(reads_and_writes_nothing, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(L21_unusable_home_is_taken_from_passwd, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(L21_neither_is_one_clear_error, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(relative_and_empty_xdg_count_as_unset, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(first_configuration_wins_and_the_environment_over_it, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(X08_configuration_that_cannot_be_read_is_an_error, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(configuration_may_be_a_link_of_the_operators, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(etc_is_searched_last, make_top, remove_top),
	    cmocka_unit_test_setup_teardown(X65_deleted_working_directory_is_no_error, make_top, remove_top),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
