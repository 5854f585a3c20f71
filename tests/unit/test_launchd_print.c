/* What launchctl prints, and what follows from it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pod/model/launchd_print.h"
#include "pod/model/refusal.h"

/* The shape of a real answer, nested blocks with the same keys included. */
static const char *printed(const char *lines)
{
	static char text[4096];
	(void)snprintf(text, sizeof text,
		       "gui/501/dev.kirocrew.pod.t.demo = {\n\tactive count = 1\n\tpath = /p/dev.kirocrew.pod.t.demo.plist\n\ttype = LaunchAgent\n"
		       "%s"
		       "\targuments = {\n\t\t/bin/kirocrew-pod\n\t\tstate = running\n\t}\n\tenvironment = {\n\t\tpid => 3\n\t\tpid = 77\n\t}\n"
		       "\tdomain = gui/501 [100005]\n\texit timeout = 15\n\tjob state = running\n"
		       "\tresource coalition = {\n\t\tstate = active\n\t\truns = 9\n\t}\n\tspawn type = daemon (3)\n}\n",
		       lines);
	return text;
}

static void known_states_are_understood(void **unused)
{
	(void)unused;
	static const struct {
		const char *lines;
		enum unit_active active;
		pid_t pid;
		enum unit_end end;
		int status;
		unsigned restarts;
	} cases[] = {
		{"\tstate = running\n\truns = 1\n\tpid = 4711\n\tlast exit code = (never exited)\n", UNIT_ACTIVE, 4711, UNIT_END_NONE, 0, 0},
		{"\tstate = running\n\truns = 3\n\tpid = 4711\n\tlast terminating signal = Killed: 9\n", UNIT_ACTIVE, 4711, UNIT_END_SIGNALED, 9, 2},
		{"\tstate = xpcproxy\n\truns = 1\n\tpid = 4711\n\tlast exit code = (never exited)\n", UNIT_STARTING, 4711, UNIT_END_NONE, 0, 0},
		{"\tstate = SIGTERMed\n\truns = 1\n\tpid = 4711\n", UNIT_STOPPING, 4711, UNIT_END_NONE, 0, 0},
		{"\tstate = not running\n\truns = 0\n\tlast exit code = (never exited)\n", UNIT_STARTING, 0, UNIT_END_NONE, 0, 0},
		{"\tstate = not running\n\truns = 1\n\tlast exit code = 0\n", UNIT_INACTIVE, 0, UNIT_END_EXITED, 0, 0},
		{"\tstate = spawn scheduled\n\truns = 2\n\tlast exit code = 1\n", UNIT_RESTARTING, 0, UNIT_END_EXITED, 1, 1},
		{"\tstate = spawn scheduled\n\truns = 2\n\tlast terminating signal = Bus error: 10\n", UNIT_RESTARTING, 0, UNIT_END_SIGNALED, 10, 1},
		{"\tstate = spawn scheduled\n\truns = 2\n\tlast terminating signal = 15\n", UNIT_RESTARTING, 0, UNIT_END_SIGNALED, 15, 1},
		{"\tstate = spawn failed\n\truns = 1\n\tlast exit code = (never exited)\n", UNIT_FAILED, 0, UNIT_END_NONE, 0, 0},
		{"\tstate = some new word\n\truns = 1\n\tlast exit code = 1\n", UNIT_RESTARTING, 0, UNIT_END_EXITED, 1, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct unit_state state = {.active = UNIT_UNKNOWN};
		assert_int_equal(launchd_print_parse(0, printed(cases[i].lines), &state, NULL), 0);
		assert_int_equal(state.active, cases[i].active);
		assert_int_equal(state.main_pid, cases[i].pid);
		assert_int_equal(state.end, cases[i].end);
		assert_int_equal(state.status, cases[i].status);
		assert_int_equal(state.restarts, cases[i].restarts);
	}
}

static void V02_a_terminal_status_is_a_failure_whatever_launchd_plans(void **unused)
{
	(void)unused;
	static const char *const lines[] = {
		"\tstate = spawn scheduled\n\truns = 1\n\tlast exit code = 3\n",
		"\tstate = not running\n\truns = 4\n\tlast exit code = 70: EX_SOFTWARE\n",
		"\tstate = spawn scheduled\n\truns = 9\n\tlast exit code = 78: EX_CONFIG\n",
	};
	static const int statuses[] = {3, 70, 78};
	for (size_t i = 0; i < 3; i++) {
		struct unit_state state = {.active = UNIT_UNKNOWN};
		struct pod_facts facts = {.record_kind = RECORD_GOOD, .home = HOME_POD};
		char reason[200];
		assert_int_equal(launchd_print_parse(0, printed(lines[i]), &state, NULL), 0);
		assert_int_equal(state.active, UNIT_FAILED);
		assert_int_equal(state.end, UNIT_END_EXITED);
		assert_int_equal(state.status, statuses[i]);
		facts.unit = state;
		assert_int_equal(pod_state_decide(&facts, reason, sizeof reason), POD_REFUSED);
	}
}

static void only_the_explicit_answer_means_gone(void **unused)
{
	(void)unused;
	static const char gone[] = "Bad request.\nCould not find service \"dev.kirocrew.pod.t.demo\" in domain for user gui: 501\n";
	struct unit_state state = {.active = UNIT_ACTIVE};
	assert_int_equal(launchd_print_parse(113, gone, &state, NULL), 0);
	assert_int_equal(state.active, UNIT_ABSENT);
	static const struct {
		int status;
		const char *text;
		int code, refusal;
	} others[] = {
		{113, "", -EIO, 0},
		{113, "Bad request.\n", -EIO, 0},
		{1, gone, -EIO, 0},
		{5, "Could not print service: 5: Input/output error\n", -EIO, 0},
		{137, "", -EIO, 0},
		{0, "", -EBADMSG, 0},
		{0, gone, -EBADMSG, 0},
		{112, "Bad request.\nCould not find domain for user gui: 501\n", -EPERM, REFUSAL_NO_MANAGER},
		{125, "Could not print domain: 125: Domain does not support specified action\n", -EPERM, REFUSAL_NO_MANAGER},
	};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct err err = {0};
		state.active = UNIT_ACTIVE;
		assert_int_equal(launchd_print_parse(others[i].status, others[i].text, &state, &err), others[i].code);
		assert_int_equal(err.refusal, others[i].refusal);
		assert_int_equal(state.active, UNIT_ACTIVE);
	}
}

