#include "seal_test.h"

#include <errno.h>
#include <signal.h>

#include "pod/model/refusal.h"
#include "pod/system/viability.h"

static struct sandbox_program bwrap, off;
static struct pin home = PIN_NONE;
static struct environment environment;
static struct viability v;

static int set_up(void **state)
{
	char home_entry[PATH_MAX], path_entry[PATH_MAX];
	sandbox_find(&bwrap);
	off = sandbox_none();
	if (test_dir_make(state) < 0)
		return -1;
	make_dir(at("home"));
	make_dir(at("home/run"));
	make_dir(at("home/os-home"));
	(void)snprintf(home_entry, sizeof home_entry, "HOME=%s", at("home/os-home"));
	(void)snprintf(path_entry, sizeof path_entry, "PATH=%s:/usr/bin:/bin", at("bin"));
	char *envp[] = {home_entry, path_entry, NULL};
	return environment_copy(envp, &environment, NULL) < 0 ? -1 : pin_open(at("home"), &home, NULL);
}
static int tear_down(void **state)
{
	environment_free(&environment);
	pin_close(&home);
	return test_dir_remove(state);
}

static const char *agent(void)
{
	static char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%.2000s/fake_agent", getenv("TEST_PROGRAMS") ? getenv("TEST_PROGRAMS") : ".");
	return path;
}
static enum verdict probe_with(const struct sandbox_program *sandbox, int64_t limit_ms, const char *signed_out, const char *first, ...)
{
	char *argv[8];
	size_t n = 0;
	va_list words;
	va_start(words, first);
	for (const char *word = first; word; word = va_arg(words, const char *))
		argv[n++] = (char *)(uintptr_t)word;
	va_end(words);
	argv[n] = NULL;
	struct words exec = {.v = argv, .n = n};
	struct viability_input input = {.exec = &exec, .environment = &environment, .cwd = at("home"), .home = &home, .home_path = at("home"),
					.sandbox = sandbox, .signed_out = signed_out, .limit_ms = limit_ms};
	struct err err = {0};
	memset(&v, 0, sizeof v);
	if (viability_probe(&input, &v, &err) < 0)
		fail_msg("%s", err.text);
	return v.verdict;
}
#define PROBE(...) probe_with(sandbox, 20000, NULL, agent(), __VA_ARGS__, (const char *)NULL)
#define PROBE_MS(ms, ...) probe_with(sandbox, ms, NULL, agent(), __VA_ARGS__, (const char *)NULL)
#define assert_verdict(expected, expression)                                  \
	do {                                                                  \
		enum verdict got_ = (expression);                             \
		if (got_ != (expected))                                       \
			fail_msg("verdict %d, detail: %s", (int)got_, v.detail); \
	} while (0)
static bool detail_has(const char *text)
{
	return strstr(v.detail, text) != NULL;
}

