#include "seal_test.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include "pod/model/mcp_client.h"
#include "pod/system/mcp_probe.h"

#define FAR deadline_in_ms(10000)

#ifdef __SANITIZE_ADDRESS__
#define UNDER_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_SANITIZER
#endif
#endif

static struct sandbox_program bwrap, off;
static struct pin home = PIN_NONE;
static struct environment environment;
static char home_path[PATH_MAX], home_text[PATH_MAX], program[PATH_MAX];
static struct mcp_context context;

static int set_up(void **state)
{
	sandbox_find(&bwrap);
	off = sandbox_none();
	if (test_dir_make(state) < 0)
		return -1;
	make_dir(at("home"));
	make_dir(at("home/run"));
	make_dir(at("home/work"));
	(void)snprintf(home_path, sizeof home_path, "%s", at("home"));
	(void)snprintf(home_text, sizeof home_text, "HOME=%s", home_path);
	(void)snprintf(program, sizeof program, "%.2000s/fake_mcp", getenv("TEST_PROGRAMS") ? getenv("TEST_PROGRAMS") : ".");
	char *envp[] = {home_text, (char[]){"PATH=/usr/bin:/bin"}, (char[]){"TMPDIR=/host-tmp"}, (char[]){"temp=/host-temp"}, NULL};
	if (environment_copy(envp, &environment, NULL) < 0 || pin_open(home_path, &home, NULL) < 0)
		return -1;
	context = (struct mcp_context){.home = &home, .home_path = home_path, .cwd = home_path, .environment = &environment, .sandbox = bwrap.kind == SANDBOX_BWRAP ? &bwrap : &off};
	return 0;
}
static int tear_down(void **state)
{
	environment_free(&environment);
	pin_close(&home);
	return test_dir_remove(state);
}

/* A server of the specification {"command", "args": [words], "env": env}. */
static struct mcp_servers spec(const char *command, const char *args, const char *env)
{
	char text[16384];
	struct mcp_servers servers = {0};
	struct err err = {0};
	(void)snprintf(text, sizeof text, "{\"mcpServers\":{\"srv\":{\"command\":\"%s\",\"args\":[%s],\"env\":{%s}}}}", command, args, env);
	if (mcp_spec_read(text, strlen(text), &servers, &err) < 0)
		fail_msg("%s", err.text);
	return servers;
}
static struct mcp_result probe_ms(const char *command, const char *args, const char *env, int64_t ms)
{
	struct mcp_servers servers = spec(command, args, env);
	struct mcp_result result = {0};
	struct err err = {0};
	if (mcp_probe(&context, &servers.v[0], "0", ms, &result, &err) < 0)
		fail_msg("%s", err.text);
	mcp_servers_free(&servers);
	return result;
}
static struct mcp_result probe(const char *mode)
{
	char args[256];
	(void)snprintf(args, sizeof args, "\"%s\"", mode);
	return probe_ms(program, args, "", MCP_REPLY_MS);
}
static bool has(const struct json *list, const char *part)
{
	for (size_t i = 0; i < json_count(list); i++)
		if (strstr(json_text(json_at(list, i)), part))
			return true;
	return false;
}
static void assert_ok(struct mcp_result *result, const char *tool)
{
	if (result->status != MCP_STATUS_OK)
		fail_msg("%s", result->detail);
	assert_true(has(result->tools, tool));
}
static void assert_error(struct mcp_result *result, const char *why)
{
	assert_int_equal(result->status, MCP_STATUS_ERROR);
	if (!strstr(result->detail, why))
		fail_msg("\"%s\" is not in \"%s\"", why, result->detail);
}
static size_t scratches(void)
{
	size_t n = 0;
	DIR *d = opendir(at("home/run/mcp-tmp"));
	for (struct dirent *e; d && (e = readdir(d));)
		n += !strncmp(e->d_name, "probe-", 6);
	if (d)
		(void)closedir(d);
	return n;
}

/* ---- specification ---- */

