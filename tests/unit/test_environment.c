/* Contract, section 5: what a payload and an agent child run with. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsops/cleanup.h"
#include "pod/model/environment.h"
#include "pod/model/refusal.h"

static struct plane plane;
static struct pod_name name;
static struct pod_paths paths;

static int setup(void **state)
{
	(void)state;
	struct err err = {0};
	plane = (struct plane){.home = "/home/op",
			       .root = "/pods",
			       .pods_dir = "/home/op/.kiro/crew/pods",
			       .artifacts = "/pods/.e2e-artifacts",
			       .base_port = 7810,
			       .port_span = 199,
			       .live_port = 5476,
			       .prefix = "kirocrew-pod",
			       .path = "/usr/local/bin:/usr/bin:/bin",
			       .repo = "/src",
			       .health_secs = 90};
	assert_int_equal(pod_name_parse("demo", 4, &name, &err), 0);
	assert_int_equal(pod_paths_make(&plane, &name, &paths, &err), 0);
	return 0;
}

static struct spec checkout_spec(void)
{
	return (struct spec){.id = "0b54b1f6-6d9c-4d04-8a33-0f2f3a4bd0a1", .checkout = "/src/crew", .port = 7933, .embeddings = true};
}

static struct spec command_spec(void)
{
	static char *words[] = {"server", NULL};
	return (struct spec){.id = "0b54b1f6-6d9c-4d04-8a33-0f2f3a4bd0a1", .exec = {words, 1}, .port = 7933, .embeddings = true};
}

static struct environment payload(const struct spec *spec, char *const *base_words)
{
	AUTO_ENVIRONMENT struct environment base = {0};
	struct environment made = {0};
	struct err err = {0};
	assert_int_equal(environment_copy(base_words, &base, &err), 0);
	assert_int_equal(environment_for_payload(&plane, &name, spec, &paths, &base, &made, &err), 0);
	return made;
}

static size_t occurrences(const struct environment *environment, const char *wanted)
{
	size_t n = 0, len = strlen(wanted);
	for (size_t i = 0; i < environment->n; i++)
		n += strncmp(environment->v[i], wanted, len) == 0 && environment->v[i][len] == '=';
	return n;
}

static void expect(const struct environment *environment, const char *variable, const char *value)
{
	const char *found = environment_get(environment, variable);
	if (!value) {
		if (found)
			fail_msg("%s is set to %s", variable, found);
		return;
	}
	if (!found)
		fail_msg("%s is not set", variable);
	assert_string_equal(found, value);
	assert_int_equal(occurrences(environment, variable), 1);
}

static void gateway_gets_what_section_5_sets(void **state)
{
	(void)state;
	struct spec spec = checkout_spec();
	AUTO_ENVIRONMENT struct environment made =
	    payload(&spec, (char *[]){"HOME=/home/op", "LANG=C", "XDG_RUNTIME_DIR=/run/user/7", "PATH=/evil", NULL});
	static const char *const expected[][2] = {
	    {"KIROCREW_HOME", "/pods/demo"},
	    {"KIROCREW_OS_HOME", "/pods/demo/os-home"},
	    {"KIRO_HOME", "/pods/demo/kiro"},
	    {"KIROCREW_WORKSPACE", "/pods/demo/workspace"},
	    {"KIROCREW_PORT", "7933"},
	    {"PORT", "7933"},
	    {"KIROCREW_PROJECT_DIR", "/src/crew"},
	    {"KIROCREW_POD", "1"},
	    {"KIROCREW_POD_NAME", "demo"},
	    {"KIROCREW_POD_ID", "0b54b1f6-6d9c-4d04-8a33-0f2f3a4bd0a1"},
	    {"KIROCREW_BIND", "127.0.0.1"},
	    {"GH_CONFIG_DIR", "/pods/demo/.config/gh"},
	    {"GLAB_CONFIG_DIR", "/pods/demo/.config/glab-cli"},
	    {"AZURE_CONFIG_DIR", "/pods/demo/.azure"},
	    {"AZURE_EXTENSION_DIR", "/pods/demo/.azure/cliextensions"},
	    {"PATH", "/src/crew/.venv/bin:/usr/local/bin:/usr/bin:/bin"},
	    {"HOME", "/home/op"},
	    {"LANG", "C"},
	    {"XDG_RUNTIME_DIR", "/run/user/7"},
	    {"KIROCREW_POD_ENV_DIR", "/home/op/.kiro/crew/pods"},
	    {"KIROCREW_SKIP_MODEL_DOWNLOAD", NULL},
	    {"KIROCREW_KIRO_BIN", NULL},
	    {"KIROCREW_POD_APPROVAL", NULL},
	    {"KIROCREW_POD_CRONS", NULL},
	    {"XDG_DATA_HOME", NULL},
	};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		expect(&made, expected[i][0], expected[i][1]);
	assert_null(made.v[made.n]);
}

static void env_verb_gets_only_what_section_5_sets(void **state)
{
	(void)state;
	struct spec spec = checkout_spec();
	AUTO_ENVIRONMENT struct environment made = {0};
	struct err err = {0};
	assert_int_equal(environment_of_pod(&plane, &name, &spec, &paths, &made, &err), 0);
	assert_int_equal(made.n, 16);
	expect(&made, "KIROCREW_PROJECT_DIR", "/src/crew");
	expect(&made, "HOME", NULL);
	expect(&made, "KIROCREW_POD_ROOT", NULL);
}

static void X23_secrets_are_removed_and_near_misses_kept(void **state)
{
	(void)state;
	static char *base[] = {"SLACK_X=gone",
			       "SLACK_=gone",
			       "WECOM_A=gone",
			       "MICROSOFT_APP_ID=gone",
			       "FEISHU_K=gone",
			       "JIRA_TOKEN_FOO=gone",
			       "KIROCREW_BOUND_CHANNEL=gone",
			       "MY_TOKEN=gone",
			       "_TOKEN=gone",
			       "GITHUB_TOKEN=gone",
			       "TELEGRAM_BOT_TOKEN=gone",
			       "DISCORD_BOT_TOKEN=gone",
			       "WEBEX_BOT_TOKEN=gone",
			       "WEIXIN_TOKEN=gone",
			       "JIRA_API_TOKEN=gone",
			       "AZURE_DEVOPS_EXT_PAT=gone",
			       "BITBUCKET_EMAIL=gone",
			       "BITBUCKET_API_TOKEN=gone",
			       "XAWS_TOKEN=gone",
			       "AWS_SESSION_TOKEN=kept",
			       "AWS_CONTAINER_AUTHORIZATION_TOKEN=kept",
			       "AWS_PROFILE=kept",
			       "KIRO_API_KEY=kept",
			       "KIROCREW_OWNER_ID=kept",
			       "SLACK=kept",
			       "MY_TOKENS=kept",
			       "TOKEN=kept",
			       "BITBUCKET_EMAILS=kept",
			       "XSLACK_A=kept",
			       "EMPTY=",
			       NULL};
	struct spec spec = checkout_spec();
	AUTO_ENVIRONMENT struct environment made = payload(&spec, base);
	size_t gone = 0, kept = 0;
	for (char **entry = base; *entry; entry++) {
		char *copy = strdup(*entry), *value = strchr(copy, '=');
		assert_non_null(copy);
		*value++ = '\0';
		bool removed = strcmp(value, "gone") == 0;
		expect(&made, copy, removed ? NULL : value);
		gone += removed;
		kept += !removed;
		free(copy);
	}
	assert_int_equal(gone, 19);
	assert_int_equal(kept, 11);
}

static void command_payload_has_its_own_home(void **state)
{
	(void)state;
	struct spec spec = command_spec();
	AUTO_ENVIRONMENT struct environment made =
	    payload(&spec, (char *[]){"HOME=/home/op", "XDG_CONFIG_HOME=/home/op/c", "XDG_RUNTIME_DIR=/run/user/7",
				      "XDG_DATA_DIRS=/usr/share", "KIROCREW_PROJECT_DIR=/outer", NULL});
	expect(&made, "HOME", "/pods/demo/os-home");
	expect(&made, "XDG_CONFIG_HOME", "/pods/demo/os-home/.config");
	expect(&made, "XDG_DATA_HOME", "/pods/demo/os-home/.local/share");
	expect(&made, "XDG_CACHE_HOME", "/pods/demo/os-home/.cache");
	expect(&made, "XDG_STATE_HOME", "/pods/demo/os-home/.local/state");
	expect(&made, "XDG_RUNTIME_DIR", NULL);
	expect(&made, "XDG_DATA_DIRS", "/usr/share");
	expect(&made, "KIROCREW_PROJECT_DIR", NULL);
	expect(&made, "PATH", "/usr/local/bin:/usr/bin:/bin");
	expect(&made, "KIROCREW_POD_ROOT", "/pods");
}

/* A checkout whose own configuration names the command: its directory and its tools, but a home of the pod's. */
static void command_of_a_checkout_has_both(void **state)
{
	(void)state;
	struct spec spec = command_spec();
	spec.checkout = (char[]){"/src/crew"};
	AUTO_ENVIRONMENT struct environment made = payload(&spec, (char *[]){"HOME=/home/op", NULL});
	expect(&made, "HOME", "/pods/demo/os-home");
	expect(&made, "KIROCREW_PROJECT_DIR", "/src/crew");
	expect(&made, "PATH", "/src/crew/.venv/bin:/usr/local/bin:/usr/bin:/bin");
}

