#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pod/model/refusal.h"
#include "pod/model/unit_map.h"
#include "pod/model/unit_text.h"

static struct unit_properties properties(const char *active, const char *sub, const char *result)
{
	struct unit_properties p = {.load_state = "loaded"};
	strcpy(p.active_state, active);
	strcpy(p.sub_state, sub);
	strcpy(p.result, result);
	return p;
}

static struct unit_state mapped(struct unit_properties p)
{
	struct unit_state state;
	struct err err = {0};
	assert_int_equal(unit_state_map(&p, "/sys/fs/cgroup", &state, &err), 0);
	return state;
}

static void active_states(void **unused)
{
	(void)unused;
	static const struct {
		const char *active, *sub;
		enum unit_active expected;
	} rows[] = {
		{"active", "running", UNIT_ACTIVE},
		{"reloading", "reload", UNIT_ACTIVE},
		{"activating", "start", UNIT_STARTING},
		{"activating", "start-pre", UNIT_STARTING},
		{"activating", "auto-restart", UNIT_RESTARTING},
		{"activating", "auto-restart-queued", UNIT_RESTARTING},
		{"deactivating", "stop-sigterm", UNIT_STOPPING},
		{"deactivating", "final-sigkill", UNIT_STOPPING},
		{"inactive", "dead", UNIT_INACTIVE},
		{"failed", "failed", UNIT_FAILED},
		{"something-new", "x", UNIT_UNKNOWN},
		{"", "", UNIT_UNKNOWN},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(mapped(properties(rows[i].active, rows[i].sub, "success")).active, rows[i].expected);
}

static void a_unit_without_file_is_absent_unless_it_runs(void **unused)
{
	(void)unused;
	struct unit_properties p = properties("inactive", "dead", "success");
	strcpy(p.load_state, "not-found");
	assert_int_equal(mapped(p).active, UNIT_ABSENT);
	strcpy(p.active_state, "active");
	assert_int_equal(mapped(p).active, UNIT_ACTIVE);
}

static void ends(void **unused)
{
	(void)unused;
	static const struct {
		const char *result;
		int code;
		enum unit_end expected;
	} rows[] = {
		{"success", 0, UNIT_END_NONE},
		{"success", CLD_EXITED, UNIT_END_EXITED},
		{"success", CLD_KILLED, UNIT_END_SIGNALED},
		{"exit-code", CLD_EXITED, UNIT_END_EXITED},
		{"signal", CLD_KILLED, UNIT_END_SIGNALED},
		{"core-dump", CLD_DUMPED, UNIT_END_SIGNALED},
		{"timeout", CLD_KILLED, UNIT_END_TIMEOUT},
		{"start-limit-hit", CLD_EXITED, UNIT_END_START_LIMIT},
		{"oom-kill", CLD_KILLED, UNIT_END_OTHER},
		{"resources", 0, UNIT_END_OTHER},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct unit_properties p = properties("failed", "failed", rows[i].result);
		p.exec_main_code = rows[i].code;
		p.exec_main_status = 9;
		struct unit_state state = mapped(p);
		assert_int_equal(state.end, rows[i].expected);
		assert_int_equal(state.status, 9);
	}
}

static void L26_a_failure_that_is_not_started_again_hit_the_limit(void **unused)
{
	(void)unused;
	struct unit_properties p = properties("failed", "failed", "exit-code");
	p.exec_main_code = CLD_EXITED;
	p.exec_main_status = 9;
	p.n_restarts = UNIT_START_LIMIT_BURST - 1;
	assert_int_equal(mapped(p).end, UNIT_END_START_LIMIT);
	p.n_restarts--;
	assert_int_equal(mapped(p).end, UNIT_END_EXITED);
	p.n_restarts++;
	p.exec_main_status = 78; /* its status is the reason */
	assert_int_equal(mapped(p).end, UNIT_END_EXITED);
	p.exec_main_status = 9;
	strcpy(p.active_state, "activating");
	assert_int_equal(mapped(p).end, UNIT_END_EXITED);
}

static void the_rest_is_carried(void **unused)
{
	(void)unused;
	struct unit_properties p = properties("active", "running", "success");
	strcpy(p.control_group, "/user.slice/a.service");
	p.main_pid = 42;
	p.n_restarts = 7;
	p.state_change_usec = 1234567;
	struct unit_state state = mapped(p);
	assert_string_equal(state.group.cgroup, "/sys/fs/cgroup/user.slice/a.service");
	assert_int_equal(state.main_pid, 42);
	assert_int_equal(state.restarts, 7);
	assert_int_equal(state.since_usec, 1234567);
	assert_string_equal(state.detail, "running");
	*p.control_group = 0;
	assert_string_equal(mapped(p).group.cgroup, "");
	strcpy(p.result, "oom-kill");
	assert_string_equal(mapped(p).detail, "oom-kill");
}

static void a_group_is_never_cut(void **unused)
{
	(void)unused;
	struct unit_properties p = properties("active", "running", "success");
	struct unit_state state = {.main_pid = 99};
	struct err err = {0};
	char mount[100];
	memset(p.control_group, 'x', sizeof p.control_group - 1);
	*p.control_group = '/';
	memset(mount, 'm', sizeof mount - 1);
	mount[sizeof mount - 1] = 0;
	assert_int_equal(unit_state_map(&p, mount, &state, &err), -ENAMETOOLONG);
	assert_int_equal(state.main_pid, 99);
}

static void names(void **unused)
{
	(void)unused;
	struct pod_name name;
	assert_int_equal(unit_name_split("kirocrew-pod", "kirocrew-pod@a.b-c_D.service", &name), 0);
	assert_string_equal(name.text, "a.b-c_D");
	static const char *const others[] = {"kirocrew-pod@.service",	"kirocrew-pod@a", "kirocrew-pod2@a.service", "a.service", "",
					     "kirocrew-pod@a/b.service", "kirocrew-pod@-a.service", "kirocrew-pod.service"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_int_equal(unit_name_split("kirocrew-pod", others[i], &name), -EINVAL);
}

static void differences(void **unused)
{
	(void)unused;
	struct unit_state a = mapped(properties("active", "running", "success")), b = a;
	b.since_usec = 5;
	assert_false(unit_state_differs(&a, &b));
	b.restarts = 1;
	assert_true(unit_state_differs(&a, &b));
	b = a;
	b.main_pid = 3;
	assert_true(unit_state_differs(&a, &b));
}

static const char template_text[] = "[Service]\nExecStart=/bin/tool _run %i\nRestart=on-failure\nRestartPreventExitStatus=3 70 78\n";

static struct unit_definition loaded(void)
{
	struct unit_definition d = {.load_state = "loaded",
				    .restart = "on-failure",
				    .fragment = "/c/systemd/user/p@.service",
				    .command = {.program = "/bin/tool", .last_words = "_run demo"}};
	d.prevent[3] = d.prevent[70] = d.prevent[78] = true;
	return d;
}

static struct pod_name demo = {"demo"};
static struct unit_expected expected(void)
{
	return (struct unit_expected){.unit = "p@demo.service",
				      .fragment = "/c/systemd/user/p@.service",
				      .program = "/bin/tool",
				      .template = template_text,
				      .name = &demo};
}

static void refused(struct unit_definition d, const char *what)
{
	struct unit_expected e = expected();
	struct err err = {0};
	assert_int_equal(unit_definition_check(&d, &e, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_BAD_CONFIG);
	assert_string_equal(err.subject, "p@demo.service");
	if (!strstr(err.text, what))
		fail_msg("\"%s\" is not in \"%s\"", what, err.text);
}

static void X26_what_is_not_ours_is_named(void **unused)
{
	(void)unused;
	struct unit_expected e = expected();
	struct unit_definition d = loaded();
	assert_int_equal(unit_definition_check(&d, &e, NULL), 0);
	strcpy(d.drop_ins, "/etc/systemd/user/service.d/harmless.conf");
	assert_int_equal(unit_definition_check(&d, &e, NULL), 0);

	strcpy(d.drop_ins, "/c/systemd/user/p@demo.service.d/evil.conf\n/c/systemd/user/p@.service.d/too.conf");
	strcpy(d.restart, "always");
	refused(d, "Restart= is overridden by /c/systemd/user/p@demo.service.d/evil.conf, /c/systemd/user/p@.service.d/too.conf");
	d = loaded();
	strcpy(d.command.program, "/bin/other");
	refused(d, "ExecStart=");
	d = loaded();
	strcpy(d.command.last_words, "_run other");
	refused(d, "ExecStart=");
	d = loaded();
	d.prevent[70] = false;
	refused(d, "RestartPreventExitStatus=");
	d = loaded();
	strcpy(d.load_state, "masked");
	strcpy(d.fragment, "/c/systemd/user/p@demo.service");
	refused(d, "masked by /c/systemd/user/p@demo.service");
	d = loaded();
	strcpy(d.load_state, "bad-setting");
	refused(d, "bad-setting");
	d = loaded();
	strcpy(d.fragment, "/c/systemd/user/p@demo.service");
	refused(d, "/c/systemd/user/p@demo.service");
}

static void loaded_is_what_is_on_disk(void **unused)
{
	(void)unused;
	static const char drop_in[] = "/c/systemd/user/p@demo.service.d/50-kirocrew-pod.conf";
	struct unit_expected e = expected();
	struct unit_definition d = loaded();
	assert_true(unit_definition_current(&d, &e));
	d.need_reload = true;
	assert_false(unit_definition_current(&d, &e));
	d = loaded();
	strcpy(d.load_state, "not-found");
	assert_false(unit_definition_current(&d, &e));
	d = loaded();
	e.drop_in = drop_in;
	assert_false(unit_definition_current(&d, &e));
	strcpy(d.drop_ins, "/x.conf\n/c/systemd/user/p@demo.service.d/50-kirocrew-pod.conf");
	assert_true(unit_definition_current(&d, &e));
	e.drop_in = NULL;
	assert_false(unit_definition_current(&d, &e));
}

static void values(void **unused)
{
	(void)unused;
	char out[16];
	assert_true(unit_text_value("A=1\nB=2\nA=3", "A", out, sizeof out));
	assert_string_equal(out, "3");
	assert_true(unit_text_value("A=1\nB=2\n", "B", out, sizeof out));
	assert_string_equal(out, "2");
	assert_false(unit_text_value("AB=1\n", "A", out, sizeof out));
	assert_false(unit_text_value("A=0123456789012345\n", "A", out, sizeof out));
	assert_false(unit_text_value("", "A", out, sizeof out));
}

static void advised(const struct manager_host *host, const char *with, const char *without)
{
	char sentence[512];
	manager_advice(host, sentence, sizeof sentence);
	if (!strstr(sentence, with))
		fail_msg("\"%s\" is not in \"%s\"", with, sentence);
	if (strstr(sentence, without))
		fail_msg("\"%s\" is in \"%s\"", without, sentence);
}

static void L28_advice_can_work_on_the_host(void **unused)
{
	(void)unused;
	struct manager_host host = {.uid = 1000, .runtime = "/run/user/1000", .runtime_owner = 1000};
	advised(&host, "was not booted with systemd", "loginctl");
	advised(&host, "/run/user/1000", "systemctl");
	host.systemd_is_init = true;
	advised(&host, "systemctl start user@1000.service", "loginctl");
	host.logind = true;
	advised(&host, "loginctl enable-linger", "systemctl");
	host.runtime_there = true;
	advised(&host, "neither a user manager nor a bus in /run/user/1000; `systemctl start user@1000.service`", "loginctl");
	host.socket_there = true;
	host.connect_error = -ECONNREFUSED;
	advised(&host, "does not answer (Connection refused)", "loginctl");
	host.runtime_owner = 0;
	advised(&host, "belongs to uid 0; unset XDG_RUNTIME_DIR", "loginctl");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(active_states),
		cmocka_unit_test(a_unit_without_file_is_absent_unless_it_runs),
		cmocka_unit_test(ends),
		cmocka_unit_test(L26_a_failure_that_is_not_started_again_hit_the_limit),
		cmocka_unit_test(the_rest_is_carried),
		cmocka_unit_test(a_group_is_never_cut),
		cmocka_unit_test(names),
		cmocka_unit_test(differences),
		cmocka_unit_test(X26_what_is_not_ours_is_named),
		cmocka_unit_test(loaded_is_what_is_on_disk),
		cmocka_unit_test(values),
		cmocka_unit_test(L28_advice_can_work_on_the_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
