#include "pod/model/keeper_table.h"

#include <signal.h>
#include <stddef.h>

#include "pod/model/refusal.h"
#include "pod/model/unit_text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct cell {
	enum keeper_state next;
	unsigned actions;
	bool set; /* a cell that is not set changes nothing */
};
#define GO(state, what) {KEEPER_##state, (what), true}

/* An end that was asked for wins over everything: from STOPPING on, only DRAINED and the timer count. */
#define SWEEP(state, after, then)                                                      \
	[KEEPER_##state] = {                                                            \
		[KEEPER_ON_DRAINED] = GO(after, then),                                  \
		[KEEPER_ON_TIMER] = GO(state, KEEPER_KILL | KEEPER_ARM_AGAIN),          \
		[KEEPER_ON_STOP] = GO(STOPPING, KEEPER_TERM | KEEPER_ARM_GRACE),        \
	}

static const struct cell table[][KEEPER_EVENTS] = {
	[KEEPER_NEW] = {
		[KEEPER_ON_START] = GO(STARTING, KEEPER_FORGIVE | KEEPER_SPAWN),
		[KEEPER_ON_STOP] = GO(GONE, 0),
	},
	[KEEPER_STARTING] = {
		[KEEPER_ON_SPAWNED] = GO(RUNNING, 0),
		[KEEPER_ON_SPAWN_FAILED] = GO(WAITING, KEEPER_ARM_RESTART),
		[KEEPER_ON_LIMIT] = GO(FAILED, KEEPER_DISARM),
		[KEEPER_ON_STOP] = GO(GONE, KEEPER_DISARM),
	},
	[KEEPER_RUNNING] = {
		[KEEPER_ON_EXIT_CLEAN] = GO(SWEEP_CLEAN, KEEPER_TERM | KEEPER_ARM_SWEEP),
		[KEEPER_ON_EXIT_TERMINAL] = GO(SWEEP_TERMINAL, KEEPER_TERM | KEEPER_ARM_SWEEP),
		[KEEPER_ON_EXIT_FAILED] = GO(SWEEP_RESTART, KEEPER_TERM | KEEPER_ARM_SWEEP),
		[KEEPER_ON_STOP] = GO(STOPPING, KEEPER_TERM | KEEPER_ARM_GRACE),
	},
	SWEEP(SWEEP_CLEAN, STOPPED, KEEPER_DISARM),
	SWEEP(SWEEP_TERMINAL, FAILED, KEEPER_DISARM),
	SWEEP(SWEEP_RESTART, WAITING, KEEPER_ARM_RESTART),
	[KEEPER_WAITING] = {
		[KEEPER_ON_START] = GO(STARTING, KEEPER_FORGIVE | KEEPER_DISARM | KEEPER_SPAWN),
		[KEEPER_ON_TIMER] = GO(STARTING, KEEPER_SPAWN),
		[KEEPER_ON_STOP] = GO(GONE, KEEPER_DISARM),
	},
	[KEEPER_STOPPING] = {
		[KEEPER_ON_DRAINED] = GO(GONE, KEEPER_DISARM),
		[KEEPER_ON_TIMER] = GO(KILLING, KEEPER_KILL | KEEPER_ARM_AGAIN),
		[KEEPER_ON_STOP] = GO(STOPPING, KEEPER_ARM_GRACE),
	},
	[KEEPER_KILLING] = {
		[KEEPER_ON_DRAINED] = GO(GONE, KEEPER_DISARM),
		[KEEPER_ON_TIMER] = GO(KILLING, KEEPER_KILL | KEEPER_ARM_AGAIN),
	},
	[KEEPER_STOPPED] = {
		[KEEPER_ON_START] = GO(STARTING, KEEPER_FORGIVE | KEEPER_SPAWN),
		[KEEPER_ON_STOP] = GO(GONE, 0),
	},
	[KEEPER_FAILED] = {
		[KEEPER_ON_START] = GO(STARTING, KEEPER_FORGIVE | KEEPER_SPAWN),
		[KEEPER_ON_STOP] = GO(GONE, 0),
	},
	[KEEPER_GONE] = {{0}},
};
_Static_assert(COUNT(table) == KEEPER_STATES, "one row for each state");

static const struct {
	const char *name;
	enum unit_active active;
} states[] = {
	[KEEPER_NEW] = {"new", UNIT_STARTING},
	[KEEPER_STARTING] = {"starting", UNIT_STARTING},
	[KEEPER_RUNNING] = {"running", UNIT_ACTIVE},
	[KEEPER_SWEEP_CLEAN] = {"ended, sweeping", UNIT_STOPPING},
	[KEEPER_SWEEP_TERMINAL] = {"refused, sweeping", UNIT_STOPPING},
	[KEEPER_SWEEP_RESTART] = {"failed, sweeping before the restart", UNIT_RESTARTING},
	[KEEPER_WAITING] = {"waiting for the restart", UNIT_RESTARTING},
	[KEEPER_STOPPING] = {"stopping", UNIT_STOPPING},
	[KEEPER_KILLING] = {"killing", UNIT_STOPPING},
	[KEEPER_STOPPED] = {"ended", UNIT_INACTIVE},
	[KEEPER_FAILED] = {"failed", UNIT_FAILED},
	[KEEPER_GONE] = {"gone", UNIT_INACTIVE},
};
_Static_assert(COUNT(states) == KEEPER_STATES, "one name for each state");

struct keeper_step keeper_step(enum keeper_state state, enum keeper_event event)
{
	if ((size_t)state >= COUNT(table) || (size_t)event >= COUNT(table[0]) || !table[state][event].set)
		return (struct keeper_step){state, 0};
	return (struct keeper_step){table[state][event].next, table[state][event].actions};
}

const char *keeper_state_name(enum keeper_state state)
{
	return (size_t)state < COUNT(states) ? states[state].name : "unknown";
}

enum unit_active keeper_state_active(enum keeper_state state)
{
	return (size_t)state < COUNT(states) ? states[state].active : UNIT_UNKNOWN;
}

enum keeper_event keeper_verdict(int status, int signal)
{
	switch (signal) {
	case 0:
		break;
	case SIGHUP:
	case SIGINT:
	case SIGTERM:
	case SIGPIPE:
		return KEEPER_ON_EXIT_CLEAN; /* systemd.service(5): a clean end for Restart=on-failure */
	default:
		return KEEPER_ON_EXIT_FAILED;
	}
	if (status == EXIT_DONE)
		return KEEPER_ON_EXIT_CLEAN;
	return exit_status_terminal(status) ? KEEPER_ON_EXIT_TERMINAL : KEEPER_ON_EXIT_FAILED;
}

const struct keeper_limits keeper_limits_default = {
	.restart_ms = UNIT_RESTART_SECS * 1000L, .sweep_ms = 2000, .window_ms = UNIT_START_LIMIT_SECS * 1000L, .starts = UNIT_START_LIMIT_BURST};

bool keeper_start_allowed(struct keeper_starts *starts, const struct keeper_limits *limits, int64_t now_ms)
{
	if (starts->count == 0 || now_ms - starts->opened_ms > limits->window_ms)
		*starts = (struct keeper_starts){.opened_ms = now_ms};
	if (starts->count >= limits->starts)
		return false;
	starts->count++;
	return true;
}
