/* What is known of a pod, gathered by system reads only, and what follows from it. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fsops/err.h"
#include "pod/model/name.h"
#include "pod/model/record.h"

enum unit_active {
	UNIT_UNKNOWN, /* could not be asked */
	UNIT_ABSENT,  /* the manager has no definition of it: never installed, or taken away */
	UNIT_INACTIVE, /* defined, and not running */
	UNIT_STARTING,
	UNIT_ACTIVE,
	UNIT_RESTARTING, /* waits for its next start */
	UNIT_STOPPING,
	UNIT_FAILED,
};

enum unit_end { UNIT_END_NONE, UNIT_END_EXITED, UNIT_END_SIGNALED, UNIT_END_TIMEOUT, UNIT_END_START_LIMIT, UNIT_END_OTHER };

/* Where the processes of a unit are: a control group, or the tree below a process (which is a child subreaper). */
struct unit_group {
	char cgroup[512]; /* absolute directory on the cgroup2 mount, "" none */
	pid_t tree;       /* keeper pid, 0 none; itself not a member */
	uint64_t tree_start; /* its start time (struct process), 0: the caller vouches that the pid is still the keeper's */
	char pod_id[37];  /* for remnants of a dead keeper; "" none */
	char pod_name[64]; /* whose they are: a record may be a copy of another's; "" of whatever name */
	bool unkept;      /* also those that no keeper started: to be named, never to be signalled */
};

struct unit_state {
	enum unit_active active;
	pid_t main_pid; /* 0 none */
	enum unit_end end;
	int status;     /* exit status or signal of the last main process */
	unsigned restarts;
	int64_t since_usec; /* CLOCK_REALTIME of the last change, 0 unknown */
	struct unit_group group;
	char detail[160]; /* the manager's own word, "" none */
};

enum home_kind {
	HOME_ABSENT,
	HOME_POD,       /* a directory that up or KiroCrew made */
	HOME_NOT_A_POD, /* a directory with neither record nor marker */
	HOME_ODD,       /* link, file, other owner, mount point */
	HOME_REPLACED,  /* another directory than the record's */
};

enum note_kind { NOTE_ABSENT, NOTE_TEXT, NOTE_EMPTY, NOTE_ODD };
struct note {
	enum note_kind kind;
	char code[32];      /* refusal code, "" unknown */
	char sentence[4096]; /* raw bytes, one line; for NOTE_ODD what stands there */
};

enum record_kind { RECORD_ABSENT, RECORD_GOOD, RECORD_BAD };

enum port_owner { PORT_NOBODY, PORT_OURS, PORT_FOREIGN, PORT_UNKNOWN };
struct listener {
	enum port_owner owner;
	pid_t pid;         /* of the foreign one, or ours; 0 unknown */
	char program[64];  /* its comm, raw bytes */
};

enum health_answer { HEALTH_NOT_ASKED, HEALTH_OK, HEALTH_REFUSED_CONNECTION, HEALTH_NO_ANSWER, HEALTH_BAD_STATUS, HEALTH_GARBAGE };
struct health_result {
	enum health_answer answer;
	int http_status; /* 0 none */
};

struct pod_facts {
	struct pod_name name;
	enum record_kind record_kind;
	char *record_error; /* of one that is bad, else NULL. Owned */
	struct spec spec; /* meaningful when RECORD_GOOD */
	enum home_kind home;
	int64_t home_made; /* epoch seconds, 0 unknown */
	char *home_moved;  /* the name in the root that the recorded home has now, raw bytes; NULL: its own, or it is not there. Owned */
	bool retired;      /* a `down` was begun and not completed */
	bool unit_file;    /* a drop-in, plist or keeper socket of this pod is on disk */
	struct unit_state unit;
	int port; /* recorded, else preferred */
	struct listener listener;
	struct health_result health;
	bool gate_held;
	enum life_end life_end; /* of the recorded life */
	int64_t left_ms;   /* of its time, INT64_MAX without one */
	bool overdue;      /* runs for longer than the health budget */
	pid_t held_by;     /* a process without a unit that has the home open, 0 none or not looked for */
	struct note *note; /* NULL: there is none. Owned */
};
void pod_facts_free(struct pod_facts *facts);

enum pod_state { POD_UP, POD_STARTING, POD_RESTARTING, POD_FAILED, POD_REFUSED, POD_FOREIGN, POD_STOPPED, POD_ORPHAN, POD_UNFINISHED, POD_STATES };
const char *pod_state_name(enum pod_state state);
/* The state, and in reason (may be "") the sentence that explains it, raw bytes. */
enum pod_state pod_state_decide(const struct pod_facts *facts, char *reason, size_t size);
const char *pod_home_entry(const struct pod_facts *facts); /* the name in the root of what is this pod's home; NULL none */
bool pod_stands(const struct pod_facts *facts); /* a record, a home, a unit or a note */
bool pod_exists(const struct pod_facts *facts); /* it stands, or a rest of it that nobody owns is on its way out */
/* Something in the root that merely has a name a pod could have: no `up` made it, and nothing of ours touches it. */
bool pod_is_stranger(const struct pod_facts *facts);

/* The refusal that a boot left in its note, as the refusal of the call that waited for it. */
int refuse_as_noted(const struct note *note, int status, const char *subject, struct err *err);

bool pod_is_alive(enum pod_state state); /* runs, starts, or waits for a restart: never pruned */

/* `up`: what is there already. */
struct up_plan {
	bool running;  /* nothing to start: the same report */
	bool complete; /* a `down` has to be completed first */
	bool fresh;    /* no home yet: this call makes it */
	bool unclaimed; /* a home of which no record knows: only if nobody lives in it */
};
int up_decide(const struct pod_facts *facts, struct up_plan *ret_plan, struct err *err);
/* *ret_moves: from the backend that its record names to the wanted one. REFUSAL_BACKEND_KEPT: two managers would start it. */
int up_decide_backend(const struct pod_facts *facts, enum backend wanted, bool *ret_moves, struct err *err);

/* `down` and `prune` of a pod: what may be done (contract, section 10). */
struct down_plan {
	bool nothing; /* unknown name: "nothing to stop", status 0 */
	bool loaded;  /* the manager knows it; of one that it has lost something may live on */
	bool orphan;  /* no unit: delete only if nobody holds the home */
	bool home, retired;
};
int down_decide(const struct pod_facts *facts, struct down_plan *ret_plan, struct err *err);
