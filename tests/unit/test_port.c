#include "model_test.h"

#include "pod/model/port.h"

static struct plane defaults(void)
{
	struct plane plane = {.base_port = 7810, .port_span = 199, .live_port = 5476};
	return plane;
}

static void sums_are_those_of_cksum(void **state)
{
	char big[256 * 300];
	(void)state;
	for (size_t i = 0; i < sizeof big; i++)
		big[i] = (char)(i & 0xff);
	assert_int_equal(posix_cksum("", 0), 4294967295u);
	assert_int_equal(posix_cksum("a", 1), 1220704766u);
	assert_int_equal(posix_cksum("demo", 4), 3420562566u);
	assert_int_equal(posix_cksum("0123456789", 10), 3648003736u);
	assert_int_equal(posix_cksum(big, sizeof big), 821533005u);
}

static void preferred_ports_are_those_of_the_contract(void **state)
{
	static const struct {
		struct pod_name name;
		int port;
	} cases[] = {{{"a"}, 7971}, {{"demo"}, 7933}, {{"test"}, 7847}, {{"alpha"}, 7876}};
	struct plane plane = defaults();
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(port_preferred(&plane, &cases[i].name), cases[i].port);
	plane.base_port = 0;
	plane.port_span = 1;
	assert_int_equal(port_preferred(&plane, &cases[0].name), 1);
}

static void X36_ports_are_refused_by_grammar(void **state)
{
	static const char *const bad[] = {"0",	  "-1",	    "65536", "0x50", "08080", " 80", "1e3", "",	   "80 ", "+80",	 "80\n",
					  "8 0",  "8080a",  "1.0",   "00",   "٨٠",    "a",   "\t80", "655350", "18446744073709551617", "99999999999999999999999999"};
	static const struct {
		const char *text;
		int port;
	} good[] = {{"1", 1}, {"80", 80}, {"7971", 7971}, {"65535", 65535}, {"10000", 10000}};
	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		int port = 42;
		struct err err = {0};
		assert_refused(port_parse(bad[i], &port, &err), &err, REFUSAL_BAD_CONFIG, bad[i]);
		assert_int_equal(port, 42);
	}
	for (size_t i = 0; i < COUNT(good); i++) {
		int port = 0;
		struct err err = {0};
		assert_done(port_parse(good[i].text, &port, &err), &err);
		assert_int_equal(port, good[i].port);
	}
}

static void a_set_holds_ports_and_nothing_else(void **state)
{
	struct port_set set = {{0}};
	(void)state;
	static const int in[] = {0, 1, 63, 64, 7971, 65535};
	for (size_t i = 0; i < COUNT(in); i++) {
		assert_false(port_set_has(&set, in[i]));
		port_set_add(&set, in[i]);
		assert_true(port_set_has(&set, in[i]));
	}
	static const int out[] = {-1, 65536, 1 << 30, -(1 << 30)};
	for (size_t i = 0; i < COUNT(out); i++) {
		port_set_add(&set, out[i]);
		assert_false(port_set_has(&set, out[i]));
	}
	size_t held = 0;
	for (int port = 0; port <= 65535; port++)
		held += port_set_has(&set, port);
	assert_int_equal(held, COUNT(in));
}

static void L32_the_walk_goes_upward_and_wraps_once(void **state)
{
	static const struct pod_name a = {"a"};
	struct plane plane = defaults();
	int step = 0, expected = 7971, seen = 0;
	(void)state;
	for (int port; (port = port_next(&plane, &a, NULL, &step)); seen++) {
		assert_int_equal(port, expected);
		expected = expected == 8009 ? 7811 : expected + 1;
	}
	assert_int_equal(seen, 199);
	assert_int_equal(port_next(&plane, &a, NULL, &step), 0);
}

static void L32_taken_and_live_ports_are_skipped(void **state)
{
	static const struct pod_name a = {"a"};
	struct plane plane = defaults();
	struct port_set taken = {{0}};
	int step = 0;
	(void)state;
	plane.live_port = 7971;
	port_set_add(&taken, 7972);
	port_set_add(&taken, 7974);
	assert_int_equal(port_next(&plane, &a, &taken, &step), 7973);
	assert_int_equal(port_next(&plane, &a, &taken, &step), 7975);
	for (int port = 7811; port <= 8009; port++)
		port_set_add(&taken, port);
	step = 0;
	assert_int_equal(port_next(&plane, &a, &taken, &step), 0);
}

static void the_widest_band_stays_within_its_bounds(void **state)
{
	static const struct pod_name a = {"a"};
	struct plane plane = {.base_port = 55535, .port_span = 10000, .live_port = 1};
	struct port_set seen = {{0}};
	int step = 0, count = 0;
	(void)state;
	for (int port; (port = port_next(&plane, &a, NULL, &step)); count++) {
		assert_in_range(port, 55536, 65535);
		assert_false(port_set_has(&seen, port));
		port_set_add(&seen, port);
	}
	assert_int_equal(count, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_cksum),
		cmocka_unit_test(preferred_ports_are_those_of_the_contract),
		cmocka_unit_test(X36_ports_are_refused_by_grammar),
		cmocka_unit_test(a_set_holds_ports_and_nothing_else),
		cmocka_unit_test(L32_the_walk_goes_upward_and_wraps_once),
		cmocka_unit_test(L32_taken_and_live_ports_are_skipped),
		cmocka_unit_test(the_widest_band_stays_within_its_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
