/* Rendered units, parsed back by a reader of our own that follows systemd.syntax(7). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fsops/cleanup.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_text.h"
#include "unit_reader.h"
#include "unit_samples.h"

static char *render(void)
{
	char *text = NULL;
	struct err err = {0};
	if (unit_text_template(&input, &text, &err) < 0)
		fail_msg("%s: %s", err.subject, err.text);
	return text;
}

static char *assignment(const char *text, const char *variable)
{
	char *value = NULL, *found = NULL;
	for (size_t i = 0; (value = line_value(text, "Environment", i)); i++) {
		const char *at = value;
		char *word = next_word(&at);
		assert_non_null(word);
		assert_int_equal(*at, '\0'); /* one word a line: nothing was injected */
		expand_specifiers(word, "x");
		if (strncmp(word, variable, strlen(variable)) == 0 && word[strlen(variable)] == '=') {
			assert_null(found);
			found = strdup(word + strlen(variable) + 1);
		}
		free(word);
		free(value);
	}
	return found;
}

static void expect_assignment(const char *text, const char *variable, const char *value)
{
	AUTO_FREE char *found = assignment(text, variable);
	if (!found)
		fail_msg("no Environment=%s", variable);
	assert_string_equal(found, value);
}

static void expect_line(const char *text, const char *key, const char *value)
{
	AUTO_FREE char *found = line_value(text, key, 0);
	if (!found)
		fail_msg("no line %s=", key);
	assert_string_equal(found, value);
	assert_int_equal(line_count(text, key), 1);
}

static void expect_no_control_byte(const char *text)
{
	for (const char *s = text; *s; s++)
		assert_false(((unsigned char)*s < 0x20 && *s != '\n') || *s == 0x7f);
}

static void service_says_what_the_contract_asks(void **state)
{
	(void)state;
	AUTO_FREE char *text = render();
	static const char *const expected[][2] = {
	    {"Type", "exec"},
	    {"ExecStart", "\"/usr/bin/kirocrew-pod\" _run %i"},
	    {"Restart", "on-failure"},
	    {"RestartSec", "5"},
	    {"RestartPreventExitStatus", "3 70 78"},
	    {"StartLimitIntervalSec", "300"},
	    {"StartLimitBurst", "5"},
	    {"MemoryMax", "4G"},
	    {"CPUQuota", "200%"},
	    {"KillMode", "control-group"},
	    {"TimeoutStopSec", "15"},
	    {"UMask", "0077"},
	    {"SyslogIdentifier", "%n"},
	    {"StandardOutput", "journal"},
	    {"StandardError", "journal"},
	};
	for (size_t i = 0; i < COUNT(expected); i++)
		expect_line(text, expected[i][0], expected[i][1]);
	assert_null(strstr(text, "ExecStop"));
	assert_null(strstr(text, "@"));
	assert_non_null(strstr(text, "\n[Unit]\n"));
	assert_non_null(strstr(text, "\n[Service]\n"));
}

static void terminal_statuses_are_those_of_the_refusals(void **state)
{
	(void)state;
	AUTO_FREE char *text = render();
	AUTO_FREE char *listed = line_value(text, "RestartPreventExitStatus", 0);
	assert_non_null(listed);
	size_t terminal = 0;
	for (enum refusal refusal = REFUSAL_NONE + 1; refusal < REFUSAL_COUNT_; refusal++) {
		const struct refusal_entry *entry = refusal_entry(refusal);
		/* A bad name ends a boot with 3, whatever it ends a verb with. */
		if (!entry->terminal || refusal == REFUSAL_BAD_NAME)
			continue;
		char status[16];
		(void)snprintf(status, sizeof status, "%d", (int)entry->status);
		assert_non_null(strstr(listed, status));
		terminal++;
	}
	assert_true(terminal > 3);
}

