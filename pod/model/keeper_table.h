/* What the embedded supervisor does: states × events as one table, the verdict on an end, the start limit. Pure: time comes in as a number.
 * The rules are those of the unit template (Restart=on-failure, RestartSec=, StartLimitBurst=, RestartPreventExitStatus=; systemd.service(5),
 * systemd.unit(5)), so that a pod behaves alike under both managers. */
#pragma once

#include <stdint.h>

#include "pod/model/facts.h"

enum keeper_state {
	KEEPER_NEW,            /* nothing was started yet */
	KEEPER_STARTING,       /* a start is being made */
	KEEPER_RUNNING,        /* the main process lives */
	KEEPER_SWEEP_CLEAN,    /* it ended well; what it left behind is being ended */
	KEEPER_SWEEP_TERMINAL, /* it ended with a terminal status; the same */
	KEEPER_SWEEP_RESTART,  /* it failed; the same */
	KEEPER_WAITING,        /* for the next start */
	KEEPER_STOPPING,       /* asked to end; SIGTERM was sent, the grace runs */
	KEEPER_KILLING,        /* the grace is over */
	KEEPER_STOPPED,        /* ended well, nothing lives */
	KEEPER_FAILED,         /* ended badly, nothing lives, no restart */
	KEEPER_GONE,           /* the supervisor itself ends */
	KEEPER_STATES,
};

enum keeper_event {
	KEEPER_ON_START,         /* somebody asks for a start */
	KEEPER_ON_SPAWNED,       /* the start was made */
	KEEPER_ON_SPAWN_FAILED,  /* it could not be made */
	KEEPER_ON_LIMIT,         /* it may not be made: too many within the window */
	KEEPER_ON_EXIT_CLEAN,    /* the main process ended: verdicts of keeper_verdict */
	KEEPER_ON_EXIT_TERMINAL,
	KEEPER_ON_EXIT_FAILED,
	KEEPER_ON_DRAINED,       /* no descendant is left (the kernel's ECHILD) */
	KEEPER_ON_TIMER,         /* the armed time has come */
	KEEPER_ON_STOP,          /* somebody asks for the end */
	KEEPER_EVENTS,
};

enum keeper_action {
	KEEPER_SPAWN = 1 << 0,       /* make a start: answered by SPAWNED, SPAWN_FAILED or LIMIT */
	KEEPER_FORGIVE = 1 << 1,     /* forget earlier starts: a person asked */
	KEEPER_TERM = 1 << 2,        /* SIGTERM and SIGCONT to everything that lives */
	KEEPER_KILL = 1 << 3,        /* SIGKILL to everything that lives */
	KEEPER_ARM_RESTART = 1 << 4, /* one timer: each ARM replaces the one before */
	KEEPER_ARM_SWEEP = 1 << 5,
	KEEPER_ARM_GRACE = 1 << 6,   /* of the request; never later than a grace that already runs */
	KEEPER_ARM_AGAIN = 1 << 7,   /* a short pause before the next KILL */
	KEEPER_DISARM = 1 << 8,
};

struct keeper_step {
	enum keeper_state next;
	unsigned actions; /* enum keeper_action, carried out in the order of their bits */
};
struct keeper_step keeper_step(enum keeper_state state, enum keeper_event event);
const char *keeper_state_name(enum keeper_state state);
enum unit_active keeper_state_active(enum keeper_state state);

/* Of a main process that ended: `signal` 0 means it exited with `status`. */
enum keeper_event keeper_verdict(int status, int signal);

struct keeper_limits {
	int64_t restart_ms; /* between the end of everything and the next start */
	int64_t sweep_ms;   /* from SIGTERM to SIGKILL for what a dead main process left behind */
	int64_t window_ms;  /* at most `starts` starts begin within it */
	unsigned starts;
};
extern const struct keeper_limits keeper_limits_default; /* as the systemd unit has them: unit_text.h */

/* The window opens with the first start and is not sliding, as systemd's. */
struct keeper_starts {
	int64_t opened_ms;
	unsigned count; /* 0: closed */
};
/* May a start be made now? Counts it if so. */
bool keeper_start_allowed(struct keeper_starts *starts, const struct keeper_limits *limits, int64_t now_ms);
