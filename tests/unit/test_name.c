#include "model_test.h"

#include "pod/model/name.h"

static void L24_good_names_come_back_as_they_are(void **state)
{
	static const char *const good[] = {"foo-bar", "a.b", "A", "x_1", "0", "a", "Z9", "a..b", "a-", "a.env", "9._-",
					   "0123456789012345678901234567890123456789012345678901234567890"};
	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct pod_name name;
		struct err err = {0};
		assert_done(pod_name_parse(good[i], strlen(good[i]), &name, &err), &err);
		assert_string_equal(name.text, good[i]);
		assert_int_equal(err.code, 0);
	}
}

static void L24_X01_L23_bad_names_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{"", 0},	  {"-x", 2},   {"a@b", 3},   {"a:b", 3},      {"\xc3\xa4", 2},	    {"..", 2},	    {".", 1},
		{".hidden", 7},	  {"a\n", 2},  {"\na", 2},   {"a\0", 2},      {"a\0b", 3},	    {"\0", 1},	    {"a/../b", 6},
		{"/etc", 4},	  {"a b", 3},  {"a\tb", 3},  {"_x", 2},	      {"a\x1b[31m", 6},	    {"a\x7f", 2},   {"a\xff", 2},
		{"[Service]", 9}, {"a%i", 3},  {"a$b", 3},   {"a\\x2d", 6},   {"@", 1},		    {"a@plane", 7}, {"\xef\xbb\xbf" "a", 4},
		{"01234567890123456789012345678901234567890123456789012345678901", 62},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pod_name name = {.text = "untouched"};
		struct err err = {0};
		assert_refused(pod_name_parse(bad[i].bytes, bad[i].len, &name, &err), &err, REFUSAL_BAD_NAME, NULL);
		assert_string_equal(name.text, "untouched");
		assert_int_equal(err_exit_status(&err), EXIT_USAGE);
		assert_int_equal(pod_name_parse(bad[i].bytes, bad[i].len, &name, NULL), -EPERM);
	}
}

static void every_byte_is_judged_by_the_grammar(void **state)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	(void)state;
	for (int c = 0; c < 256; c++) {
		const char one[] = {(char)c}, two[] = {'a', (char)c};
		struct pod_name name;
		int may_begin = c && strchr(first, c), may_follow = c && (strchr(first, c) || strchr("._-", c));
		assert_int_equal(pod_name_parse(one, 1, &name, NULL), may_begin ? 0 : -EPERM);
		assert_int_equal(pod_name_parse(two, 2, &name, NULL), may_follow ? 0 : -EPERM);
	}
}

static void a_long_bad_name_is_shown_without_reading_past_it(void **state)
{
	char *bytes = malloc(100000);
	struct pod_name name;
	struct err err = {0};
	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'a', 100000);
	assert_refused(pod_name_parse(bytes, 100000, &name, &err), &err, REFUSAL_BAD_NAME, "aaaaaaaa");
	free(bytes);
}

static void files_are_named_after_the_pod(void **state)
{
	static const struct pod_name demo = {"demo"};
	(void)state;
	assert_string_equal(pod_file_record(&demo).text, "demo.env");
	assert_string_equal(pod_file_note(&demo).text, "demo.refused");
	assert_string_equal(pod_file_socket(&demo).text, "demo.sock");
	assert_string_equal(pod_file_lock("kirocrew-pod", &demo).text, "kirocrew-pod@demo.lock");
	assert_string_equal(pod_file_gate("kirocrew-pod", &demo).text, "kirocrew-pod@demo@boot.lock");
	assert_string_equal(pod_file_plane_lock("kirocrew-pod").text, "kirocrew-pod@@plane.lock");
	assert_string_equal(pod_file_retired(&demo).text, ".demo@retired");
	assert_string_equal(pod_file_unit("kirocrew-pod", &demo).text, "kirocrew-pod@demo.service");
}

static void the_longest_names_fit(void **state)
{
	static const char prefix[] = "0123456789012345678901234567890123456789";
	static const struct pod_name name = {"0123456789012345678901234567890123456789012345678901234567890"};
	(void)state;
	assert_int_equal(strlen(pod_file_gate(prefix, &name).text), 40 + 1 + 61 + strlen("@boot.lock"));
	assert_int_equal(strlen(pod_file_unit(prefix, &name).text), 40 + 1 + 61 + strlen(".service"));
	assert_int_equal(strlen(pod_file_socket(&name).text), 66);
}

static void a_file_leads_back_to_its_pod(void **state)
{
	static const struct {
		const char *file, *suffix, *name; /* NULL: of no pod */
	} cases[] = {
		{"demo.env", ".env", "demo"},	  {"a.env.env", ".env", "a.env"}, {".env", ".env", NULL}, {"demo.en", ".env", NULL},
		{"demo.env.tmp", ".env", NULL},	  {"a@b.env", ".env", NULL},	  {"", ".env", NULL},	  {"-.env", ".env", NULL},
		{"kirocrew-pod@@plane.lock", ".lock", NULL}, {"x.refused", ".env", NULL}, {"x", "", "x"},
		{".tmp-0123456789abcdef@demo.env", ".env", NULL},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct pod_name name = {.text = "untouched"};
		int r = pod_name_from_file(cases[i].file, cases[i].suffix, &name);
		assert_int_equal(r, cases[i].name ? 0 : -EINVAL);
		assert_string_equal(name.text, cases[i].name ? cases[i].name : "untouched");
	}
}

static void a_retired_home_leads_back_to_its_pod(void **state)
{
	static const char *const strangers[] = {"demo@retired", ".@retired", ".demo", ".-x@retired", "", ".", ".a@b@retired", ".demo@retired2"};
	struct pod_name name;
	(void)state;
	assert_int_equal(pod_name_from_retired(".demo@retired", &name), 0);
	assert_string_equal(name.text, "demo");
	for (size_t i = 0; i < COUNT(strangers); i++)
		assert_int_equal(pod_name_from_retired(strangers[i], &name), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L24_good_names_come_back_as_they_are),
		cmocka_unit_test(L24_X01_L23_bad_names_are_refused),
		cmocka_unit_test(every_byte_is_judged_by_the_grammar),
		cmocka_unit_test(a_long_bad_name_is_shown_without_reading_past_it),
		cmocka_unit_test(files_are_named_after_the_pod),
		cmocka_unit_test(the_longest_names_fit),
		cmocka_unit_test(a_file_leads_back_to_its_pod),
		cmocka_unit_test(a_retired_home_leads_back_to_its_pod),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