static void the_specification_is_read_and_edited(void **state)
{
	(void)state;
	const char *text = "{\"first\":[1],\"mcpServers\":{\"b\":{\"command\":\"c\",\"args\":[\"x\"],\"autoApprove\":[\"t\"],\"env\":{\"K\":\"v\"},\"disabled\":true},"
			   "\"a\":{\"url\":\"http://x\"},\"n\":{\"command\":\"c\",\"env\":{\"K\":1}}},\"last\":null}";
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	assert_int_equal(mcp_spec_read(text, strlen(text), &servers, NULL), 0);
	assert_int_equal(servers.n, 3);
	assert_string_equal(servers.v[0].name, "b");
	assert_true(servers.v[0].disabled && !*servers.v[0].problem);
	assert_string_equal(servers.v[0].env.v[0], "K=v");
	assert_non_null(strstr(servers.v[1].problem, "URL"));
	assert_non_null(strstr(servers.v[2].problem, "not a string"));
	char *argv[] = {(char[]){"new"}, (char[]){"--flag"}, NULL}, *none[] = {NULL}, *out = NULL, *removed = NULL;
	struct environment env = {.v = none, .n = 0};
	assert_int_equal(mcp_spec_add(text, strlen(text), "b", argv, &env, &out, NULL), 0);
	AUTO_JSON struct json *root = NULL;
	assert_int_equal(json_parse(out, strlen(out), &root, NULL), 0);
	assert_string_equal(json_key_at(root, 0), "first");
	assert_string_equal(json_key_at(root, 1), "mcpServers");
	assert_string_equal(json_key_at(root, 2), "last");
	const struct json *b = json_get(json_get(root, "mcpServers"), "b");
	assert_string_equal(json_key_at(json_get(root, "mcpServers"), 0), "b");
	assert_string_equal(json_text(json_get(b, "command")), "new");
	assert_string_equal(json_text(json_at(json_get(b, "args"), 0)), "--flag");
	assert_non_null(json_get(b, "autoApprove"));
	assert_null(json_get(b, "env"));
	assert_int_equal(mcp_spec_remove(out, strlen(out), "b", &removed, NULL), 0);
	assert_null(strstr(removed, "--flag"));
	assert_int_equal(mcp_spec_remove(removed, strlen(removed), "b", &out, NULL), -ENOENT);
	free(removed);
	free(out);
	assert_int_equal(mcp_spec_add("", 0, "s", argv, &env, &out, NULL), 0);
	assert_non_null(strstr(out, "\"mcpServers\""));
	free(out);
	struct err err = {0};
	assert_true(mcp_spec_read("{", 1, &servers, &err) < 0 && mcp_spec_read("[]", 2, &servers, &err) < 0);
	assert_true(mcp_spec_read("{\"mcpServers\":{\"a\":{},\"a\":{}}}", 31, &servers, &err) < 0);
}

/* ---- M01 to M08 ---- */

