/* The keeper's own state, shared by its parts and by nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/deadline.h"
#include "pod/model/environment.h"
#include "pod/model/keeper_message.h"
#include "pod/system/keeper.h"
#include "pod/system/keeper_channel.h"
#include "pod/system/life.h"

#define KEEPER_CLIENTS 32

struct keeper_client {
	int fd; /* -1: free */
	bool watches, waits; /* wants every change; wants to hear of the end */
};

struct keeper {
	const struct service_context *context;
	const struct pod_name *name;
	struct keeper_limits limits;
	enum keeper_state state;
	struct keeper_starts starts;
	struct deadline timer; /* DEADLINE_NEVER: not armed */
	int64_t grace_ms;      /* of the stop that was asked for */
	bool grace_runs;
	int again_ms; /* pause before the next pass of SIGKILL */

	struct unit_group group; /* cgroup and id; tree is this process */
	int cgroup_fd;
	pid_t main_pid;
	int main_pidfd; /* of the last main process, kept after its end: it also stands for the process group that it led */
	bool drained; /* wait(2) said that there is no descendant */

	unsigned restarts;
	enum unit_end end;
	int status;
	int64_t since_usec;
	char trouble[160]; /* why the last start could not be made */

	struct vigil vigil;    /* of the pod's life, as its record tells it */
	int ender;             /* pidfd of the process that takes the pod down, -1 none */
	struct deadline again; /* when to see whether it did */

	int signals; /* signalfd */
	int spare;   /* given up for a moment when descriptors run out */
	struct channel channel;
	struct keeper_client clients[KEEPER_CLIENTS];
};

/* One event, and all that follows from it. */
void keeper_dispatch(struct keeper *keeper, enum keeper_event event);
/* Takes every ended descendant and dispatches what follows. */
void keeper_reap(struct keeper *keeper);
void keeper_state_tell(const struct keeper *keeper, struct unit_state *ret_state);

/* One start of the payload: 0 and main_pid, or an error. */
int keeper_spawn(struct keeper *keeper, struct err *err);

/* Watches for the life that the record tells now; without a record, for none. */
int keeper_guard(struct keeper *keeper, struct err *err);
/* Something about it was heard: when it is over, the ordinary `down` is started in a process that outlives this one. */
void keeper_guard_hear(struct keeper *keeper);
void keeper_guard_end(struct keeper *keeper);

void keeper_clients_init(struct keeper *keeper);
void keeper_clients_accept(struct keeper *keeper);
void keeper_client_hear(struct keeper *keeper, struct keeper_client *client);
void keeper_clients_tell_change(struct keeper *keeper);
void keeper_clients_tell_gone(struct keeper *keeper);