static void the_plane_is_carried(void **state)
{
	(void)state;
	(void)snprintf(plane.kiro_bin, sizeof plane.kiro_bin, "/opt/kiro-cli");
	(void)snprintf(plane.worktrees_root, sizeof plane.worktrees_root, "/wt");
	AUTO_FREE char *text = render();
	expect_assignment(text, "KIROCREW_POD_ROOT", plane.root);
	expect_assignment(text, "KIROCREW_POD_ENV_DIR", plane.pods_dir);
	expect_assignment(text, "KIROCREW_POD_ARTIFACTS_DIR", plane.artifacts);
	expect_assignment(text, "KIROCREW_POD_BASE_PORT", "7810");
	expect_assignment(text, "KIROCREW_POD_PORT_SPAN", "199");
	expect_assignment(text, "KIROCREW_POD_LIVE_PORT", "5476");
	expect_assignment(text, "KIROCREW_POD_UNIT_PREFIX", "kirocrew-pod");
	expect_assignment(text, "KIROCREW_POD_PATH", "/usr/bin:/bin");
	expect_assignment(text, "KIROCREW_POD_WORKTREES_ROOT", "/wt");
	expect_assignment(text, "KIROCREW_POD_KIRO_BIN", "/opt/kiro-cli");
	expect_assignment(text, "KIROCREW_POD_BACKEND", "systemd");
	expect_assignment(text, "HOME", "/home/op");
	assert_int_equal(line_count(text, "Environment"), 12);
}

static void xdg_homes_are_carried_only_when_they_are_elsewhere(void **state)
{
	(void)state;
	AUTO_FREE char *plain = render();
	assert_null(strstr(plain, "XDG_"));
	(void)snprintf(plane.config_home, sizeof plane.config_home, "/c");
	(void)snprintf(plane.data_home, sizeof plane.data_home, "/d");
	AUTO_FREE char *text = render();
	expect_assignment(text, "XDG_CONFIG_HOME", "/c");
	expect_assignment(text, "XDG_DATA_HOME", "/d");
}

/* Or every `up` from another directory, or with another patience, would cost a reload. */
static void what_belongs_to_one_call_does_not_change_the_text(void **state)
{
	(void)state;
	AUTO_FREE char *one = render();
	(void)snprintf(plane.repo, sizeof plane.repo, "/elsewhere");
	plane.health_secs = 5;
	plane.backend = BACKEND_SYSTEMD;
	AUTO_FREE char *other = render();
	assert_string_equal(one, other);
}

static void V03_V04_X20_X24_values_come_back_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(hostile); i++) {
		(void)snprintf(plane.root, sizeof plane.root, "%s", hostile[i]);
		(void)snprintf(plane.pods_dir, sizeof plane.pods_dir, "%s", hostile[i]);
		(void)snprintf(plane.home, sizeof plane.home, "%s", hostile[i]);
		input.config_file = hostile[i];
		AUTO_FREE char *text = render();
		expect_assignment(text, "KIROCREW_POD_ROOT", hostile[i]);
		expect_assignment(text, "KIROCREW_POD_ENV_DIR", hostile[i]);
		expect_assignment(text, "HOME", hostile[i]);
		expect_assignment(text, "KIROCREW_POD_UNIT_PREFIX", "kirocrew-pod");
		expect_no_control_byte(text);

		AUTO_FREE char *command = line_value(text, "ExecStart", 0);
		assert_non_null(command);
		assert_int_equal(line_count(text, "ExecStart"), 1);
		const char *const argv[] = {"/usr/bin/kirocrew-pod", "--config", hostile[i], "_run", "x"};
		const char *at = command;
		for (size_t word = 0; word < COUNT(argv); word++) {
			AUTO_FREE char *found = next_word(&at);
			assert_non_null(found);
			expand_specifiers(found, "x");
			expand_variables(found);
			assert_string_equal(found, argv[word]);
		}
		assert_int_equal(*at, '\0');
	}
}