static void M01_junk_before_the_answer(void **state)
{
	(void)state;
	struct mcp_result result = probe("junk");
	assert_ok(&result, "a");
	assert_true(has(result.warnings, "8 lines") && has(result.warnings, "first "));
	assert_false(has(result.warnings, "\x1b"));
	assert_string_equal(result.protocol, "2025-11-25");
	assert_string_equal(json_text(json_get(result.server_info, "name")), "fake");
	mcp_result_free(&result);
}
static void M02_each_end_has_its_own_reason(void **state)
{
	(void)state;
	int64_t begun = monotonic_ns();
	make_file(at("plain"), "x");
	make_file(at("script"), "#!/no/such/interpreter\n");
	assert_int_equal(chmod(at("script"), 0755), 0);
	char closes[PATH_MAX + 16], exits[PATH_MAX + 32];
	(void)snprintf(closes, sizeof closes, "\"closes\"");
	(void)snprintf(exits, sizeof exits, "\"exit\",\"0\"");
	struct {
		const char *command, *args, *why;
	} table[] = {
		{"/bin/false", "", "exit status 1"},	  {"/no/such/server", "", "not found"}, {"no-such-server", "", "not found"},
		{at("plain"), "", "cannot be executed"},  {at("script"), "", "/no/such/interpreter"},
		{program, exits, "exit status 0"},	  {program, closes, "closed its stdout"}, {program, "\"exit\",\"7\"", "exit status 7"},
		{"/bin/sh", "\"-c\",\"echo because >&2; exit 3\"", "stderr: because"}, {"/bin/sh", "\"-c\",\"kill -9 $$\"", "signal 9"},
		{program, "\"error\"", "broken"},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct mcp_result result = probe_ms(table[i].command, table[i].args, "", MCP_REPLY_MS);
		assert_error(&result, table[i].why);
		mcp_result_free(&result);
	}
	assert_true(monotonic_ns() - begun < 12000000000LL);
}
static void M03_stderr_is_drained(void **state)
{
	(void)state;
	struct mcp_result result = probe("stderr");
	assert_ok(&result, "a");
	mcp_result_free(&result);
}
static void M04_bytes_that_are_no_text(void **state)
{
	(void)state;
	struct mcp_result result = probe("bytes");
	assert_ok(&result, "a");
	assert_true(has(result.warnings, "3 lines"));
	AUTO_JSON struct json *json = mcp_result_json(&result);
	char *text = json_dump(json, 0);
	assert_true(text && text_is_utf8(text, strlen(text)));
	free(text);
	mcp_result_free(&result);
}
static int M05_in_little_memory(void *unused)
{
	(void)unused;
#ifndef UNDER_SANITIZER /* which maps terabytes */
	struct rlimit limit = {.rlim_cur = 200 << 20, .rlim_max = 200 << 20};
	if (setrlimit(RLIMIT_AS, &limit) < 0)
		return 1;
#endif
	struct mcp_result result = probe("then-endless");
	assert_ok(&result, "a");
	mcp_result_free(&result);
	result = probe("endless");
	assert_error(&result, "line too long");
	mcp_result_free(&result);
	result = probe("endless-after-first");
	assert_int_equal(result.status, MCP_STATUS_OK);
	assert_true(has(result.warnings, "line too long"));
	mcp_result_free(&result);
	return 0;
}
static void M05_endless_lines(void **state)
{
	(void)state;
	assert_int_equal(in_child(M05_in_little_memory, NULL), 0);
	assert_int_equal(scratches(), 0);
}
static void M06_other_messages(void **state)
{
	(void)state;
	struct mcp_result result = probe("noise");
	assert_ok(&result, "a");
	assert_int_equal(json_count(result.warnings), 0);
	mcp_result_free(&result);
}
static void M07_strict_order(void **state)
{
	(void)state;
	struct mcp_result result = probe("strict");
	assert_ok(&result, "a");
	mcp_result_free(&result);
}
static void M08_pages(void **state)
{
	(void)state;
	struct mcp_result result = probe("pages");
	assert_ok(&result, "c");
	assert_int_equal(json_count(result.tools), 3);
	assert_int_equal(json_count(result.warnings), 0);
	mcp_result_free(&result);
	result = probe("repeats");
	assert_ok(&result, "a");
	assert_true(has(result.warnings, "repeats a cursor"));
	mcp_result_free(&result);
	result = probe("grows");
	assert_ok(&result, "a");
	assert_int_equal(json_count(result.tools), MCP_PAGES_MAX);
	assert_true(has(result.warnings, "has no end"));
	mcp_result_free(&result);
	result = probe("no-tools");
	assert_int_equal(result.status, MCP_STATUS_OK);
	mcp_result_free(&result);
}
static void protocols_and_limits(void **state)
{
	(void)state;
	static const char *const known[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
	char args[64];
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		(void)snprintf(args, sizeof args, "\"protocol\",\"%s\"", known[i]);
		struct mcp_result result = probe_ms(program, args, "", MCP_REPLY_MS);
		assert_ok(&result, "a");
		assert_string_equal(result.protocol, known[i]);
		mcp_result_free(&result);
	}
	struct mcp_result result = probe_ms(program, "\"protocol\",\"1999-01-01\"", "", MCP_REPLY_MS);
	assert_error(&result, "1999-01-01");
	mcp_result_free(&result);
	result = probe_ms(program, "\"never\"", "", 300);
	assert_error(&result, "did not answer `initialize` within 300 ms");
	assert_true(result.ms < 8000);
	mcp_result_free(&result);
}

/* ---- M09 to M14 ---- */

static void facts_args(char *out, size_t size)
{
	(void)snprintf(out, size, "\"facts\",\"%s\"", at("home/run"));
}
#define NEED_BWRAP                                        \
	do {                                              \
		if (bwrap.kind != SANDBOX_BWRAP)          \
			SKIP("no bwrap: %s", bwrap.detail); \
	} while (0)

