/* What follows from what is known of a pod: its state with the sentence that explains it, and what `up` and `down` may do. */
#include "model_test.h"

#include "pod/model/facts.h"

static struct note note;
static struct pod_facts facts;

/* A pod that runs and answers. */
static void well(void)
{
	facts = (struct pod_facts){.record_kind = RECORD_GOOD,
				   .home = HOME_POD,
				   .unit = {.active = UNIT_ACTIVE, .main_pid = 41},
				   .port = 7933,
				   .listener = {.owner = PORT_OURS, .pid = 41, .program = "server"},
				   .health = {.answer = HEALTH_OK},
				   .left_ms = INT64_MAX,
				   .spec = {.health = {.kind = HEALTH_HTTP}}};
	note = (struct note){.kind = NOTE_TEXT, .code = "agent-dead", .sentence = "the agent is dead"};
	assert_int_equal(pod_name_parse("demo", 4, &facts.name, NULL), 0);
}

static void expect(enum pod_state state, const char *said)
{
	char reason[600];
	enum pod_state got = pod_state_decide(&facts, reason, sizeof reason);
	bool fits = *said ? strstr(reason, said) != NULL : !*reason;
	if (got != state || !fits)
		fail_msg("expected %s, \"%s\"; got %s, \"%s\"", pod_state_name(state), said, pod_state_name(got), reason);
}

static void a_unit_that_runs(void **state)
{
	(void)state;
	well();
	expect(POD_UP, "");
	facts.health.answer = HEALTH_BAD_STATUS;
	facts.health.http_status = 500;
	expect(POD_STARTING, "answers with status 500");
	facts.overdue = true;
	expect(POD_FAILED, "answers with status 500");
	facts.health.answer = HEALTH_GARBAGE;
	expect(POD_FAILED, "what answers on port 7933 is not HTTP");
	facts.health.answer = HEALTH_NO_ANSWER;
	expect(POD_FAILED, "does not answer on port 7933");
	facts.listener.owner = PORT_NOBODY;
	expect(POD_FAILED, "does not listen on port 7933");
	facts.spec.health.kind = HEALTH_NONE;
	expect(POD_UP, "");
}

static void a_port_or_a_home_of_somebody_else(void **state)
{
	(void)state;
	well();
	facts.listener.owner = PORT_FOREIGN;
	expect(POD_FOREIGN, "port 7933 is held by pid 41 (server)");
	facts.listener.pid = 0;
	expect(POD_FOREIGN, "held by a process that cannot be seen");
	well();
	facts.home = HOME_ABSENT;
	expect(POD_FAILED, "its home is gone");
	facts.home = HOME_REPLACED;
	expect(POD_FAILED, "another directory stands in the place of its home");
	well();
	facts.record_kind = RECORD_ABSENT;
	expect(POD_UP, "its record is gone");
	facts.record_kind = RECORD_BAD;
	facts.record_error = (char[]){"cannot be read"};
	expect(POD_UP, "its record cannot be read");
}

static void a_unit_between_two_states(void **state)
{
	static const struct {
		enum unit_end end;
		const char *said;
	} ends[] = {
		{UNIT_END_EXITED, "exited with status 9"},	     {UNIT_END_SIGNALED, "ended by signal 9"},	  {UNIT_END_TIMEOUT, "ran into a time limit"},
		{UNIT_END_START_LIMIT, "was started too often"}, {UNIT_END_OTHER, "the unit failed"}, {UNIT_END_NONE, "the unit failed"},
	};
	(void)state;
	well();
	facts.unit.status = 9;
	facts.unit.active = UNIT_RESTARTING;
	for (size_t i = 0; i < COUNT(ends); i++) {
		facts.unit.end = ends[i].end;
		expect(POD_RESTARTING, ends[i].said);
	}
	strcpy(facts.unit.detail, "resources");
	expect(POD_RESTARTING, "resources; it is started again");
	facts.unit.active = UNIT_UNKNOWN;
	expect(POD_FAILED, "could not be asked: resources");
	facts.unit.detail[0] = '\0';
	expect(POD_FAILED, "could not be asked: no answer");
	facts.unit.active = UNIT_STARTING;
	expect(POD_STARTING, "");
	facts.unit.active = UNIT_STOPPING;
	expect(POD_STOPPED, "it is being stopped");
}

static void a_unit_that_ended(void **state)
{
	(void)state;
	well();
	facts.unit = (struct unit_state){.active = UNIT_INACTIVE, .end = UNIT_END_EXITED, .status = 0};
	expect(POD_STOPPED, "exited with status 0");
	facts.unit.end = UNIT_END_SIGNALED;
	facts.unit.status = 15;
	expect(POD_STOPPED, "ended by signal 15");
	facts.unit.end = UNIT_END_NONE;
	expect(POD_STOPPED, "");
	facts.unit = (struct unit_state){.active = UNIT_FAILED, .end = UNIT_END_EXITED, .status = 1};
	expect(POD_FAILED, "exited with status 1");
	facts.unit.status = EXIT_REFUSED;
	expect(POD_REFUSED, "refused with status 78; no note could be written");
	facts.note = &note;
	expect(POD_REFUSED, "the agent is dead");
	note.sentence[0] = '\0';
	expect(POD_REFUSED, "the note is empty");
}