static int refused(const char *subject)
{
	char *text = NULL;
	struct err err = {0};
	int r = unit_text_template(&input, &text, &err);
	assert_int_equal(r, -EPERM);
	assert_int_equal(err.refusal, REFUSAL_VALUE);
	assert_string_equal(err.subject, subject);
	assert_null(text);
	return 0;
}

static void X21_what_is_not_utf8_is_refused_by_name(void **state)
{
	(void)state;
	static const char *const bad[] = {
	    "/\xff",
	    "/a\xc3",
	    "/\xc0\xaf",
	    "/\xed\xa0\x80",
	    "/\xf4\x90\x80\x80",
	    "/\xe2\x82",
	    "/\x80",
	    "/\xf8\x88\x80\x80\x80",
	    /* UTF-8, and yet "not UTF-8 clean" for systemd: noncharacters */
	    "/\xef\xb7\x90",
	    "/\xef\xbf\xbf",
	    "/\xf0\x9f\xbf\xbe",
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		setup(NULL);
		(void)snprintf(plane.path, sizeof plane.path, "%s", bad[i]);
		refused("KIROCREW_POD_PATH");
		setup(NULL);
		(void)snprintf(plane.root, sizeof plane.root, "%s", bad[i]);
		refused("plane");
		setup(NULL);
		input.config_file = bad[i];
		refused("config");
		setup(NULL);
		input.log_directory = bad[i];
		refused("log-directory");
		setup(NULL);
		input.program = bad[i];
		refused("program");
	}
}

static void program_that_systemd_would_not_execute_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"/a\\b", "/a\"b", "/a'b", "/a\tb", "/a\nb", "/a\x7f", "relative", "-/x", "@/x", ""};
	for (size_t i = 0; i < COUNT(bad); i++) {
		input.program = bad[i];
		refused("program");
	}
	static const char *const good[] = {"/a b", "/%h", "/$X/${Y}$$", "/\xc3\xbc", "/-@+!:|"};
	for (size_t i = 0; i < COUNT(good); i++) {
		input.program = good[i];
		AUTO_FREE char *text = render();
		AUTO_FREE char *command = line_value(text, "ExecStart", 0);
		assert_non_null(command);
		const char *at = command;
		AUTO_FREE char *word = next_word(&at);
		assert_non_null(word);
		expand_specifiers(word, "x");
		assert_string_equal(word, good[i]); /* no variables in the program: systemd.service(5) */
	}
}

static void log_directory_is_raw(void **state)
{
	(void)state;
	input.log_directory = "/log s/100%/\"$x\\y";
	AUTO_FREE char *text = render();
	expect_line(text, "StandardOutput", "append:/log s/100%%/\"$x\\y/%i/pod.log");
	expect_line(text, "StandardError", "append:/log s/100%%/\"$x\\y/%i/pod.log");
	static const char *const bad[] = {"/a\nMemoryMax=1", "/a\rb", "/a\x1b", "relative", ""};
	for (size_t i = 0; i < COUNT(bad); i++) {
		input.log_directory = bad[i];
		refused("log-directory");
	}
}