static void assert_managed(struct mcp_result *result)
{
	char prefix[PATH_MAX], entry[PATH_MAX * 2];
	assert_ok(result, "directory=yes");
	assert_string_equal(temp_source_name(result->temp), "managed");
	(void)snprintf(prefix, sizeof prefix, "%s/mcp-tmp/probe-", at("home/run"));
	assert_memory_equal(result->temp_path, prefix, strlen(prefix));
	assert_int_equal(strlen(result->temp_path), strlen(prefix) + 8 + strlen("/tmp"));
	for (const char *const *key = (const char *const[]){"TMPDIR", "TMP", "TEMP", NULL}; *key; key++) {
		(void)snprintf(entry, sizeof entry, "%s=%s", *key, result->temp_path);
		assert_true(has(result->tools, entry));
	}
	assert_true(has(result->tools, "write=ok") && has(result->tools, "run=EROFS"));
	assert_false(exists(result->temp_path));
}
static void M09_the_table_of_the_issue(void **state)
{
	(void)state;
	NEED_BWRAP;
	char args[PATH_MAX], env[PATH_MAX];
	(void)mkdir(at("home/run/mcp-tmp"), 0700);
	facts_args(args, sizeof args);
	for (const char *const *below = (const char *const[]){"run/mcp-tmp", "run/custom-tmp", "run/x", "run", "run/", "/run/./x", NULL}; *below; below++) {
		(void)snprintf(env, sizeof env, "\"TMPDIR\":\"%s/%s\"", home_path, *below);
		struct mcp_result result = probe_ms(program, args, env, MCP_REPLY_MS);
		assert_managed(&result);
		assert_int_equal(result.refusals.n, 1);
		AUTO_JSON struct json *json = mcp_result_json(&result);
		const struct json *refusal = json_at(json_get(json, "temp_refusals"), 0);
		assert_string_equal(json_text(json_get(refusal, "key")), "TMPDIR");
		assert_string_equal(json_text(json_get(refusal, "path")), at("home/%s", *below));
		assert_string_equal(json_text(json_get(refusal, "cause")), "sealed");
		assert_string_equal(json_text(json_get(json, "sandbox")), "bwrap");
		assert_true(has(result.warnings, "sealed") && has(result.warnings, "srv"));
		mcp_result_free(&result);
	}
	(void)snprintf(env, sizeof env, "\"tMp\":\"%s/run\",\"TEMP\":\"/tmp\"", home_path);
	struct mcp_result result = probe_ms(program, args, env, MCP_REPLY_MS);
	assert_managed(&result);
	mcp_result_free(&result);
	result = probe_ms(program, args, "", MCP_REPLY_MS);
	assert_managed(&result);
	assert_int_equal(result.refusals.n, 0);
	mcp_result_free(&result);
	assert_int_equal(scratches(), 0);
}
static void M10_temp_is_writable_and_executable(void **state)
{
	(void)state;
	struct mcp_result result = probe("temp");
	assert_ok(&result, "a");
	mcp_result_free(&result);
	assert_int_equal(scratches(), 0);
}
static void M11_true_causes(void **state)
{
	(void)state;
	NEED_BWRAP;
	char args[PATH_MAX], env[PATH_MAX];
	make_dir(at("links"));
	make_dir(at("home/run/inner"));
	make_link(at("home/run/inner"), at("links/in"));
	make_link("self", at("links/self"));
	struct {
		const char *value, *cause;
	} table[] = {{at("links/in/../tmp"), "sealed"}, {at("links/in"), "sealed"}, {at("links/self"), "loop"}, {"//h/s", "remote-or-device"},
		     {"\\\\\\\\h\\\\s", "remote-or-device"}, {"tmp", "relative"}, {"", "empty"}};
	facts_args(args, sizeof args);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		(void)snprintf(env, sizeof env, "\"TEMP\":\"%s\"", table[i].value);
		struct mcp_result result = probe_ms(program, args, env, MCP_REPLY_MS);
		assert_managed(&result);
		assert_string_equal(contain_cause_name(result.refusals.v[0].answer.cause), table[i].cause);
		mcp_result_free(&result);
	}
}
static void M13_siblings_are_honoured(void **state)
{
	(void)state;
	NEED_BWRAP;
	char args[PATH_MAX], env[PATH_MAX], entry[PATH_MAX];
	facts_args(args, sizeof args);
	for (const char *const *name = (const char *const[]){"run2", "running", "run.bak", "ru", "RUN", NULL}; *name; name++) {
		make_dir(at("home/%s", *name));
		(void)snprintf(env, sizeof env, "\"tmpdir\":\"%s\"", at("home/%s", *name));
		struct mcp_result result = probe_ms(program, args, env, MCP_REPLY_MS);
		assert_ok(&result, "write=ok");
		(void)snprintf(entry, sizeof entry, "TMPDIR=%s", at("home/%s", *name));
		assert_true(has(result.tools, entry));
		(void)snprintf(entry, sizeof entry, "tmpdir=%s", at("home/%s", *name));
		assert_true(has(result.tools, entry));
		assert_string_equal(temp_source_name(result.temp), "declared");
		assert_string_equal(result.temp_path, at("home/%s", *name));
		assert_int_equal(result.refusals.n, 0);
		mcp_result_free(&result);
	}
	assert_int_equal(scratches(), 0);
}

