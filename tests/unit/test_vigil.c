#include "tests/unit/process_help.h"

#include <sys/resource.h>

#include "pod/system/life.h"

static void lives(void *unused)
{
	(void)unused;
	ready();
	wait_for_ever();
}

/* From here on nothing can be opened, /proc least of all; poll(2) takes no more descriptors than the limit, either. */
static struct rlimit open_nothing_more(void)
{
	struct rlimit usual;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 3, .rlim_max = usual.rlim_max}), 0);
	return usual;
}

static void open_again(struct rlimit usual)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

static struct life owned_by(pid_t pid)
{
	struct life life = {0};
	struct life_clock now;
	assert_int_equal(life_clock_read(&now, NULL), 0);
	assert_int_equal(life_owner_read(pid, &now, &life.owner, NULL), 0);
	return life;
}

static void end_of(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void an_owner_that_cannot_be_looked_at_lives(void **state)
{
	(void)state;
	pid_t pid = start_child(lives, NULL);
	struct life life = owned_by(pid);
	struct life_clock now;
	assert_int_equal(life_clock_read(&now, NULL), 0);
	assert_int_equal(life_look(&life, &now), LIFE_LASTS);
	struct rlimit usual = open_nothing_more();
	enum life_end unseen = life_look(&life, &now);
	open_again(usual);
	assert_int_equal(unseen, LIFE_LASTS);
	end_of(pid);
	assert_int_equal(life_look(&life, &now), LIFE_OWNER_GONE);
}

static void the_end_of_an_owner_is_heard_where_nothing_can_be_opened(void **state)
{
	(void)state;
	pid_t pid = start_child(lives, NULL);
	struct life life = owned_by(pid);
	AUTO_VIGIL struct vigil vigil = VIGIL_NONE;
	assert_int_equal(vigil_open(&life, &vigil, NULL), 0);
	struct rlimit usual = open_nothing_more();
	enum life_end before = vigil_look(&vigil);
	end_of(pid);
	enum life_end after = vigil_look(&vigil);
	open_again(usual);
	assert_int_equal(before, LIFE_LASTS);
	assert_int_equal(after, LIFE_OWNER_GONE);
}

static void who_has_the_number_of_an_owner_now_is_not_the_owner(void **state)
{
	(void)state;
	pid_t pid = start_child(lives, NULL);
	struct life life = owned_by(pid);
	AUTO_VIGIL struct vigil vigil = VIGIL_NONE;
	life.owner.start++;
	assert_int_equal(vigil_open(&life, &vigil, NULL), 0);
	assert_int_equal(vigil_look(&vigil), LIFE_OWNER_GONE);
	assert_int_equal(vigil_await(&vigil, NULL), 0);
	end_of(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_owner_that_cannot_be_looked_at_lives),
	    cmocka_unit_test(the_end_of_an_owner_is_heard_where_nothing_can_be_opened),
	    cmocka_unit_test(who_has_the_number_of_an_owner_now_is_not_the_owner),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