static void drop_in_only_for_limits_of_its_own(void **state)
{
	(void)state;
	static const struct {
		const char *memory_max, *cpu_quota, *body;
	} cases[] = {
	    {"", "", NULL},
	    {"512M", "", "[Service]\nMemoryMax=512M\n"},
	    {"", "50%", "[Service]\nCPUQuota=50%\n"},
	    {"50%", "150%", "[Service]\nMemoryMax=50%\nCPUQuota=150%\n"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spec spec = {0};
		struct err err = {0};
		(void)snprintf(spec.memory_max, sizeof spec.memory_max, "%s", cases[i].memory_max);
		(void)snprintf(spec.cpu_quota, sizeof spec.cpu_quota, "%s", cases[i].cpu_quota);
		AUTO_FREE char *text = strdup("unset");
		char *made = text;
		assert_int_equal(unit_text_drop_in(&spec, &made, &err), 0);
		if (!cases[i].body) {
			assert_null(made);
			continue;
		}
		free(text);
		text = made;
		char *section = strstr(text, "[Service]");
		assert_non_null(section);
		assert_string_equal(section, cases[i].body);
	}
	struct spec spec = {.memory_max = "1G\nExecStart=/x"};
	struct err err = {0};
	char *made = NULL;
	assert_int_equal(unit_text_drop_in(&spec, &made, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_VALUE);
	assert_string_equal(err.subject, "memory-max");
}

static void two_planes_under_one_prefix_are_told_apart(void **state)
{
	(void)state;
	AUTO_FREE char *one = render();
	input.stop_secs = 20;
	AUTO_FREE char *changed = render();
	assert_true(unit_text_same_plane(one, changed));
	(void)snprintf(plane.root, sizeof plane.root, "/home/op/.kirocrew-pods\" \"x");
	AUTO_FREE char *other_root = render();
	assert_false(unit_text_same_plane(one, other_root));
	setup(NULL);
	(void)snprintf(plane.pods_dir, sizeof plane.pods_dir, "/other");
	AUTO_FREE char *other_pods = render();
	assert_false(unit_text_same_plane(one, other_pods));
	assert_false(unit_text_same_plane("[Service]\nExecStart=/bin/x\n", one));
	assert_false(unit_text_same_plane("", one));
	assert_non_null(strstr(one, "\n# plane: \"/home/op/.kirocrew-pods\" \"/home/op/.kiro/crew/pods\"\n"));
}

static void the_pods_dir_of_a_template_is_read_back(void **state)
{
	static const char *const paths[] = {"/home/op/.kiro/crew/pods", "/with \"quotes\" and \\ and %h $x", "/bell\a and tab\t", "/\xc3\xa4"};
	static const char *const bad[] = {"# plane: \"/a\" \"/b", "# plane: \"/a\"", "# plane: /a /b", "# plane: \"/a\" \"/b\\x0", "# plane: \"/a\\x00\" \"/b\"",
					  "# plane: \"/a\n\" \"/b\"", "# plane: \"\\"};
	char path[PLANE_PATH_MAX] = "as before";
	(void)state;
	assert_int_equal(unit_text_pods_dir("[Service]\n", path), -ENOENT);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(unit_text_pods_dir(bad[i], path), -EBADMSG);
	AUTO_FREE char *big = malloc(2 * PLANE_PATH_MAX + 32);
	assert_non_null(big);
	(void)sprintf(big, "# plane: \"/a\" \"/%0*d\"", PLANE_PATH_MAX, 0);
	assert_int_equal(unit_text_pods_dir(big, path), -EBADMSG);
	assert_string_equal(path, "as before");
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		(void)snprintf(plane.pods_dir, sizeof plane.pods_dir, "%s", paths[i]);
		AUTO_FREE char *text = render();
		assert_int_equal(unit_text_pods_dir(text, path), 0);
		assert_string_equal(path, paths[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(service_says_what_the_contract_asks, setup),
	    cmocka_unit_test_setup(terminal_statuses_are_those_of_the_refusals, setup),
	    cmocka_unit_test_setup(the_plane_is_carried, setup),
	    cmocka_unit_test_setup(xdg_homes_are_carried_only_when_they_are_elsewhere, setup),
	    cmocka_unit_test_setup(what_belongs_to_one_call_does_not_change_the_text, setup),
	    cmocka_unit_test_setup(V03_V04_X20_X24_values_come_back_exact, setup),
	    cmocka_unit_test_setup(X21_what_is_not_utf8_is_refused_by_name, setup),
	    cmocka_unit_test_setup(program_that_systemd_would_not_execute_is_refused, setup),
	    cmocka_unit_test_setup(log_directory_is_raw, setup),
	    cmocka_unit_test_setup(drop_in_only_for_limits_of_its_own, setup),
	    cmocka_unit_test_setup(two_planes_under_one_prefix_are_told_apart, setup),
	    cmocka_unit_test_setup(the_pods_dir_of_a_template_is_read_back, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
