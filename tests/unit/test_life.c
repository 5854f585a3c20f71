#include "model_test.h"

#include "pod/model/life.h"

#define BOOT "0f6c12ab-1111-4222-8333-123456789abc"
#define OTHER "0f6c12ab-1111-4222-8333-123456789abd"

static const struct life_clock now = {.epoch_ms = 1796070000500, .boot_ms = 1000000, .boot = BOOT};

static void what_is_written_is_read_back(void **state)
{
	(void)state;
	char text[LIFE_TEXT_MAX];
	struct life_owner owner = {4242, 1234567, BOOT}, owner_again = {0};
	struct life_limit limit = {1796070000, 123456789, BOOT}, limit_again = {0};
	life_owner_render(&owner, text);
	assert_string_equal(text, "4242 1234567 " BOOT);
	assert_true(life_owner_parse(text, &owner_again));
	assert_true(owner_again.pid == owner.pid && owner_again.start == owner.start);
	assert_string_equal(owner_again.boot, BOOT);
	life_limit_render(&limit, text);
	assert_string_equal(text, "1796070000 123456789 " BOOT);
	assert_true(life_limit_parse(text, &limit_again));
	assert_true(limit_again.epoch_s == limit.epoch_s && limit_again.boot_ms == limit.boot_ms);
	assert_string_equal(limit_again.boot, BOOT);
	life_owner_render(&(struct life_owner){0}, text);
	assert_string_equal(text, "");
}

static void anything_else_is_not_understood(void **state)
{
	(void)state;
	static const char *const owners[] = {
	    "",		      "4242",		     "4242 5",		      "4242  5 " BOOT,	       "0 5 " BOOT,	     "-1 5 " BOOT,   "4242 0 " BOOT,
	    "4242 5 " BOOT " ", "4242 5 " BOOT "a", "2147483648 5 " BOOT, "4242 18446744073709551616 " BOOT, "04 5 " BOOT, "4242 5 x",
	};
	struct life_owner owner;
	struct life_limit limit;
	for (size_t i = 0; i < COUNT(owners); i++)
		if (life_owner_parse(owners[i], &owner))
			fail_msg("\"%s\" was understood", owners[i]);
	assert_false(life_limit_parse("0 5 " BOOT, &limit));
	assert_false(life_limit_parse("9223372036854775807 5 " BOOT, &limit));
	assert_false(life_limit_parse("5 9223372036854775808 " BOOT, &limit));
	assert_true(life_limit_parse("5 9223372036854775807 " BOOT, &limit));
}

static void an_owner_is_a_process_of_this_boot_and_no_successor(void **state)
{
	(void)state;
	struct life life = {.owner = {4242, 77, BOOT}};
	assert_int_equal(life_judge(&life, &now, 77), LIFE_LASTS);
	assert_int_equal(life_judge(&life, &now, 78), LIFE_OWNER_GONE);
	assert_int_equal(life_judge(&life, &now, 0), LIFE_OWNER_GONE);
	memcpy(life.owner.boot, OTHER, sizeof life.owner.boot);
	assert_int_equal(life_judge(&life, &now, 77), LIFE_OWNER_GONE);
	assert_int_equal(life_judge(&(struct life){0}, &now, 0), LIFE_LASTS);
}

static void a_time_follows_the_boot_and_after_it_the_calendar(void **state)
{
	(void)state;
	struct life life = {.limit = life_limit_in(&now, 60)};
	struct life_clock later = now;
	assert_int_equal(life_left_ms(&life, &now), 60000);
	later.epoch_ms += 86400000; /* somebody has set the clock */
	assert_int_equal(life_left_ms(&life, &later), 60000);
	later = now;
	later.boot_ms += 60000;
	assert_int_equal(life_left_ms(&life, &later), 0);
	assert_int_equal(life_judge(&life, &later, 0), LIFE_TIME_OVER);
	later = (struct life_clock){.epoch_ms = now.epoch_ms + 20000, .boot_ms = 5, .boot = OTHER};
	assert_int_equal(life_left_ms(&life, &later), 40500);
	assert_true(life_left_ms(&(struct life){0}, &now) == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_written_is_read_back),
	    cmocka_unit_test(anything_else_is_not_understood),
	    cmocka_unit_test(an_owner_is_a_process_of_this_boot_and_no_successor),
	    cmocka_unit_test(a_time_follows_the_boot_and_after_it_the_calendar),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