static void count_warning(const char *text, void *to)
{
	*(size_t *)to += strstr(text, "sealed") != NULL;
}
struct run_trial {
	struct mcp_servers servers;
	int in, out; /* the server's */
};
static int run_server(void *argument)
{
	struct run_trial *trial = argument;
	size_t warnings = 0;
	int status = -1;
	struct err err = {0};
	if (dup2(trial->in, 0) < 0 || dup2(trial->out, 1) < 0)
		return 100;
	if (mcp_run(&context, &trial->servers.v[0], count_warning, &warnings, &status, &err) < 0)
		return 101;
	return warnings ? status + 10 : status;
}
static int run_with(struct mcp_servers servers, const char *input, size_t input_len, char *output, size_t size, size_t *ret_len)
{
	int in[2], out[2];
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	struct run_trial trial = {.servers = servers, .in = in[0], .out = out[1]};
	assert_true(write(in[1], input, input_len) == (ssize_t)input_len);
	pid_t child = fork();
	if (child == 0) {
		(void)close(in[1]);
		_exit(run_server(&trial));
	}
	(void)close(in[0]);
	(void)close(in[1]);
	(void)close(out[1]);
	size_t len = 0;
	for (ssize_t n; (n = read(out[0], output + len, size - len)) > 0;)
		len += (size_t)n;
	(void)close(out[0]);
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	mcp_servers_free(&servers);
	*ret_len = len;
	return WEXITSTATUS(status);
}
static void run_passes_bytes_and_status(void **state)
{
	(void)state;
	char input[4096], output[8192];
	size_t len = 0;
	for (size_t i = 0; i < sizeof input; i++)
		input[i] = (char)(i * 7);
	assert_int_equal(run_with(spec(program, "\"echo\",\"5\"", ""), input, sizeof input, output, sizeof output, &len), 5);
	assert_int_equal(len, sizeof input);
	assert_memory_equal(output, input, len);
	assert_int_equal(scratches(), 0);
}
static void run_passes_signals(void **state)
{
	(void)state;
	int out[2];
	char ready[8] = "";
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	struct run_trial trial = {.servers = spec(program, "\"term\"", ""), .in = 0, .out = out[1]};
	pid_t child = fork();
	if (child == 0)
		_exit(run_server(&trial));
	(void)close(out[1]);
	assert_true(read(out[0], ready, 6) > 0);
	assert_int_equal(kill(child, SIGTERM), 0);
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 42);
	(void)close(out[0]);
	mcp_servers_free(&trial.servers);
	assert_int_equal(scratches(), 0);
}

/* Without what must differ: the name of the scratch. */
static void normal(char *text, size_t len)
{
	for (size_t i = 0; i + 14 < len; i++)
		if (!memcmp(text + i, "probe-", 6))
			memset(text + i + 6, '0', 8);
}
static void M12_probe_and_run_agree(void **state)
{
	(void)state;
	NEED_BWRAP;
	char env[PATH_MAX], by_run[65536];
	(void)snprintf(env, sizeof env, "\"TMPDIR\":\"%s/run/x\",\"Temp\":\"/tmp\",\"OTHER\":\"a b\"", home_path);
	size_t len = 0;
	assert_int_equal(run_with(spec(program, "\"environ\"", env), "", 0, by_run, sizeof by_run, &len), 10); /* it warned, and ended with 0 */
	struct mcp_servers servers = spec(program, "\"environ\"", env);
	struct mcp_prepared prepared;
	assert_int_equal(mcp_prepare(&context, &servers.v[0], FAR, &prepared, NULL), 0);
	assert_true(temp_refused(&prepared.declaration));
	size_t seen = 0;
	normal(by_run, len);
	for (size_t i = 0; i < prepared.environment.n; i++) {
		char entry[PATH_MAX * 2];
		(void)snprintf(entry, sizeof entry, "%s", prepared.environment.v[i]);
		normal(entry, strlen(entry) + 1);
		for (const char *one = by_run; one < by_run + len; one += strlen(one) + 1)
			seen += !strcmp(one, entry);
	}
	assert_int_equal(seen, prepared.environment.n);
	size_t entries = 0;
	for (const char *one = by_run; one < by_run + len; one += strlen(one) + 1)
		entries += strncmp(one, "PWD=", 4) != 0;
	assert_int_equal(entries, seen);
	assert_int_equal(scratch_remove(&prepared.scratch, FAR, NULL), 0);
	mcp_prepared_free(&prepared);
	mcp_servers_free(&servers);
}

