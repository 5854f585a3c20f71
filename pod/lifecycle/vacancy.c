#include "pod/lifecycle/vacancy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "pod/lifecycle/retire.h"
#include "pod/model/environment.h"
#include "pod/model/refusal.h"
#include "pod/system/homes.h"
#include "pod/system/network.h"
#include "pod/system/process.h"

struct question {
	struct session *session;
	const struct pod_facts *facts;
	char *occupants; /* OCCUPANTS_MAX */
};

/* Another `prune` or `ls` that looks at the home just now is nobody who uses it; a boot is known by its gate. */
static void drop_lookers(const struct session *session, struct process_list *holders)
{
	size_t kept = 0;
	for (size_t i = 0; i < holders->n; i++) {
		bool left = true;
		(void)process_left_program(holders->v[i].pid, session->around.program, &left, NULL);
		if (left)
			holders->v[kept++] = holders->v[i];
	}
	holders->n = kept;
}

static bool bears_no_permission(const struct pin *root, const char *entry)
{
	struct stat st;
	return fstatat(root->fd, entry, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU;
}

/* 1: it is open. 0: there is none, or one without permission bits: nobody but root can have entered it. */
static int open_home(const struct question *q, struct pin *ret_home, struct err *err)
{
	struct err why = {0};
	const char *entry = pod_home_entry(q->facts);
	int r = entry ? pin_child(&q->session->root, entry, ret_home, &why) : -ENOENT;
	if (r == -ENOENT || (r == -EACCES && bears_no_permission(&q->session->root, entry)))
		return 0;
	if (r < 0) {
		*err = why;
		return err_prepend(err, "it cannot be found out whether anybody uses the home");
	}
	return 1;
}

static int nobody_holds_it(const struct question *q, struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	AUTO_PROCESSES struct process_list holders = {0};
	struct pod_paths paths;
	int r = pod_paths_make(&q->session->around.plane, &q->facts->name, &paths, err);
	if (r == 0)
		r = open_home(q, &home, err);
	if (r <= 0)
		return r;
	r = process_holders(&home, paths.home, &holders, err);
	drop_lookers(q->session, &holders);
	if (r < 0 || holders.n == 0)
		return r;
	retire_names(&holders, q->occupants, OCCUPANTS_MAX);
	return refuse(err, REFUSAL_IN_USE, q->facts->name.text, "its home is held by %s, which no unit started; nothing was changed", q->occupants);
}

/* With the record the generation was lost, by which the processes of a lost keeper are known; and systemd's are known by their unit, which may be one of
 * another prefix. The home bears the generation as well. But the payload can write there: what is found so is named, and never signalled. */
static int nobody_of_it_lives(const struct question *q, struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	AUTO_PROCESSES struct process_list members = {0};
	struct unit_group group = {.unkept = true};
	int r = *q->facts->unit.group.pod_id ? 0 : open_home(q, &home, err);
	if (r <= 0 || home_marker_read(&home, group.pod_id, NULL) < 0)
		return r < 0 ? r : 0;
	r = group_members(&group, &members, err);
	if (r < 0 || members.n == 0)
		return r;
	retire_names(&members, q->occupants, OCCUPANTS_MAX);
	return refuse(err, REFUSAL_IN_USE, q->facts->name.text, "no unit is known here, but what was started for it lives: %s; nothing was changed",
		      q->occupants);
}

static int not_started_for_it(const struct question *q, const struct listener *listener, struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	bool serves = false;
	int r = open_home(q, &home, err);
	if (r <= 0)
		return r;
	r = process_serves_home(listener->pid, &home, &serves, err);
	if (r < 0 || !serves)
		return r;
	return refuse(err, REFUSAL_IN_USE, q->facts->name.text, "pid %d (%s) answers on port %d and was started for its home; nothing was changed",
		      (int)listener->pid, listener->program, q->facts->port);
}

/* A listener that cannot be seen could be the pod's; one that can be seen and does not hold the home is not. */
static int nobody_answers(const struct question *q, struct err *err)
{
	AUTO_LISTENERS struct listeners *listeners = NULL;
	struct listener listener = {0};
	const struct pod_facts *facts = q->facts;
	int r = listeners_read(facts->port, &listeners, err);
	if (r < 0 || !listeners_any(listeners, facts->port))
		return r;
	r = listener_of(listeners, facts->port, &facts->unit.group, &listener, err);
	if (r == 0 && listener.pid)
		return not_started_for_it(q, &listener, err);
	if (r < 0 || facts->record_kind == RECORD_ABSENT)
		return r;
	return refuse(err, REFUSAL_IN_USE, facts->name.text, "something that cannot be seen answers on port %d and could be it; nothing was changed",
		      facts->port);
}

int home_vacant(struct session *session, const struct pod_facts *facts, char ret_occupants[OCCUPANTS_MAX], struct err *err)
{
	struct question q = {.session = session, .facts = facts, .occupants = ret_occupants};
	int r = nobody_holds_it(&q, err);
	if (r == 0)
		r = nobody_of_it_lives(&q, err);
	return r < 0 ? r : nobody_answers(&q, err);
}
