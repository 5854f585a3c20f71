/* The template engine and what every type of placeholder carries. */
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
#include "pod/model/unit_template.h"
#include "unit_samples.h"

/* The engine: the build checks the templates, so these mistakes are a caller's. */
static void lines_follow_their_values(void **state)
{
	(void)state;
	static const struct template_placeholder placeholders[] = {{"a", PLACEHOLDER_WORD}, {"b", PLACEHOLDER_WORD}};
	static const char *const two[] = {"1", "2"}, *const hole[] = {NULL};
	static const struct {
		const char *text;
		struct template_value a, b;
		const char *result;
	} cases[] = {
	    {"x\n@a@-@b@\ny", {two, 2}, {two, 2}, "x\n1-1\n2-2\ny"},
	    {"x\n@a@\n@b@", {two, 0}, {two, 1}, "x\n1"},
	    {"", {two, 1}, {two, 1}, ""},
	    {"@a@@b@", {two, 1}, {two, 2}, NULL},
	    {"@a@ @", {two, 1}, {two, 1}, NULL},
	    {"@c@", {two, 1}, {two, 1}, NULL},
	    {"@a@", {hole, 1}, {two, 1}, NULL},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct template_value values[] = {cases[i].a, cases[i].b};
		AUTO_FREE char *text = NULL;
		struct err err = {0};
		int r = template_fill(cases[i].text, placeholders, 2, values, &text, &err);
		assert_int_equal(r, cases[i].result ? 0 : -EINVAL);
		if (cases[i].result)
			assert_string_equal(text, cases[i].result);
		else
			assert_null(text);
	}
}

static void X22_too_long_is_refused(void **state)
{
	(void)state;
	AUTO_FREE char *longest = malloc(131073), *text = NULL;
	size_t len = 0;
	assert_non_null(longest);
	memset(longest, 'x', 131072);
	longest[131072] = '\0';
	memcpy(longest, "A=", 2);
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	struct err err = {0};
	assert_int_equal(template_escape(PLACEHOLDER_ASSIGNMENT, "A", longest, out, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_VALUE);
	assert_int_equal(ftell(out), 0);
	longest[131071] = '\0';
	assert_int_equal(template_escape(PLACEHOLDER_ASSIGNMENT, "A", longest, out, &err), 0);
	(void)fclose(out);
	assert_int_equal(len, 131071 + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(X22_too_long_is_refused, setup),
	    cmocka_unit_test_setup(lines_follow_their_values, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