/* A value with a newline in it could stand at the first level. */
static void what_stands_there_twice_is_not_believed(void **unused)
{
	(void)unused;
	static const char *const lines[] = {
		"\tstate = running\n\tstate = not running\n\tpid = 3\n",
		"\tstate = running\n\tpid = 3\n\tpid = 4\n",
		"\tstate = running\n\tpid = x\n",
		"\tstate = running\n\tpid = 3 4\n",
		"\tstate = running\n\tpid = -3\n",
		"\tpid = 3\n",
		"\t\tstate = running\n",
		"\tstate = 0123456789012345678901234567890123456789012345678901234567890123456789\n",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct unit_state state = {.active = UNIT_STOPPING};
		assert_int_equal(launchd_print_parse(0, printed(lines[i]), &state, NULL), -EBADMSG);
		assert_int_equal(state.active, UNIT_STOPPING);
	}
}

static void its_own_words_are_one_line(void **unused)
{
	(void)unused;
	char out[40];
	launchd_words("Bad request.\nCould not find it\n\n", out, sizeof out);
	assert_string_equal(out, "Could not find it");
	launchd_words("Bad request.\n", out, sizeof out);
	assert_string_equal(out, "");
	launchd_words("", out, sizeof out);
	assert_string_equal(out, "");
	launchd_words("Bootstrap failed: 5: Input/output error, and much more than fits", out, sizeof out);
	assert_int_equal(strlen(out), sizeof out - 1);
}

static void label_fits_the_longest(void **unused)
{
	(void)unused;
	char label[LAUNCHD_LABEL_MAX], prefix[PLANE_PREFIX_MAX + 1], text[POD_NAME_MAX + 1];
	struct pod_name name;
	memset(prefix, 'p', PLANE_PREFIX_MAX);
	prefix[PLANE_PREFIX_MAX] = '\0';
	memset(text, 'n', POD_NAME_MAX);
	text[POD_NAME_MAX] = '\0';
	assert_int_equal(pod_name_parse(text, POD_NAME_MAX, &name, NULL), 0);
	launchd_label(prefix, &name, label);
	assert_int_equal(strlen(label), strlen("dev.kirocrew.pod..") + PLANE_PREFIX_MAX + POD_NAME_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_states_are_understood),
		cmocka_unit_test(V02_a_terminal_status_is_a_failure_whatever_launchd_plans),
		cmocka_unit_test(only_the_explicit_answer_means_gone),
		cmocka_unit_test(what_stands_there_twice_is_not_believed),
		cmocka_unit_test(its_own_words_are_one_line),
		cmocka_unit_test(label_fits_the_longest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
