#include "seal_test.h"

#include "pod/model/temp.h"

/* Declared pairs, inherited pairs, the causes in the order of the declaration, the managed path → the environment, sorted as it comes. */
struct outcome {
	struct environment environment;
	enum temp_source source;
	const char *path;
};

static struct outcome decide(const char *const *declared, const enum contain_cause *causes, const char *const *inherited, const char *managed)
{
	struct outcome o = {0};
	struct environment spec = {0};
	AUTO_TEMP_DECLARATION struct temp_declaration declaration = {0};
	assert_int_equal(environment_copy((char *const *)(uintptr_t)declared, &spec, NULL), 0);
	assert_int_equal(environment_copy((char *const *)(uintptr_t)inherited, &o.environment, NULL), 0);
	for (size_t i = 0; i < spec.n; i++) {
		char name[64];
		const char *equals = strchr(spec.v[i], '=');
		(void)snprintf(name, sizeof name, "%.*s", (int)(equals - spec.v[i]), spec.v[i]);
		assert_int_equal(environment_set(&o.environment, name, equals + 1, NULL), 0);
	}
	assert_int_equal(temp_declaration_read(&spec, &declaration, NULL), 0);
	for (size_t i = 0; i < declaration.n && causes; i++)
		declaration.v[i].answer.cause = causes[i];
	assert_int_equal(temp_apply(&o.environment, &declaration, managed, &o.source, &o.path, NULL), 0);
	environment_free(&spec);
	return o;
}
static void expect(struct outcome *o, enum temp_source source, const char *path, const char *const *entries)
{
	size_t n = 0;
	assert_string_equal(temp_source_name(o->source), temp_source_name(source));
	for (; entries[n]; n++) {
		size_t seen = 0;
		for (size_t i = 0; i < o->environment.n; i++)
			seen += !strcmp(o->environment.v[i], entries[n]);
		if (seen != 1)
			fail_msg("%s occurs %zu times", entries[n], seen);
	}
	assert_int_equal(o->environment.n, n);
	if (path)
		assert_string_equal(o->path, path);
	else
		assert_null(o->path);
	environment_free(&o->environment);
}
#define LIST(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
#define CAUSES(...) ((const enum contain_cause[]){__VA_ARGS__})
#define MANAGED LIST("A=1", "TMPDIR=/m", "TMP=/m", "TEMP=/m")