static void is_viable_at_the_first_answer(const struct sandbox_program *sandbox)
{
	assert_verdict(VERDICT_VIABLE, PROBE("at-once"));
	assert_true(v.ms < 5000);
	assert_string_equal(v.detail, "");
	assert_string_equal(v.child, agent());
	assert_string_equal(v.home, at("home/os-home"));
	assert_string_equal(verdict_name(v.verdict), "viable");
	assert_false(verdict_warns(v.verdict));
}
static void V07_slow_is_not_signed_out(const struct sandbox_program *sandbox)
{
	assert_verdict(VERDICT_VIABLE, PROBE("slow", "2000"));
	assert_true(v.ms >= 2000 && v.ms < 12000);
}
static void never_answers(const struct sandbox_program *sandbox)
{
	assert_verdict(VERDICT_SILENT, PROBE_MS(400, "never"));
	assert_true(detail_has("did not answer") && verdict_warns(v.verdict));
	assert_true(v.ms >= 390 && v.ms < 10000);
	assert_verdict(VERDICT_SILENT, PROBE_MS(400, "wrong-id"));
	assert_verdict(VERDICT_SILENT, PROBE_MS(400, "closes-stdout"));
	assert_verdict(VERDICT_SILENT, PROBE_MS(400, "invalid"));
	assert_verdict(VERDICT_SILENT, PROBE("error"));
	assert_true(detail_has("no\\") && detail_has("(-32000)") && !strchr(v.detail, '\x1b'));
}
static void exits(const struct sandbox_program *sandbox)
{
	assert_verdict(VERDICT_EXITED, PROBE("exit", "0"));
	assert_verdict(VERDICT_SIGNED_OUT, PROBE("exit", "1", "error: You are Not Logged In"));
	assert_true(verdict_warns(v.verdict));
	assert_verdict(VERDICT_SIGNED_OUT, PROBE("exit", "1", "please run `kiro-cli login`"));
	assert_verdict(VERDICT_SIGNED_OUT, probe_with(sandbox, 20000, "Bitte anmelden", agent(), "exit", "3", "Fehler: bitte anmelden!", (const char *)NULL));
	assert_verdict(VERDICT_DEAD, PROBE("exit", "3", "Fehler: bitte anmelden!"));
	assert_verdict(VERDICT_SIGNED_OUT, PROBE("stdout-login"));
	assert_verdict(VERDICT_EXITED, PROBE("exit", "0", "not logged in"));
	assert_verdict(VERDICT_DEAD, PROBE("exit", "1", "a library is \x1b[31mmissing\xff"));
	assert_true(detail_has("exit status 1") && detail_has("missing") && detail_has(agent()) && detail_has(at("home/os-home")));
	assert_true(!strchr(v.detail, '\x1b') && !strchr(v.detail, '\xff'));
	assert_verdict(VERDICT_VIABLE, PROBE("answers-and-exits"));
	struct err err = {0};
	assert_verdict(VERDICT_DEAD, PROBE("exit", "4", "why"));
	assert_int_equal(viability_refuse(&v, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_AGENT_DEAD);
	assert_int_equal(err_exit_status(&err), 78);
	assert_non_null(strstr(err.text, "why"));
}
static void dies_by_signal(const struct sandbox_program *sandbox)
{
	assert_verdict(VERDICT_DEAD, PROBE("signal", "11"));
	assert_true(detail_has("signal 11") && detail_has("about to die"));
	assert_verdict(VERDICT_DEAD, PROBE("signal", "9"));
	assert_true(detail_has("signal 9"));
}
static void the_tail_is_500_characters(const struct sandbox_program *sandbox)
{
	char text[3000] = "";
	for (int i = 0; i < 700; i++)
		strcat(text, i == 199 ? "A" : i == 200 ? "B" : "\u20ac");
	assert_verdict(VERDICT_DEAD, PROBE("exit", "1", text));
	size_t euros = 0;
	for (const char *c = v.detail; (c = strstr(c, "\u20ac")); c += 3)
		euros++;
	assert_int_equal(euros, 499);
	assert_true(detail_has(": B"));
}
static void drains_and_bounds(const struct sandbox_program *sandbox)
{
	assert_verdict(VERDICT_VIABLE, PROBE("flood"));
	assert_verdict(VERDICT_VIABLE, PROBE("garbage"));
	assert_verdict(VERDICT_VIABLE, PROBE("closes-stdin"));
}
static void leaves_no_process(const struct sandbox_program *sandbox)
{
	const char *held = at("home/held");
	assert_verdict(VERDICT_VIABLE, PROBE("daemon", held));
	assert_true(exists(held));
	/* who still has it open would block a write lease */
	int fd = open(held, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	(void)close(fd);
	fd = open(held, O_WRONLY | O_CLOEXEC);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	(void)close(fd);
	(void)unlink(held);
}
static void V08_a_program_of_many_names(const struct sandbox_program *sandbox)
{
	if (!exists(at("bin"))) {
		make_dir(at("bin"));
		make_link(agent(), at("bin/multi"));
		make_file(at("bin/sibling"), "x");
	}
	assert_verdict(VERDICT_VIABLE, probe_with(sandbox, 20000, NULL, "multi", "argv0", "multi", (const char *)NULL));
	assert_string_equal(v.child, at("bin/multi"));
}
static void no_command(const struct sandbox_program *sandbox)
{
	assert_verdict(VERDICT_UNAVAILABLE, probe_with(sandbox, 20000, NULL, "no-such-agent-here", (const char *)NULL));
	assert_true(detail_has("no-such-agent-here") && !*v.child);
	assert_verdict(VERDICT_UNAVAILABLE, probe_with(sandbox, 20000, NULL, "/nothing/here", (const char *)NULL));
	if (!exists(at("plain-file"))) {
		make_file(at("plain-file"), "x");
		make_file(at("bad-interpreter"), "#!/nothing/here\n");
		assert_int_equal(chmod(at("bad-interpreter"), 0755), 0);
	}
	assert_verdict(VERDICT_DEAD, probe_with(sandbox, 20000, NULL, at("plain-file"), (const char *)NULL));
	assert_verdict(VERDICT_DEAD, probe_with(sandbox, 20000, NULL, at("bad-interpreter"), (const char *)NULL));
	assert_true(detail_has("/nothing/here"));
	assert_verdict(VERDICT_DEAD, probe_with(sandbox, 20000, NULL, at("home"), (const char *)NULL));
}

#define BOTH(name)                                                    \
	static void name##_sealed(void **state)                       \
	{                                                             \
		(void)state;                                          \
		if (bwrap.kind != SANDBOX_BWRAP)                      \
			SKIP("no bwrap: %s", bwrap.detail);           \
		name(&bwrap);                                         \
	}                                                             \
	static void name##_unsealed(void **state)                     \
	{                                                             \
		(void)state;                                          \
		name(&off);                                           \
	}
BOTH(is_viable_at_the_first_answer)
BOTH(V07_slow_is_not_signed_out)
BOTH(never_answers)
BOTH(exits)
BOTH(dies_by_signal)
BOTH(the_tail_is_500_characters)
BOTH(drains_and_bounds)
BOTH(leaves_no_process)
BOTH(V08_a_program_of_many_names)
BOTH(no_command)

static void the_agent_cannot_write_in_run(void **state)
{
	(void)state;
	const struct sandbox_program *sandbox = &bwrap;
	if (bwrap.kind != SANDBOX_BWRAP)
		SKIP("no bwrap: %s", bwrap.detail);
	assert_verdict(VERDICT_VIABLE, PROBE("writes-run", at("home/run/x")));
	sandbox = &off; /* the control */
	assert_verdict(VERDICT_DEAD, PROBE("writes-run", at("home/run/x")));
	assert_int_equal(unlink(at("home/run/x")), 0);
}
static void X46_no_sandbox_is_dead(void **state)
{
	(void)state;
	struct sandbox_program none;
	const struct sandbox_program *sandbox = &none;
	sandbox_find_in((const char *const[]){at("nothing"), NULL}, &none);
	assert_verdict(VERDICT_DEAD, PROBE("at-once"));
	assert_true(detail_has("bwrap is not installed"));
}

#define TWO(name) cmocka_unit_test(name##_sealed), cmocka_unit_test(name##_unsealed)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TWO(is_viable_at_the_first_answer), TWO(V07_slow_is_not_signed_out), TWO(never_answers), TWO(exits), TWO(dies_by_signal),
		TWO(the_tail_is_500_characters), TWO(drains_and_bounds), TWO(leaves_no_process), TWO(V08_a_program_of_many_names), TWO(no_command),
		cmocka_unit_test(the_agent_cannot_write_in_run), cmocka_unit_test(X46_no_sandbox_is_dead),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
