/* What a host offers to pods, as facts, and what follows from them: each finding is well, a warning or a problem, with a remedy only where
 * one is known that can work on this host. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pod/model/plane.h"

enum finding_level { FINDING_OK, FINDING_WARNING, FINDING_PROBLEM };
const char *finding_level_name(enum finding_level level);

struct finding {
	const char *check; /* "manager", "root", … */
	enum finding_level level;
	char text[1024];  /* one sentence without a full stop, raw bytes */
	char remedy[1024]; /* "": there is none to give */
};
#define FINDINGS_MAX 16
struct findings {
	struct finding v[FINDINGS_MAX];
	size_t n;
};
enum finding_level findings_worst(const struct findings *findings);

/* A directory of the plane, or what stands in its place. */
enum place_kind { PLACE_ABSENT, PLACE_DIRECTORY, PLACE_OTHER, PLACE_DANGLING, PLACE_CLOSED };
struct place_facts {
	const char *check, *variable; /* "root", "KIROCREW_POD_ROOT" */
	char path[PLANE_PATH_MAX];
	char target[PLANE_PATH_MAX]; /* where a link leads, "" no link */
	enum place_kind kind;
	int error;         /* of PLACE_CLOSED, negative errno */
	uid_t owner;       /* of the directory; of the nearest one above for PLACE_ABSENT, and so are the rest */
	mode_t mode;
	bool writable, read_only;
	uint64_t bytes_free, inodes_free;
	bool inodes_counted; /* some file systems have no fixed number */
};
enum { PLACE_ROOT, PLACE_PODS_DIR, PLACE_ARTIFACTS, PLACES };

struct cgroup_facts {
	bool mounted, read_only;
	char own[512];         /* directory of our own group, "" outside of what is mounted */
	bool own_writable, own_is_root;
	char controllers[256]; /* of the group that limits are set in: the user manager's, else our own */
	char available[256];   /* of the whole hierarchy */
};

/* By name; the first few and how many there are. */
#define LEFTOVERS_NAMED 5
struct leftovers {
	char named[LEFTOVERS_NAMED][320];
	size_t count;
};

struct host_facts {
	bool linux_host;
	uid_t uid;
	char user[64];             /* "" unknown */
	const char *installer;     /* "apt-get install", NULL: unknown */
	char settings_error[1024]; /* why the settings cannot be used: then nothing is known of a plane */
	enum backend wanted;       /* the plane's setting */

	bool booted_with_systemd, logind, lingers;
	bool manager_answers, bus;
	char manager_error[1024];  /* with advice */

	struct cgroup_facts cgroup;
	int user_namespace_error;  /* negative errno of an attempt, 0: it can be done */
	long max_user_namespaces;  /* -1 unknown */
	int unprivileged_clone;    /* Debian's kernel.unprivileged_userns_clone; -1: no such setting */
	int apparmor_restricts;    /* kernel.apparmor_restrict_unprivileged_userns; -1: no such setting */

	bool sandbox_found, sandbox_by_descriptor, sandbox_works;
	char sandbox_path[128], sandbox_error[256];

	bool journald, journal_readable, journal_group;

	struct place_facts places[PLACES];
	char root_parent_error[1024];

	char agent_word[256], agent_path[PLANE_PATH_MAX]; /* path "": not found */
	char agent_error[512];
	bool git;

	char pods_error[1024];     /* why the pods could not be looked at */
	struct leftovers orphans;  /* pods that only `down` or `prune` can end */
	struct leftovers strangers; /* what stands in the root and no `up` made */
	struct leftovers drop_ins; /* of pods that have no record: paths */
	char template_program[PLANE_PATH_MAX]; /* what the unit template starts, "" there is no template */
	bool template_program_missing, template_of_others;
};

void doctor_judge(const struct host_facts *host, struct findings *ret_findings);
