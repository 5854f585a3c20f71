#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fsops/cleanup.h"
#include "pod/lifecycle/down.h"
#include "pod/lifecycle/look.h"
#include "pod/lifecycle/progress.h"
#include "pod/system/plane_scan.h"
#include "pod/system/records.h"

void pruned_free(struct pruned *pruned)
{
	free(pruned->v);
	*pruned = (struct pruned){0};
}

int64_t pod_age_s(const struct pod_facts *facts, int64_t now)
{
	int64_t made = facts->spec.created > facts->home_made ? facts->spec.created : facts->home_made;
	return made && made < now ? now - made : 0;
}

/* One of which nobody could tell whether it lives is not taken, but nor is it passed over in silence. */
static bool is_meant(const struct sight *sight, struct prune_options options, int64_t now)
{
	bool dead = !pod_is_alive(sight->state) && sight->facts.unit.active != UNIT_ACTIVE && sight->facts.unit.active != UNIT_STOPPING;
	bool ours = sight->facts.home == HOME_ABSENT || sight->facts.home == HOME_POD;
	bool old = pod_age_s(&sight->facts, now) >= options.older_than_secs || sight->facts.life_end != LIFE_LASTS;
	return dead && ours && old;
}

static void prune_one(struct session *session, const struct sight *sight, struct prune_options options, int64_t now, struct pruned *pruned)
{
	struct pruned_pod *pod = &pruned->v[pruned->n++];
	struct down_report report;
	*pod = (struct pruned_pod){.name = sight->facts.name, .age_s = pod_age_s(&sight->facts, now)};
	if (sight->facts.unit.active == UNIT_UNKNOWN)
		(void)err_set(&pod->failed, -EIO, "unit", pod->name.text, "%s", sight->reason);
	else if (!options.dry_run)
		(void)down(session, &sight->facts.name, (struct down_options){.only_dead = true}, &report, &pod->failed);
}

/* Of pods that are not there any more: a killed `up` may have left no more than this. One at which somebody works is that one's. */
static int sweep_temporary(struct session *session, struct err *err)
{
	AUTO_ENTRIES struct plane_entries entries = {0};
	int r = plane_scan_temporary(&session->pods_dir, &entries, err);
	for (size_t i = 0; r == 0 && i < entries.n; i++) {
		AUTO_LOCK struct lock lock = LOCK_NONE;
		if (session_lock_name(session, &entries.v[i].name, 0, &lock, NULL) == 0)
			r = records_sweep(&session->pods_dir, &entries.v[i].name, err);
	}
	return r;
}

int prune(struct session *session, struct prune_options options, struct pruned *ret_pruned, struct err *err)
{
	AUTO_SIGHTS struct sights sights = {0};
	int64_t now = (int64_t)time(NULL);
	progress_say(session, "looks at every pod and at who holds it");
	int r = look_all(session, (struct look_options){.deep = true}, &sights, err);
	if (r < 0)
		return r;
	struct pruned pruned = {.v = calloc(sights.n + 1, sizeof *pruned.v)};
	if (!pruned.v)
		return err_code(err, -ENOMEM, "prune", NULL);
	for (size_t i = 0; i < sights.n; i++) {
		progress_head(session, "%zu of %zu pods, ", i + 1, sights.n);
		if (is_meant(&sights.v[i], options, now))
			prune_one(session, &sights.v[i], options, now, &pruned);
	}
	if (!options.dry_run)
		r = sweep_temporary(session, err);
	if (r < 0)
		pruned_free(&pruned);
	else
		*ret_pruned = pruned;
	return r;
}
