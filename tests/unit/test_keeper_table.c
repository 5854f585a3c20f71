#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pod/model/keeper_table.h"
#include "pod/model/unit_text.h"

static bool alive(enum keeper_state s)
{
	return s == KEEPER_RUNNING || s == KEEPER_SWEEP_CLEAN || s == KEEPER_SWEEP_TERMINAL || s == KEEPER_SWEEP_RESTART || s == KEEPER_STOPPING ||
	       s == KEEPER_KILLING;
}

static void verdicts_follow_the_unit_template(void **unused)
{
	(void)unused;
	for (int status = 0; status < 256; status++) {
		enum keeper_event expected = status == 0 ? KEEPER_ON_EXIT_CLEAN
					     : status == 3 || status == 70 || status == 78 ? KEEPER_ON_EXIT_TERMINAL
											   : KEEPER_ON_EXIT_FAILED;
		assert_int_equal(keeper_verdict(status, 0), expected);
	}
	for (int signal = 1; signal < 65; signal++) {
		bool clean = signal == 1 || signal == 2 || signal == 13 || signal == 15;
		assert_int_equal(keeper_verdict(0, signal), clean ? KEEPER_ON_EXIT_CLEAN : KEEPER_ON_EXIT_FAILED);
		assert_int_equal(keeper_verdict(78, signal), clean ? KEEPER_ON_EXIT_CLEAN : KEEPER_ON_EXIT_FAILED);
	}
}

/* What must hold for every cell, whatever the table says. */
static void every_cell_keeps_the_promises(void **unused)
{
	(void)unused;
	for (int s = 0; s < KEEPER_STATES; s++)
		for (int e = 0; e < KEEPER_EVENTS; e++) {
			struct keeper_step step = keeper_step((enum keeper_state)s, (enum keeper_event)e);
			enum keeper_state from = (enum keeper_state)s;
			assert_true(step.next < KEEPER_STATES);
			/* A start is only made where nothing lives, and only there is one begun. */
			assert_int_equal((step.actions & KEEPER_SPAWN) != 0, step.next == KEEPER_STARTING && from != KEEPER_STARTING);
			if (step.actions & KEEPER_SPAWN)
				assert_false(alive(from));
			/* Only the kernel's word that nothing is left leads from a living state to a dead one. */
			if (alive(from) && !alive(step.next))
				assert_int_equal(e, KEEPER_ON_DRAINED);
			/* Signals only where something may live. */
			if (step.actions & (KEEPER_TERM | KEEPER_KILL))
				assert_true(alive(from));
			/* A stop that was asked for is never taken back. */
			if (from == KEEPER_STOPPING || from == KEEPER_KILLING)
				assert_true(step.next == KEEPER_STOPPING || step.next == KEEPER_KILLING || step.next == KEEPER_GONE);
			if (e == KEEPER_ON_STOP && from != KEEPER_GONE)
				assert_true(step.next == KEEPER_GONE || step.next == KEEPER_STOPPING || step.next == KEEPER_KILLING);
			if (from == KEEPER_GONE)
				assert_true(step.next == KEEPER_GONE && step.actions == 0);
		}
}

/* Whoever waits for time has armed a timer: no state can be stuck. */
static void states_that_need_time_arm_it(void **unused)
{
	(void)unused;
	for (int s = 0; s < KEEPER_STATES; s++)
		for (int e = 0; e < KEEPER_EVENTS; e++) {
			struct keeper_step step = keeper_step((enum keeper_state)s, (enum keeper_event)e);
			bool timed = step.next != KEEPER_RUNNING && (alive(step.next) || step.next == KEEPER_WAITING);
			if (timed && ((enum keeper_state)s != step.next || e == KEEPER_ON_TIMER) &&
			    !(s == KEEPER_GONE))
				assert_true(step.actions &
					    (KEEPER_ARM_RESTART | KEEPER_ARM_SWEEP | KEEPER_ARM_GRACE | KEEPER_ARM_AGAIN));
		}
	for (int s = 0; s < KEEPER_STATES; s++) {
		struct keeper_step step = keeper_step((enum keeper_state)s, KEEPER_ON_TIMER);
		bool timed = (alive((enum keeper_state)s) && s != KEEPER_RUNNING) || s == KEEPER_WAITING;
		assert_int_equal(step.actions != 0, timed);
	}
}