static void embeddings_off_skips_the_model(void **state)
{
	(void)state;
	char *base[] = {"KIROCREW_EMBED_MODEL_PATH=/m", "KIROCREW_EMBED_MODEL_URL=u", NULL};
	struct spec spec = checkout_spec();
	AUTO_ENVIRONMENT struct environment on = payload(&spec, base);
	expect(&on, "KIROCREW_EMBED_MODEL_PATH", "/m");
	expect(&on, "KIROCREW_EMBED_MODEL_URL", "u");
	spec.embeddings = false;
	AUTO_ENVIRONMENT struct environment off = payload(&spec, base);
	expect(&off, "KIROCREW_SKIP_MODEL_DOWNLOAD", "1");
	expect(&off, "KIROCREW_EMBED_MODEL_PATH", NULL);
	expect(&off, "KIROCREW_EMBED_MODEL_URL", NULL);
}

static void approvals_come_from_the_record_alone(void **state)
{
	(void)state;
	static const struct {
		enum approval approval;
		const char *word;
	} cases[] = {{APPROVAL_UNSET, NULL}, {APPROVAL_READS, "reads"}, {APPROVAL_YOLO, "yolo"}, {APPROVAL_INTERACTIVE, "interactive"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct spec spec = checkout_spec();
		spec.approval = cases[i].approval;
		spec.crons = i == 1;
		AUTO_ENVIRONMENT struct environment made =
		    payload(&spec, (char *[]){"KIROCREW_POD_APPROVAL=yolo", "KIROCREW_POD_CRONS=1", "KIROCREW_POD_ID=outer", NULL});
		expect(&made, "KIROCREW_POD_APPROVAL", cases[i].word);
		expect(&made, "KIROCREW_POD_CRONS", i == 1 ? "1" : NULL);
		expect(&made, "KIROCREW_POD_ID", spec.id);
	}
}

static void kiro_bin_is_exported(void **state)
{
	(void)state;
	struct spec spec = checkout_spec();
	(void)snprintf(plane.kiro_bin, sizeof plane.kiro_bin, "/opt/kiro-cli");
	AUTO_ENVIRONMENT struct environment made = payload(&spec, (char *[]){"KIROCREW_KIRO_BIN=/other", NULL});
	expect(&made, "KIROCREW_KIRO_BIN", "/opt/kiro-cli");
	*plane.kiro_bin = '\0';
	AUTO_ENVIRONMENT struct environment unset = payload(&spec, (char *[]){"KIROCREW_KIRO_BIN=/other", NULL});
	expect(&unset, "KIROCREW_KIRO_BIN", "/other");
}

static void port_is_the_preferred_one_when_none_is_recorded(void **state)
{
	(void)state;
	struct spec spec = checkout_spec();
	spec.port = 0;
	AUTO_ENVIRONMENT struct environment made = payload(&spec, (char *[]){NULL});
	expect(&made, "PORT", "7933"); /* contract, section 4: demo */
}

static void checkout_with_a_colon_is_refused(void **state)
{
	(void)state;
	struct spec spec = checkout_spec();
	spec.checkout = (char[]){"/src:x/crew"};
	AUTO_ENVIRONMENT struct environment made = {0};
	struct err err = {0};
	assert_int_equal(environment_of_pod(&plane, &name, &spec, &paths, &made, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_VALUE);
	assert_string_equal(err.subject, "/src:x/crew");
	assert_null(made.v);
}

static void agent_child_has_neither_credentials_nor_data_home(void **state)
{
	(void)state;
	char *base[] = {"HOME=/home/op",
			"USERPROFILE=/home/op",
			"XDG_DATA_HOME=/d",
			"LOCALAPPDATA=l",
			"APPDATA=a",
			"AWS_CONFIG_FILE=f",
			"AWS_SHARED_CREDENTIALS_FILE=f",
			"AWS_WEB_IDENTITY_TOKEN_FILE=f",
			"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=u",
			"AWS_CONTAINER_CREDENTIALS_FULL_URI=u",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN=t",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=f",
			"AWS_SECRET_ACCESS_KEY=s",
			"AWS_SECRET=s",
			"AWS_SESSION_TOKEN=s",
			"AWS_SESSION_X=s",
			"AWS_ACCESS_KEY_ID=kept",
			"AWS_REGION=kept",
			"KIRO_API_KEY=kept",
			"XDG_CONFIG_HOME=kept",
			NULL};
	struct spec spec = checkout_spec();
	AUTO_ENVIRONMENT struct environment gateway = payload(&spec, base), agent = {0};
	struct err err = {0};
	expect(&gateway, "AWS_SECRET_ACCESS_KEY", "s");
	assert_int_equal(environment_for_agent(&gateway, &paths, &agent, &err), 0);
	expect(&agent, "HOME", "/pods/demo/os-home");
	expect(&agent, "USERPROFILE", "/pods/demo/os-home");
	size_t removed = 0;
	for (char **entry = base + 2; *entry; entry++) {
		char *copy = strdup(*entry), *value = strchr(copy, '=');
		assert_non_null(copy);
		*value++ = '\0';
		bool kept = strcmp(value, "kept") == 0;
		expect(&agent, copy, kept ? "kept" : NULL);
		removed += !kept;
		free(copy);
	}
	assert_int_equal(removed, 14);
	expect(&agent, "KIROCREW_HOME", "/pods/demo");
}

static void a_second_entry_of_a_name_is_replaced_too(void **state)
{
	(void)state;
	AUTO_ENVIRONMENT struct environment made = {0};
	struct err err = {0};
	assert_int_equal(environment_copy((char *[]){"PORT=1", "A=1", "PORT=2", "PORTS=3", "nothing", "=x", NULL}, &made, &err), 0);
	assert_int_equal(made.n, 4);
	assert_int_equal(environment_set(&made, "PORT", "9", &err), 0);
	expect(&made, "PORT", "9");
	expect(&made, "PORTS", "3");
	environment_unset(&made, "PORT");
	expect(&made, "PORT", NULL);
	assert_int_equal(made.n, 2);
	assert_int_equal(environment_set(&made, "A=B", "9", &err), -EINVAL);
	assert_int_equal(environment_set(&made, "", "9", &err), -EINVAL);
}

static int run_true(char *const *envp)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execve("/bin/true", (char *[]){"true", NULL}, envp);
		_exit(errno == E2BIG ? 99 : 98);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void X22_longest_entry_works_and_one_byte_more_is_refused(void **state)
{
	(void)state;
	size_t longest = 131071;
	AUTO_FREE char *value = calloc(1, longest + 2);
	assert_non_null(value);
	memset(value, 'x', longest - 2); /* with "A=" 131,071 bytes */
	AUTO_ENVIRONMENT struct environment made = {0};
	struct err err = {0};
	assert_int_equal(environment_set(&made, "A", value, &err), 0);
	assert_int_equal(strlen(made.v[0]), longest);
	assert_int_equal(run_true(made.v), 0);

	value[longest - 2] = 'x';
	assert_int_equal(environment_set(&made, "A", value, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_VALUE);
	assert_string_equal(err.subject, "A");
	assert_int_equal(strlen(made.v[0]), longest);

	AUTO_FREE char *entry = malloc(longest + 2);
	assert_non_null(entry);
	(void)snprintf(entry, longest + 2, "A=%s", value);
	AUTO_ENVIRONMENT struct environment copy = {0};
	err = (struct err){0};
	assert_int_equal(environment_copy((char *[]){entry, NULL}, &copy, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_VALUE);
	assert_string_equal(err.subject, "A");
	/* It is the kernel's own limit where pages are of 4 KiB. */
	if (sysconf(_SC_PAGESIZE) == 4096)
		assert_int_equal(run_true((char *[]){entry, NULL}), 99);
}

static void X22_ten_thousand_variables_pass(void **state)
{
	(void)state;
	enum { COUNT = 10000 };
	char **base = calloc(COUNT + 1, sizeof *base);
	assert_non_null(base);
	for (size_t i = 0; i < COUNT; i++)
		assert_true(asprintf(&base[i], "VARIABLE_%zu=%zu", i, i) > 0);
	struct spec spec = command_spec();
	AUTO_ENVIRONMENT struct environment made = payload(&spec, base);
	expect(&made, "VARIABLE_0", "0");
	expect(&made, "VARIABLE_9999", "9999");
	assert_true(made.n > COUNT);
	assert_int_equal(run_true(made.v), 0);
	for (size_t i = 0; i < COUNT; i++)
		free(base[i]);
	free(base);
}

static void paths_are_those_of_section_2(void **state)
{
	(void)state;
	assert_string_equal(paths.home, "/pods/demo");
	assert_string_equal(paths.run, "/pods/demo/run");
	assert_string_equal(paths.log, "/pods/.e2e-artifacts/demo/pod.log");
	struct plane deep = plane;
	struct err err = {0};
	struct pod_paths other;
	memset(deep.root, 'a', sizeof deep.root - 1);
	deep.root[0] = '/';
	assert_int_equal(pod_paths_make(&deep, &name, &other, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_VALUE);
	(void)snprintf(deep.root, sizeof deep.root, "/");
	assert_int_equal(pod_paths_make(&deep, &name, &other, &err), 0);
	assert_string_equal(other.home, "/demo");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(gateway_gets_what_section_5_sets, setup),
	    cmocka_unit_test_setup(env_verb_gets_only_what_section_5_sets, setup),
	    cmocka_unit_test_setup(X23_secrets_are_removed_and_near_misses_kept, setup),
	    cmocka_unit_test_setup(command_payload_has_its_own_home, setup),
	    cmocka_unit_test_setup(command_of_a_checkout_has_both, setup),
	    cmocka_unit_test_setup(embeddings_off_skips_the_model, setup),
	    cmocka_unit_test_setup(approvals_come_from_the_record_alone, setup),
	    cmocka_unit_test_setup(kiro_bin_is_exported, setup),
	    cmocka_unit_test_setup(port_is_the_preferred_one_when_none_is_recorded, setup),
	    cmocka_unit_test_setup(checkout_with_a_colon_is_refused, setup),
	    cmocka_unit_test_setup(agent_child_has_neither_credentials_nor_data_home, setup),
	    cmocka_unit_test_setup(a_second_entry_of_a_name_is_replaced_too, setup),
	    cmocka_unit_test_setup(X22_longest_entry_works_and_one_byte_more_is_refused, setup),
	    cmocka_unit_test_setup(X22_ten_thousand_variables_pass, setup),
	    cmocka_unit_test_setup(paths_are_those_of_section_2, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
