/* Rendered property lists, parsed back by libplist where it is there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#ifdef HAVE_LIBPLIST
#include <plist/plist.h>
#endif

#include "fsops/cleanup.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_text.h"
#include "unit_samples.h"

static char *render_plist(void)
{
	char *text = NULL;
	struct err err = {0};
	if (unit_text_plist(&input, &name, &text, &err) < 0)
		fail_msg("%s: %s", err.subject, err.text);
	return text;
}

static void V05_what_xml_cannot_hold_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"/\x01", "/\x1b[0m", "/\xff", "/\xef\xbf\xbe", "/\xef\xbf\xbf", "/\xed\xa0\x80", "/\x0b"};
	for (size_t i = 0; i < COUNT(bad); i++) {
		(void)snprintf(plane.path, sizeof plane.path, "%s", bad[i]);
		char *text = NULL;
		struct err err = {0};
		assert_int_equal(unit_text_plist(&input, &name, &text, &err), -EPERM);
		assert_int_equal(err.refusal, REFUSAL_VALUE);
		assert_null(text);
	}
}

static void plist_has_no_resource_keys(void **state)
{
	(void)state;
	AUTO_FREE char *text = render_plist();
	assert_null(strstr(text, "ResourceLimits"));
	assert_null(strstr(text, "@"));
	assert_non_null(strstr(text, "<string>dev.kirocrew.pod.kirocrew-pod.demo</string>"));
}

#ifdef HAVE_LIBPLIST
#define AUTO_PLIST CLEANUP(plist_done)
static void plist_done(plist_t *root)
{
	if (*root)
		plist_free(*root);
}

static plist_t parse_plist(void)
{
	AUTO_FREE char *text = render_plist();
	plist_t root = NULL;
	plist_from_xml(text, (uint32_t)strlen(text), &root);
	assert_non_null(root);
	return root;
}

static void expect_text(plist_t node, const char *expected)
{
	assert_non_null(node);
	assert_int_equal(plist_get_node_type(node), PLIST_STRING);
	AUTO_FREE char *value = NULL;
	plist_get_string_val(node, &value);
	assert_non_null(value);
	assert_string_equal(value, expected);
}

static void expect_bool(plist_t node, uint8_t expected)
{
	uint8_t value = 9;
	assert_non_null(node);
	plist_get_bool_val(node, &value);
	assert_int_equal(value, expected);
}

static void expect_integer(plist_t node, uint64_t expected)
{
	uint64_t value = 0;
	assert_non_null(node);
	plist_get_uint_val(node, &value);
	assert_int_equal(value, expected);
}

static void plist_says_what_the_contract_asks(void **state)
{
	(void)state;
	AUTO_PLIST plist_t root = parse_plist();
	expect_text(plist_dict_get_item(root, "Label"), "dev.kirocrew.pod.kirocrew-pod.demo");
	expect_bool(plist_dict_get_item(root, "RunAtLoad"), 1);
	plist_t keep = plist_dict_get_item(root, "KeepAlive");
	assert_int_equal(plist_dict_get_size(keep), 1);
	expect_bool(plist_dict_get_item(keep, "SuccessfulExit"), 0);
	expect_integer(plist_dict_get_item(root, "ThrottleInterval"), 5);
	expect_integer(plist_dict_get_item(root, "ExitTimeOut"), 15);
	expect_integer(plist_dict_get_item(root, "Umask"), 077);
	expect_text(plist_dict_get_item(root, "StandardOutPath"), "/home/op/.kirocrew-pods/.e2e-artifacts/demo/pod.log");
	expect_text(plist_dict_get_item(root, "StandardErrorPath"), "/home/op/.kirocrew-pods/.e2e-artifacts/demo/pod.log");
	plist_t arguments = plist_dict_get_item(root, "ProgramArguments");
	assert_int_equal(plist_array_get_size(arguments), 3);
	expect_text(plist_array_get_item(arguments, 0), "/usr/bin/kirocrew-pod");
	expect_text(plist_array_get_item(arguments, 1), "_run");
	expect_text(plist_array_get_item(arguments, 2), "demo");
	plist_t variables = plist_dict_get_item(root, "EnvironmentVariables");
	expect_text(plist_dict_get_item(variables, "KIROCREW_POD_BACKEND"), "launchd");
	expect_text(plist_dict_get_item(variables, "KIROCREW_POD_ROOT"), plane.root);
	assert_int_equal(plist_dict_get_size(root), 10);
}

static void V05_values_come_back_equal(void **state)
{
	(void)state;
	static const char *const more[] = {"/a&b<c>d\"e'f", "/&amp;&#65;", "/]]>", "/<!-- -->", "/\xef\xb7\x90"};
	size_t carried = 0;
	for (size_t i = 0; i < COUNT(hostile) + COUNT(more); i++) {
		const char *value = i < COUNT(hostile) ? hostile[i] : more[i - COUNT(hostile)];
		if (strpbrk(value, "\x1b"))
			continue;
		(void)snprintf(plane.root, sizeof plane.root, "%s", value);
		input.program = input.config_file = input.log_directory = value;
		AUTO_PLIST plist_t root = parse_plist();
		plist_t arguments = plist_dict_get_item(root, "ProgramArguments");
		assert_int_equal(plist_array_get_size(arguments), 5);
		expect_text(plist_array_get_item(arguments, 0), value);
		expect_text(plist_array_get_item(arguments, 2), value);
		expect_text(plist_dict_get_item(plist_dict_get_item(root, "EnvironmentVariables"), "KIROCREW_POD_ROOT"), value);
		char log[256];
		(void)snprintf(log, sizeof log, "%s/demo/pod.log", value);
		expect_text(plist_dict_get_item(root, "StandardOutPath"), log);
		carried++;
	}
	assert_int_equal(carried, COUNT(hostile) + COUNT(more) - 1);
}
#else
static void plist_says_what_the_contract_asks(void **state)
{
	(void)state;
	skip_unless_must_work("built without libplist-2.0 (libplist-dev)");
}
#define V05_values_come_back_equal plist_says_what_the_contract_asks
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(V05_what_xml_cannot_hold_is_refused, setup),
	    cmocka_unit_test_setup(plist_has_no_resource_keys, setup),
	    cmocka_unit_test_setup(plist_says_what_the_contract_asks, setup),
	    cmocka_unit_test_setup(V05_values_come_back_equal, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