static void what_is_left_without_a_unit(void **state)
{
	(void)state;
	well();
	facts.unit = (struct unit_state){.active = UNIT_ABSENT};
	expect(POD_ORPHAN, "no unit; `kirocrew-pod down demo` removes it");
	facts.held_by = 77;
	expect(POD_FOREIGN, "pid 77 holds the home without a unit");
	facts.held_by = 0;
	facts.home = HOME_ABSENT;
	expect(POD_ORPHAN, "no unit and no home");
	facts.home = HOME_REPLACED;
	expect(POD_ORPHAN, "its home was replaced");
	facts.home = HOME_ODD;
	expect(POD_ORPHAN, "not a directory of ours");
	facts.record_kind = RECORD_ABSENT;
	expect(POD_ORPHAN, "no `up` made what stands here");
	facts.record_kind = RECORD_BAD;
	facts.record_error = (char[]){"line 3 is no line"};
	expect(POD_ORPHAN, "line 3 is no line");
	facts.record_kind = RECORD_ABSENT;
	facts.home = HOME_POD;
	facts.unit.active = UNIT_INACTIVE;
	expect(POD_ORPHAN, "no unit;");
	facts.retired = true;
	expect(POD_UNFINISHED, "`kirocrew-pod down demo` completes it");
}

static void the_end_of_a_life_is_told_as_well(void **state)
{
	(void)state;
	well();
	facts.spec.life.owner.pid = 42;
	facts.life_end = LIFE_OWNER_GONE;
	expect(POD_UP, "its owner, pid 42, is gone");
	facts.unit = (struct unit_state){.active = UNIT_ABSENT};
	facts.life_end = LIFE_TIME_OVER;
	expect(POD_ORPHAN, "; its time is over");
	assert_true(life_is_bounded(&facts.spec.life));
	facts.spec.life = (struct life){.limit = {.epoch_s = 1}};
	assert_true(life_is_bounded(&facts.spec.life));
	facts.spec.life = (struct life){0};
	assert_false(life_is_bounded(&facts.spec.life));
}

static void what_lives_and_what_exists(void **state)
{
	(void)state;
	for (int s = 0; s < POD_STATES; s++)
		assert_int_equal(pod_is_alive((enum pod_state)s), s == POD_UP || s == POD_STARTING || s == POD_RESTARTING || s == POD_FOREIGN);
	facts = (struct pod_facts){.unit = {.active = UNIT_ABSENT}};
	assert_false(pod_exists(&facts));
	facts.unit_file = true;
	assert_true(pod_exists(&facts));
	facts = (struct pod_facts){.unit = {.active = UNIT_FAILED}};
	assert_true(pod_exists(&facts));
	assert_true(pod_stands(&facts));
	facts = (struct pod_facts){.retired = true}; /* nobody's: a new pod may be made */
	assert_true(pod_exists(&facts));
	assert_false(pod_stands(&facts));
	facts = (struct pod_facts){.retired = true, .record_kind = RECORD_GOOD};
	assert_true(pod_stands(&facts));
	facts = (struct pod_facts){.note = &note};
	assert_true(pod_exists(&facts));
	facts = (struct pod_facts){.home = HOME_ODD};
	assert_true(pod_exists(&facts));
}

static void a_stranger_has_a_name_and_nothing_else(void **state)
{
	(void)state;
	const struct pod_facts stranger = {.home = HOME_NOT_A_POD, .unit = {.active = UNIT_ABSENT}};
	assert_true(pod_is_stranger(&stranger));
	struct pod_facts own[6];
	for (size_t i = 0; i < COUNT(own); i++)
		own[i] = stranger;
	own[0].record_kind = RECORD_BAD;
	own[1].retired = true;
	own[2].unit_file = true;
	own[3].note = &note;
	own[4].unit.active = UNIT_ACTIVE;
	own[5].home = HOME_POD;
	for (size_t i = 0; i < COUNT(own); i++)
		assert_false(pod_is_stranger(&own[i]));
}

static void where_its_home_is(void **state)
{
	(void)state;
	well();
	assert_string_equal(pod_home_entry(&facts), "demo");
	facts.home = HOME_REPLACED;
	assert_null(pod_home_entry(&facts));
	facts.home_moved = (char[]){"elsewhere"};
	assert_string_equal(pod_home_entry(&facts), "elsewhere");
	facts = (struct pod_facts){.home = HOME_ABSENT};
	assert_null(pod_home_entry(&facts));
}

