/* `up`: a straight line from a request to a report; on failure what this call made is taken back, and nothing else. */
#pragma once

#include "pod/lifecycle/guard.h"
#include "pod/lifecycle/ready.h"
#include "pod/lifecycle/session.h"
#include "pod/model/text.h"

struct up_request {
	struct pod_name name;
	const char *checkout;         /* NULL: the record's, else a worktree of that name */
	char *const *command;         /* words after `--`, or NULL */
	size_t command_count;
	const char *port, *seed, *health, *memory_max, *cpu_quota, *approval; /* NULL: as recorded */
	struct life_wish life;
	bool crons, no_embeddings;
	bool only_new;                /* REFUSAL_EXISTS for whatever stands under that name */
	enum backend backend;         /* BACKEND_AUTO: as recorded, else the plane's */
	int wait_secs;                /* 0: the plane's budget */
};

struct up_report {
	struct pod_name name;
	char id[37];
	enum backend backend;
	int port;
	bool was_running;
	char home[PLANE_PATH_MAX], os_home[PLANE_PATH_MAX];
	pid_t pid;
	int64_t ready_ms;
	struct words warnings; /* raw bytes, one line each */
	char *log_tail;        /* of a failed up, raw bytes; NULL none */
	bool refused;          /* the boot was refused; the pod stays listed with its note */
};
void up_report_free(struct up_report *report);

/* *ret_report is filled as far as it came, also on failure (warnings, log tail). */
int up(struct session *session, const struct up_request *request, struct up_report *ret_report, struct err *err);
