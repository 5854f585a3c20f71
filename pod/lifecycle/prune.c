#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fsops/cleanup.h"
#include "pod/lifecycle/down.h"
#include "pod/lifecycle/look.h"

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

static bool may_go(const struct sight *sight, struct prune_options options, int64_t now)
{
	bool dead = !pod_is_alive(sight->state) && sight->facts.unit.active != UNIT_UNKNOWN && sight->facts.unit.active != UNIT_ACTIVE &&
		    sight->facts.unit.active != UNIT_STOPPING;
	bool ours = sight->facts.home == HOME_ABSENT || sight->facts.home == HOME_POD;
	bool old = pod_age_s(&sight->facts, now) >= options.older_than_secs || sight->facts.life_end != LIFE_LASTS;
	return dead && ours && old;
}

static void prune_one(struct session *session, const struct sight *sight, struct prune_options options, int64_t now, struct pruned *pruned)
{
	struct pruned_pod *pod = &pruned->v[pruned->n++];
	struct down_report report;
	*pod = (struct pruned_pod){.name = sight->facts.name, .age_s = pod_age_s(&sight->facts, now)};
	if (!options.dry_run)
		(void)down(session, &sight->facts.name, (struct down_options){.only_dead = true}, &report, &pod->failed);
}

int prune(struct session *session, struct prune_options options, struct pruned *ret_pruned, struct err *err)
{
	AUTO_SIGHTS struct sights sights = {0};
	int64_t now = (int64_t)time(NULL);
	int r = look_all(session, (struct look_options){.deep = true}, &sights, err);
	if (r < 0)
		return r;
	struct pruned pruned = {.v = calloc(sights.n + 1, sizeof *pruned.v)};
	if (!pruned.v)
		return err_code(err, -ENOMEM, "prune", NULL);
	for (size_t i = 0; i < sights.n; i++)
		if (may_go(&sights.v[i], options, now))
			prune_one(session, &sights.v[i], options, now, &pruned);
	*ret_pruned = pruned;
	return 0;
}