static size_t names_in(const char *path)
{
	size_t n = 0;
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));)
		n++;
	if (d)
		(void)closedir(d);
	return n;
}
static void M14_fifty_probes_leave_nothing(void **state)
{
	(void)state;
	struct mcp_servers servers = spec(program, "\"plain\"", "");
	const struct mcp_server *many[50];
	struct mcp_result *results = calloc(50, sizeof *results);
	struct err err = {0};
	assert_non_null(results);
	for (size_t i = 0; i < 50; i++)
		many[i] = &servers.v[0];
	size_t descriptors = names_in("/proc/self/fd");
	make_dir(at("home/run/mcp-tmp/probe-00000000")); /* of a dead one */
	if (mcp_probe_all(&context, many, 50, "0", MCP_REPLY_MS, results, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < 50; i++) {
		assert_ok(&results[i], "a");
		mcp_result_free(&results[i]);
	}
	free(results);
	mcp_servers_free(&servers);
	assert_int_equal(scratches(), 0);
	assert_int_equal(names_in("/proc/self/fd"), descriptors);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}
static void disabled_is_not_started(void **state)
{
	(void)state;
	const char *text = "{\"mcpServers\":{\"off\":{\"command\":\"/bin/false\",\"disabled\":true}}}";
	AUTO_MCP_SERVERS struct mcp_servers servers = {0};
	struct mcp_result result;
	assert_int_equal(mcp_spec_read(text, strlen(text), &servers, NULL), 0);
	assert_int_equal(mcp_probe(&context, &servers.v[0], "0", MCP_REPLY_MS, &result, NULL), 0);
	assert_string_equal(mcp_status_name(result.status), "disabled");
	mcp_result_free(&result);
}
static void X46_unavailable_fails_closed(void **state)
{
	(void)state;
	struct sandbox_program none;
	struct mcp_context without = context;
	sandbox_find_in((const char *const[]){at("nothing"), NULL}, &none);
	without.sandbox = &none;
	char args[PATH_MAX];
	(void)snprintf(args, sizeof args, "\"-c\",\"touch %s\"", at("ran"));
	struct mcp_servers servers = spec("/bin/sh", args, "");
	struct mcp_result result;
	assert_int_equal(mcp_probe(&without, &servers.v[0], "0", MCP_REPLY_MS, &result, NULL), 0);
	assert_int_equal(result.status, MCP_STATUS_ERROR);
	assert_string_equal(sandbox_kind_name(result.sandbox), "unavailable");
	assert_false(exists(at("ran")));
	mcp_result_free(&result);
	without.sandbox = &off;
	assert_int_equal(mcp_probe(&without, &servers.v[0], "0", MCP_REPLY_MS, &result, NULL), 0);
	assert_string_equal(sandbox_kind_name(result.sandbox), "off");
	assert_true(exists(at("ran")));
	mcp_result_free(&result);
	mcp_servers_free(&servers);
	assert_int_equal(scratches(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_specification_is_read_and_edited),
		cmocka_unit_test(M01_junk_before_the_answer),
		cmocka_unit_test(M02_each_end_has_its_own_reason),
		cmocka_unit_test(M03_stderr_is_drained),
		cmocka_unit_test(M04_bytes_that_are_no_text),
		cmocka_unit_test(M05_endless_lines),
		cmocka_unit_test(M06_other_messages),
		cmocka_unit_test(M07_strict_order),
		cmocka_unit_test(M08_pages),
		cmocka_unit_test(protocols_and_limits),
		cmocka_unit_test(M09_the_table_of_the_issue),
		cmocka_unit_test(M10_temp_is_writable_and_executable),
		cmocka_unit_test(M11_true_causes),
		cmocka_unit_test(M13_siblings_are_honoured),
		cmocka_unit_test(run_passes_bytes_and_status),
		cmocka_unit_test(run_passes_signals),
		cmocka_unit_test(M12_probe_and_run_agree),
		cmocka_unit_test(M14_fifty_probes_leave_nothing),
		cmocka_unit_test(disabled_is_not_started),
		cmocka_unit_test(X46_unavailable_fails_closed),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
