#include "pod/lifecycle/retire.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "fsops/tree.h"
#include "pod/system/home_look.h"
#include "pod/system/homes.h"
#include "pod/system/process.h"

#define COMES_BACK_MS 3000
#define RHYTHM_MS 35 /* a writer outside the pod who writes at least this often is outlasted */
#define QUIET_MOST_MS 250
#define ENTRIES_ASKED_MOST 1000 /* more take about the rhythm to delete */

/* One home, and who was seen in it when it came back. */
struct retirement {
	struct session *session;
	const struct pod_name *name;
	const char *home;
	struct deadline patience;
	struct tree_left *left;
	char writers[512];
	bool moved;
	struct deadline quiet; /* until then the home may come back */
};

void retire_names(const struct process_list *list, char *out, size_t size)
{
	size_t used = 0;
	*out = '\0';
	for (size_t i = 0; i < list->n && used < size; i++) {
		int n = snprintf(out + used, size - used, "%spid %d (%s)", i ? ", " : "", (int)list->v[i].pid, list->v[i].comm);
		used += n > 0 ? (size_t)n : 0;
	}
}

int retire_remove(struct session *session, const struct pod_name *name, struct deadline until, struct tree_left *ret_left, struct err *err)
{
	if (session->root.fd < 0)
		return 0;
	return tree_remove(&session->root, pod_file_retired(name).text, until, ret_left, err);
}

static void see_writers(struct retirement *t, const char *entry)
{
	AUTO_PIN struct pin pin = PIN_NONE;
	AUTO_PROCESSES struct process_list holders = {0};
	if (!*t->writers && pin_child(&t->session->root, entry, &pin, NULL) == 0 && process_holders(&pin, NULL, &holders, NULL) == 0)
		retire_names(&holders, t->writers, sizeof t->writers);
}

static const char *who(const struct retirement *t)
{
	return *t->writers ? t->writers : "somebody outside the pod who could not be seen";
}

/* Who writes into the home again and again has left a sign in it within his rhythm; where there is none, nobody has to be waited for. */
static int64_t rhythm_left_ms(const struct retirement *t)
{
	int64_t changed_ns = 0;
	struct timespec now;
	if (tree_last_change(&t->session->root, pod_file_retired(t->name).text, ENTRIES_ASKED_MOST, &changed_ns, NULL) < 0 ||
	    clock_gettime(CLOCK_REALTIME, &now) < 0)
		return RHYTHM_MS;
	int64_t left = RHYTHM_MS - ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec - changed_ns) / 1000000;
	return left < 0 ? 0 : left > RHYTHM_MS ? RHYTHM_MS : left;
}

static int retire_once(struct retirement *t, struct err *err)
{
	int r = retire_remove(t->session, t->name, t->patience, t->left, err);
	if (r == 0)
		r = home_retire(&t->session->root, t->home, t->name, &t->moved, err);
	if (r == 0 && t->moved)
		t->quiet = deadline_in_ms(rhythm_left_ms(t));
	if (r == 0 && t->moved)
		r = retire_remove(t->session, t->name, t->patience, t->left, err);
	if (r == -ENOTEMPTY)
		see_writers(t, pod_file_retired(t->name).text);
	if (r == -ENOTEMPTY && *t->writers)
		(void)err_prepend(err, "held by %s", t->writers);
	return r;
}

static void stay_quiet(struct deadline until)
{
	struct backoff backoff = {0};
	while (!deadline_passed(until))
		backoff_sleep(&backoff, until);
}

/* The longer it takes to stay away, the longer it is watched. */
static int outlast(struct retirement *t, struct err *err)
{
	for (int64_t quiet_ms = RHYTHM_MS;; quiet_ms = quiet_ms < QUIET_MOST_MS ? quiet_ms * 2 : quiet_ms) {
		bool stands = false;
		stay_quiet(t->quiet);
		int r = home_stands(&t->session->root, t->home, &stands, err);
		if (r < 0 || !stands)
			return r;
		see_writers(t, t->home);
		if (deadline_passed(t->patience))
			return err_set(err, -ENOTEMPTY, "home", t->name->text, "its home %s/%s is made anew again and again by %s",
				       t->session->around.plane.root, t->home, who(t));
		r = retire_once(t, err);
		if (r < 0)
			return r;
		t->quiet = deadline_in_ms(quiet_ms);
	}
}

int retire_home(struct session *session, const struct pod_name *name, const char *home, struct tree_left *ret_left, struct err *err)
{
	struct retirement t = {
		.session = session,
		.name = name,
		.home = home ? home : name->text,
		.patience = deadline_in_ms(COMES_BACK_MS),
		.left = ret_left,
	};
	if (session->root.fd < 0)
		return 0;
	if (!home)
		return retire_remove(session, name, t.patience, ret_left, err);
	int r = retire_once(&t, err);
	return r == 0 && t.moved ? outlast(&t, err) : r;
}