static void a_noted_refusal_is_said_again(void **state)
{
	struct err err = {0};
	char sentence[600];
	(void)state;
	well();
	assert_refused(refuse_as_noted(&note, 78, "demo", &err), &err, REFUSAL_AGENT_DEAD, "the agent is dead");
	/* The remedy is cut off the note, because it will be said again. */
	snprintf(note.sentence, sizeof note.sentence, "it stands there; %s", refusal_entry(REFUSAL_AGENT_DEAD)->remedy);
	assert_refused(refuse_as_noted(&note, 78, "demo", &err), &err, REFUSAL_AGENT_DEAD, "it stands there");
	assert_string_equal(err.text, "it stands there");
	err_sentence(&err, sentence, sizeof sentence);
	assert_non_null(strstr(sentence, refusal_entry(REFUSAL_AGENT_DEAD)->remedy));
	snprintf(note.sentence, sizeof note.sentence, "%s", refusal_entry(REFUSAL_AGENT_DEAD)->remedy);
	assert_refused(refuse_as_noted(&note, 78, "demo", &err), &err, REFUSAL_AGENT_DEAD, refusal_entry(REFUSAL_AGENT_DEAD)->remedy);
	/* A code that nobody knows: what the status says. */
	note = (struct note){.kind = NOTE_EMPTY};
	assert_refused(refuse_as_noted(&note, EXIT_NOT_PROVISIONED, "demo", &err), &err, REFUSAL_NOT_PROVISIONED, "left no sentence");
	assert_refused(refuse_as_noted(&note, EXIT_LIVE_PORT, "demo", &err), &err, REFUSAL_LIVE_PORT, "status 70");
	assert_refused(refuse_as_noted(&note, EXIT_REFUSED, "demo", &err), &err, REFUSAL_HOME, "status 78");
	assert_int_equal(refuse_as_noted(&note, EXIT_REFUSED, "demo", NULL), -EPERM);
}

static void what_up_finds(void **state)
{
	struct up_plan plan = {0};
	struct err err = {0};
	(void)state;
	well();
	assert_done(up_decide(&facts, &plan, &err), &err);
	assert_true(plan.running && !plan.complete && !plan.fresh);
	facts.unit.active = UNIT_STARTING;
	assert_done(up_decide(&facts, &plan, &err), &err);
	assert_true(plan.running);
	facts.unit.active = UNIT_UNKNOWN;
	assert_int_equal(up_decide(&facts, &plan, &err) < 0, 1);
	well();
	facts.unit.active = UNIT_ABSENT;
	facts.record_kind = RECORD_BAD;
	assert_refused(up_decide(&facts, &plan, &err), &err, REFUSAL_BAD_CONFIG, NULL);
	facts.record_kind = RECORD_GOOD;
	facts.gate_held = true;
	assert_done(up_decide(&facts, &plan, &err), &err);
	facts.held_by = 77;
	assert_refused(up_decide(&facts, &plan, &err), &err, REFUSAL_IN_USE, "77");
}

static void what_up_and_down_do_not_touch(void **state)
{
	struct up_plan up = {0};
	struct down_plan down = {0};
	struct err err = {0};
	(void)state;
	well();
	facts.unit.active = UNIT_ABSENT;
	facts.home = HOME_ODD;
	assert_refused(up_decide(&facts, &up, &err), &err, REFUSAL_UNSAFE_PATH, "demo");
	assert_refused(down_decide(&facts, &down, &err), &err, REFUSAL_UNSAFE_PATH, "demo");
	facts.home = HOME_REPLACED;
	assert_refused(down_decide(&facts, &down, &err), &err, REFUSAL_NOT_THE_POD, "demo");
	facts.home_moved = (char[]){"elsewhere"}; /* then that is what is taken down */
	assert_done(down_decide(&facts, &down, &err), &err);
	facts.home_moved = NULL;
	facts.home = HOME_NOT_A_POD;
	assert_done(up_decide(&facts, &up, &err), &err); /* a record makes it one */
	facts.record_kind = RECORD_ABSENT;
	assert_refused(up_decide(&facts, &up, &err), &err, REFUSAL_NOT_A_POD, "demo");
	assert_refused(down_decide(&facts, &down, &err), &err, REFUSAL_NOT_A_POD, "demo");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_that_runs),
		cmocka_unit_test(a_port_or_a_home_of_somebody_else),
		cmocka_unit_test(a_unit_between_two_states),
		cmocka_unit_test(a_unit_that_ended),
		cmocka_unit_test(what_is_left_without_a_unit),
		cmocka_unit_test(the_end_of_a_life_is_told_as_well),
		cmocka_unit_test(what_lives_and_what_exists),
		cmocka_unit_test(a_stranger_has_a_name_and_nothing_else),
		cmocka_unit_test(where_its_home_is),
		cmocka_unit_test(a_noted_refusal_is_said_again),
		cmocka_unit_test(what_up_finds),
		cmocka_unit_test(what_up_and_down_do_not_touch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