static void one_life(void **unused)
{
	(void)unused;
	static const struct {
		enum keeper_event event;
		enum keeper_state next;
		enum unit_active active;
	} life[] = {
		{KEEPER_ON_START, KEEPER_STARTING, UNIT_STARTING},          {KEEPER_ON_SPAWNED, KEEPER_RUNNING, UNIT_ACTIVE},
		{KEEPER_ON_EXIT_FAILED, KEEPER_SWEEP_RESTART, UNIT_RESTARTING}, {KEEPER_ON_TIMER, KEEPER_SWEEP_RESTART, UNIT_RESTARTING},
		{KEEPER_ON_DRAINED, KEEPER_WAITING, UNIT_RESTARTING},       {KEEPER_ON_TIMER, KEEPER_STARTING, UNIT_STARTING},
		{KEEPER_ON_SPAWN_FAILED, KEEPER_WAITING, UNIT_RESTARTING},  {KEEPER_ON_TIMER, KEEPER_STARTING, UNIT_STARTING},
		{KEEPER_ON_LIMIT, KEEPER_FAILED, UNIT_FAILED},              {KEEPER_ON_START, KEEPER_STARTING, UNIT_STARTING},
		{KEEPER_ON_SPAWNED, KEEPER_RUNNING, UNIT_ACTIVE},           {KEEPER_ON_EXIT_TERMINAL, KEEPER_SWEEP_TERMINAL, UNIT_STOPPING},
		{KEEPER_ON_DRAINED, KEEPER_FAILED, UNIT_FAILED},            {KEEPER_ON_START, KEEPER_STARTING, UNIT_STARTING},
		{KEEPER_ON_SPAWNED, KEEPER_RUNNING, UNIT_ACTIVE},           {KEEPER_ON_EXIT_CLEAN, KEEPER_SWEEP_CLEAN, UNIT_STOPPING},
		{KEEPER_ON_DRAINED, KEEPER_STOPPED, UNIT_INACTIVE},         {KEEPER_ON_START, KEEPER_STARTING, UNIT_STARTING},
		{KEEPER_ON_SPAWNED, KEEPER_RUNNING, UNIT_ACTIVE},           {KEEPER_ON_STOP, KEEPER_STOPPING, UNIT_STOPPING},
		{KEEPER_ON_EXIT_FAILED, KEEPER_STOPPING, UNIT_STOPPING},    {KEEPER_ON_TIMER, KEEPER_KILLING, UNIT_STOPPING},
		{KEEPER_ON_START, KEEPER_KILLING, UNIT_STOPPING},           {KEEPER_ON_TIMER, KEEPER_KILLING, UNIT_STOPPING},
		{KEEPER_ON_DRAINED, KEEPER_GONE, UNIT_INACTIVE},            {KEEPER_ON_START, KEEPER_GONE, UNIT_INACTIVE},
	};
	enum keeper_state state = KEEPER_NEW;
	for (size_t i = 0; i < sizeof life / sizeof *life; i++) {
		state = keeper_step(state, life[i].event).next;
		assert_int_equal(state, life[i].next);
		assert_int_equal(keeper_state_active(state), life[i].active);
	}
}

static void numbers_out_of_range_change_nothing(void **unused)
{
	(void)unused;
	struct keeper_step step = keeper_step((enum keeper_state)99, KEEPER_ON_STOP);
	assert_int_equal(step.next, 99);
	assert_int_equal(step.actions, 0);
	step = keeper_step(KEEPER_RUNNING, (enum keeper_event)99);
	assert_int_equal(step.next, KEEPER_RUNNING);
	assert_int_equal(step.actions, 0);
	assert_string_equal(keeper_state_name((enum keeper_state)99), "unknown");
	assert_int_equal(keeper_state_active((enum keeper_state)99), UNIT_UNKNOWN);
}

static void five_starts_in_five_minutes(void **unused)
{
	(void)unused;
	const struct keeper_limits *limits = &keeper_limits_default;
	assert_int_equal(limits->restart_ms, 5000);
	assert_int_equal(limits->starts, 5);
	assert_int_equal(limits->window_ms, UNIT_START_LIMIT_SECS * 1000);
	struct keeper_starts starts = {0};
	for (int i = 0; i < 5; i++)
		assert_true(keeper_start_allowed(&starts, limits, 1000 + i * 5000));
	assert_false(keeper_start_allowed(&starts, limits, 26000));
	assert_false(keeper_start_allowed(&starts, limits, 301000)); /* the window is still open at its last moment */
	assert_true(keeper_start_allowed(&starts, limits, 301001));  /* and a new one opens after it */
	for (int i = 0; i < 4; i++)
		assert_true(keeper_start_allowed(&starts, limits, 302000));
	assert_false(keeper_start_allowed(&starts, limits, 302000));
	starts = (struct keeper_starts){0}; /* forgiven */
	assert_true(keeper_start_allowed(&starts, limits, 302001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_follow_the_unit_template), cmocka_unit_test(every_cell_keeps_the_promises),
		cmocka_unit_test(states_that_need_time_arm_it),      cmocka_unit_test(one_life),
		cmocka_unit_test(numbers_out_of_range_change_nothing), cmocka_unit_test(five_starts_in_five_minutes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