static void nothing_declared_is_managed(void **state)
{
	(void)state;
	struct outcome o = decide(LIST("A=1"), NULL, LIST("TMPDIR=/host", "tmp=/host", "Temp=/host"), "/m");
	expect(&o, TEMP_MANAGED, "/m", MANAGED);
}
static void M09_one_cause_refuses_the_whole_declaration(void **state)
{
	(void)state;
	struct outcome o = decide(LIST("TMPDIR=/clear", "A=1", "tEmP=/run/x"), CAUSES(CONTAIN_CLEAR, CONTAIN_SEALED), LIST("TMP=/host"), "/m");
	expect(&o, TEMP_MANAGED, "/m", MANAGED);
	o = decide(LIST("TMPDIR=/run/x", "TMP=/clear", "A=1"), CAUSES(CONTAIN_SEALED, CONTAIN_CLEAR), LIST("TEMP=/host"), "/m");
	expect(&o, TEMP_MANAGED, "/m", MANAGED);
}
static void every_cause_refuses(void **state)
{
	(void)state;
	for (int cause = CONTAIN_CLEAR + 1; cause < CONTAIN_CAUSES; cause++) {
		struct outcome o = decide(LIST("A=1", "TEMP=x"), CAUSES((enum contain_cause)cause), LIST(), "/m");
		expect(&o, TEMP_MANAGED, "/m", MANAGED);
	}
}
static void refused_without_a_managed_directory_drops_all(void **state)
{
	(void)state;
	struct outcome o = decide(LIST("TMPDIR=/run/x", "tmp=/clear", "A=1"), CAUSES(CONTAIN_LOOP, CONTAIN_CLEAR), LIST("TEMP=/host", "temp=/host"), NULL);
	expect(&o, TEMP_NONE, NULL, LIST("A=1"));
}
static void M13_clear_is_honoured_and_siblings_removed(void **state)
{
	(void)state;
	struct outcome o = decide(LIST("TMPDIR=/mine"), CAUSES(CONTAIN_CLEAR), LIST("TMP=/host", "TEMP=/host", "temp=/host", "B=2"), "/unused");
	expect(&o, TEMP_DECLARED, "/mine", LIST("TMPDIR=/mine", "B=2"));
}
static void the_authors_spelling_is_kept_and_canonical_added(void **state)
{
	(void)state;
	struct outcome o = decide(LIST("tmpdir=/a", "Temp=/b"), CAUSES(CONTAIN_CLEAR, CONTAIN_CLEAR), LIST("TMPDIR=/host", "TMP=/host"), NULL);
	expect(&o, TEMP_DECLARED, "/a", LIST("tmpdir=/a", "Temp=/b", "TMPDIR=/a", "TEMP=/b"));
}
static void a_declared_canonical_key_keeps_its_own_value(void **state)
{
	(void)state;
	struct outcome o = decide(LIST("tmpdir=/a", "TMPDIR=/b"), CAUSES(CONTAIN_CLEAR, CONTAIN_CLEAR), LIST(), NULL);
	expect(&o, TEMP_DECLARED, "/b", LIST("tmpdir=/a", "TMPDIR=/b"));
	o = decide(LIST("Tmp=/1", "tMp=/2"), CAUSES(CONTAIN_CLEAR, CONTAIN_CLEAR), LIST(), NULL);
	expect(&o, TEMP_DECLARED, "/1", LIST("Tmp=/1", "tMp=/2", "TMP=/1"));
}
static void names_that_only_begin_alike_are_nothing(void **state)
{
	(void)state;
	struct outcome o = decide(LIST("TMPDIRS=/a", "XTMP=/b", "TEMPLATE=/c"), NULL, LIST("MYTEMP=/d"), "/m");
	expect(&o, TEMP_MANAGED, "/m", LIST("TMPDIRS=/a", "XTMP=/b", "TEMPLATE=/c", "MYTEMP=/d", "TMPDIR=/m", "TMP=/m", "TEMP=/m"));
}
static void a_failure_leaves_no_temp_key(void **state)
{
	(void)state;
	char *long_path = malloc(200000);
	assert_non_null(long_path);
	memset(long_path, 'x', 199999);
	long_path[199999] = '\0';
	struct environment environment = {0};
	struct temp_declaration none = {0};
	enum temp_source source = TEMP_DECLARED;
	const char *path = "untouched";
	struct err err = {0};
	assert_int_equal(environment_copy((char *const *)(uintptr_t)LIST("tmp=/host", "A=1"), &environment, NULL), 0);
	assert_true(temp_apply(&environment, &none, long_path, &source, &path, &err) < 0);
	assert_int_equal(environment.n, 1);
	assert_string_equal(environment.v[0], "A=1");
	assert_int_equal(source, TEMP_DECLARED);
	assert_string_equal(path, "untouched");
	environment_free(&environment);
	free(long_path);
}
static void the_warning_is_one_escaped_line(void **state)
{
	(void)state;
	char key[] = "TmpDir", value[] = "/run/\x1b[2J\n\xff", line[2048];
	struct temp_declared declared = {.key = key, .value = value, .answer = {.cause = CONTAIN_CHECK_FAILED, .detail = "why"}};
	temp_warning("srv", &declared, line, sizeof line);
	assert_non_null(strstr(line, "server srv: TmpDir=/run/"));
	assert_non_null(strstr(line, "check-failed (why)"));
	for (const char *c = line; *c; c++)
		assert_true((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_declared_is_managed),
		cmocka_unit_test(M09_one_cause_refuses_the_whole_declaration),
		cmocka_unit_test(every_cause_refuses),
		cmocka_unit_test(refused_without_a_managed_directory_drops_all),
		cmocka_unit_test(M13_clear_is_honoured_and_siblings_removed),
		cmocka_unit_test(the_authors_spelling_is_kept_and_canonical_added),
		cmocka_unit_test(a_declared_canonical_key_keeps_its_own_value),
		cmocka_unit_test(names_that_only_begin_alike_are_nothing),
		cmocka_unit_test(a_failure_leaves_no_temp_key),
		cmocka_unit_test(the_warning_is_one_escaped_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
