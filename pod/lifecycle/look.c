#include "pod/lifecycle/look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fsops/cleanup.h"
#include "fsops/crew.h"
#include "pod/model/environment.h"
#include "pod/system/home_look.h"
#include "pod/system/life.h"
#include "pod/system/network.h"
#include "pod/system/plane_scan.h"
#include "pod/system/process.h"
#include "pod/system/records.h"

#define HEALTH_BUDGET_MS 1000

void sight_free(struct sight *sight)
{
	pod_facts_free(&sight->facts);
	free(sight->reason);
	sight->reason = NULL;
}

void sights_free(struct sights *sights)
{
	for (size_t i = 0; i < sights->n; i++)
		sight_free(&sights->v[i]);
	free(sights->v);
	for (size_t i = 0; i < sights->stranger_count; i++)
		free(sights->strangers[i]);
	free(sights->strangers);
	*sights = (struct sights){0};
}

static int look_record(struct session *session, unsigned traces, struct pod_facts *facts, struct err *err)
{
	AUTO_RECORD struct record record = {0};
	struct err why = {0};
	int r = session->pods_dir.fd < 0 ? -ENOENT : record_load_listed(&session->pods_dir, &facts->name, traces & TRACE_LISTED, &record, &why);
	if (r == 0)
		r = spec_from_record(&record, &facts->spec, &why);
	facts->record_kind = r == 0 ? RECORD_GOOD : r == -ENOENT ? RECORD_ABSENT : RECORD_BAD;
	facts->port = facts->spec.port ? facts->spec.port : port_preferred(&session->around.plane, &facts->name);
	bool lost = facts->record_kind == RECORD_BAD && asprintf(&facts->record_error, "%.120s: %.130s", why.subject, why.text) < 0;
	if (lost)
		facts->record_error = NULL;
	return lost ? err_code(err, -ENOMEM, "record", facts->name.text) : 0;
}

/* Its manager knows it, or cannot be asked. */
static bool has_unit(struct session *session, enum backend backend, const struct pod_name *name)
{
	struct service *service = NULL;
	struct unit_state unit = {0};
	if (session_service(session, backend, &service, NULL) < 0 || service->ops->query(service, name, &unit, NULL) < 0)
		return true;
	return unit.active != UNIT_ABSENT && unit.active != UNIT_INACTIVE;
}

/* A record can be forged, copied or renamed by hand: the home of a pod that has a record of its own, or a unit, is not taken for a moved one of this
 * pod. */
static int drop_home_of_another(struct session *session, struct pod_facts *facts, struct err *err)
{
	struct pod_name name;
	unsigned traces = 0;
	const char *entry = facts->home_moved;
	if (!entry)
		return 0;
	bool named = pod_name_parse(entry, strlen(entry), &name, NULL) == 0 || pod_name_from_retired(entry, &name) == 0;
	if (!named || strcmp(name.text, facts->name.text) == 0)
		return 0;
	int r = plane_probe(&session->root, &session->pods_dir, session->around.plane.prefix, &name, &traces, err);
	bool another = traces & (TRACE_RECORD | TRACE_SOCKET | TRACE_PLIST);
	if (r == 0 && (another || has_unit(session, facts->spec.backend, &name))) {
		free(facts->home_moved);
		facts->home_moved = NULL;
	}
	return r;
}

static int look_note(struct session *session, struct pod_facts *facts, struct err *err)
{
	AUTO_FREE struct note *note = malloc(sizeof *note);
	if (!note)
		return err_code(err, -ENOMEM, "note", facts->name.text);
	int r = note_load(&session->pods_dir, &facts->name, note, err);
	if (r == 0 && note->kind != NOTE_ABSENT)
		facts->note = TAKE_PTR(note);
	return r;
}

/* What is on disk. By two threads for two pods at once: no manager is asked here. */
static int look_disk(struct session *session, unsigned traces, struct pod_facts *facts, struct err *err)
{
	int r = look_record(session, traces, facts, err);
	facts->retired = traces & (TRACE_RETIRED | TRACE_FAREWELL);
	facts->unit_file = traces & (TRACE_SOCKET | TRACE_PLIST);
	if (r == 0 && (traces & TRACE_NOTE))
		r = look_note(session, facts, err);
	if (r == 0 && (traces & TRACE_HOME))
		r = home_look(&session->root, &facts->name, facts->spec.home_identity, facts->record_kind != RECORD_ABSENT, &facts->home,
			      &facts->home_made, err);
	bool elsewhere = facts->home == HOME_ABSENT || facts->home == HOME_REPLACED;
	if (r == 0 && elsewhere && *facts->spec.home_identity && session->root.fd >= 0)
		r = home_find(&session->root, facts->spec.home_identity, &facts->home_moved, err);
	return r;
}

static void unit_unknown(struct unit_state *unit, const struct err *why)
{
	*unit = (struct unit_state){.active = UNIT_UNKNOWN};
	(void)snprintf(unit->detail, sizeof unit->detail, "%s", why->text);
}

/* The backend that the record names may be another than the plane's. */
static void look_unit(struct session *session, struct pod_facts *facts)
{
	struct err why = {0};
	struct service *service = NULL;
	if (session_service(session, facts->spec.backend, &service, &why) < 0 ||
	    service->ops->query(service, &facts->name, &facts->unit, &why) < 0)
		unit_unknown(&facts->unit, &why);
	if (facts->spec.backend == BACKEND_EMBEDDED || facts->unit_file)
		(void)snprintf(facts->unit.group.pod_id, sizeof facts->unit.group.pod_id, "%s", facts->spec.id);
	(void)snprintf(facts->unit.group.pod_name, sizeof facts->unit.group.pod_name, "%s", facts->name.text);
}

static void look_overdue(const struct session *session, struct pod_facts *facts)
{
	if (!facts->unit.since_usec)
		return;
	int64_t ran = (int64_t)time(NULL) - facts->unit.since_usec / 1000000;
	facts->overdue = ran > session->around.plane.health_secs;
}

/* What a lost manager left of the unit is the unit's, and nobody else's. */
static void drop_members(const struct unit_group *group, struct process_list *holders)
{
	AUTO_PROCESSES struct process_list members = {0};
	size_t kept = 0;
	if (group_members(group, &members, NULL) < 0)
		return;
	for (size_t i = 0; i < holders->n; i++) {
		bool ours = false;
		for (size_t k = 0; k < members.n && !ours; k++)
			ours = members.v[k].pid == holders->v[i].pid;
		if (!ours)
			holders->v[kept++] = holders->v[i];
	}
	holders->n = kept;
}

/* 0: nobody. Who listens on the pod's port and was started for this home needs nothing open in it just now. */
static pid_t first_holder(struct session *session, const struct pod_facts *facts, pid_t listener)
{
	AUTO_PIN struct pin home = PIN_NONE;
	struct pod_paths paths;
	AUTO_PROCESSES struct process_list holders = {0};
	bool serves = false;
	if (pin_child(&session->root, facts->name.text, &home, NULL) < 0 || pod_paths_make(&session->around.plane, &facts->name, &paths, NULL) < 0 ||
	    process_holders(&home, paths.home, &holders, NULL) < 0)
		return 0;
	drop_members(&facts->unit.group, &holders);
	if (listener && process_serves_home(listener, &home, &serves, NULL) == 0 && serves)
		return listener;
	for (size_t i = 0; i < holders.n; i++)
		if (holders.v[i].pid == listener)
			return listener;
	return holders.n ? holders.v[0].pid : 0;
}

/* A dead unit whose port answers, or on request: somebody may run the payload by hand (L03). */
static void look_holders(struct session *session, const struct listeners *listeners, struct look_options options, struct pod_facts *facts)
{
	bool on_port = listeners && listeners_any(listeners, facts->port);
	if (facts->home != HOME_POD || !(on_port || options.deep))
		return;
	struct listener listener = {0};
	if (on_port)
		(void)listener_of(listeners, facts->port, &facts->unit.group, &listener, NULL);
	facts->held_by = first_holder(session, facts, listener.pid);
}

static bool runs(const struct pod_facts *facts)
{
	return facts->unit.active == UNIT_ACTIVE;
}

struct port_look {
	struct session *session;
	struct sights *sights;
	const struct listeners *listeners;
	struct look_options options;
};

static int look_port(void *context, size_t i, struct err *err)
{
	const struct port_look *look = context;
	struct pod_facts *facts = &look->sights->v[i].facts;
	if (runs(facts) && facts->spec.health.kind != HEALTH_NONE)
		return listener_of(look->listeners, facts->port, &facts->unit.group, &facts->listener, err);
	if (!runs(facts))
		look_holders(look->session, look->listeners, look->options, facts);
	return 0;
}

/* Listeners are read once for all. Of a single pod those on its port are enough. */
static int look_ports(struct session *session, struct sights *sights, struct look_options options, struct err *err)
{
	AUTO_LISTENERS struct listeners *listeners = NULL;
	struct crew crew;
	int r = sights->n ? listeners_read(sights->n == 1 ? sights->v->facts.port : 0, &listeners, err) : 0;
	if (r < 0)
		return r;
	struct port_look look = {.session = session, .sights = sights, .listeners = listeners, .options = options};
	crew_begin(&crew, sights->n, look_port, &look);
	return crew_end(&crew, err);
}

static bool worth_asking(const struct pod_facts *facts)
{
	return runs(facts) && facts->record_kind == RECORD_GOOD && facts->spec.health.kind != HEALTH_NONE &&
	       (facts->listener.owner == PORT_OURS || facts->listener.owner == PORT_UNKNOWN);
}

static int look_health(struct sights *sights, struct err *err)
{
	AUTO_FREE struct health_question *questions = calloc(sights->n + 1, sizeof *questions);
	if (!questions)
		return err_code(err, -ENOMEM, "look", NULL);
	size_t asked = 0;
	for (size_t i = 0; i < sights->n; i++)
		if (worth_asking(&sights->v[i].facts))
			questions[asked++] = (struct health_question){.health = sights->v[i].facts.spec.health, .port = sights->v[i].facts.port};
	int r = asked ? health_ask(questions, asked, deadline_in_ms(HEALTH_BUDGET_MS), err) : 0;
	for (size_t i = 0, k = 0; r == 0 && i < sights->n; i++)
		if (worth_asking(&sights->v[i].facts))
			sights->v[i].facts.health = questions[k++].result;
	return r;
}

/* Most have little to say, and there may be thousands of them. */
static int decide(struct sight *sight, struct err *err)
{
	char reason[4096];
	sight->state = pod_state_decide(&sight->facts, reason, sizeof reason);
	sight->reason = strdup(reason);
	return sight->reason ? 0 : err_code(err, -ENOMEM, "look", NULL);
}

/* Without a clock to look at, every life lasts. */
static void look_life(struct sights *sights)
{
	struct life_clock now = {0};
	bool known = false;
	for (size_t i = 0; i < sights->n; i++) {
		struct pod_facts *facts = &sights->v[i].facts;
		facts->left_ms = INT64_MAX;
		if (!life_is_bounded(&facts->spec.life))
			continue;
		if (!known && life_clock_read(&now, NULL) < 0)
			return;
		known = true;
		facts->life_end = life_look(&facts->spec.life, &now);
		facts->left_ms = life_left_ms(&facts->spec.life, &now);
	}
}

static int look_rest(struct session *session, struct sights *sights, struct look_options options, struct err *err)
{
	int r = look_ports(session, sights, options, err);
	if (r == 0 && !options.mute)
		r = look_health(sights, err);
	look_life(sights);
	for (size_t i = 0; r == 0 && i < sights->n; i++) {
		struct sight *sight = &sights->v[i];
		look_overdue(session, &sight->facts);
		r = decide(sight, err);
	}
	return r;
}

/* --- all ---------------------------------------------------------------------------------------------------------------- */

struct plane_units {
	struct service_listing of[BACKEND_NULL + 1];
	bool asked[BACKEND_NULL + 1];
	struct err failed[BACKEND_NULL + 1]; /* code 0: it answered */
};

static void cleanup_units(struct plane_units *units)
{
	for (size_t i = 0; i < sizeof units->of / sizeof *units->of; i++)
		service_listing_free(&units->of[i]);
}

static enum backend real_backend(struct session *session, enum backend backend, struct err *err)
{
	struct service *service = NULL;
	return session_service(session, backend, &service, err) < 0 ? BACKEND_NULL : service_backend(service);
}

static int compare_units(const void *a, const void *b)
{
	return strcmp(((const struct service_listed *)a)->name.text, ((const struct service_listed *)b)->name.text);
}

static void ask_backend(struct session *session, enum backend backend, struct plane_units *units)
{
	if (units->asked[backend])
		return;
	units->asked[backend] = true;
	struct service *service = NULL;
	struct err *failed = &units->failed[backend];
	struct service_listing *listing = &units->of[backend];
	if (session_service(session, backend, &service, failed) == 0)
		(void)service->ops->list(service, listing, failed);
	if (listing->count)
		qsort(listing->units, listing->count, sizeof *listing->units, compare_units);
}

static int by_unit_name(const void *key, const void *unit)
{
	return strcmp(key, ((const struct service_listed *)unit)->name.text);
}

static void take_unit(const struct plane_units *units, enum backend backend, struct pod_facts *facts)
{
	if (units->failed[backend].code) {
		unit_unknown(&facts->unit, &units->failed[backend]);
		return;
	}
	const struct service_listing *listing = &units->of[backend];
	const struct service_listed *found =
		listing->count ? bsearch(facts->name.text, listing->units, listing->count, sizeof *listing->units, by_unit_name) : NULL;
	facts->unit = found ? found->state : (struct unit_state){.active = listing->defined ? UNIT_INACTIVE : UNIT_ABSENT};
}

/* What is on disk, of all of them. */
struct disk_look {
	struct session *session;
	const struct plane_entry *entries;
	struct sight *sights;
};

static int look_entry(void *context, size_t i, struct err *err)
{
	const struct disk_look *look = context;
	look->sights[i].facts.name = look->entries[i].name;
	return look_disk(look->session, look->entries[i].traces, &look->sights[i].facts, err);
}

static int join_unit(struct session *session, unsigned traces, struct plane_units *units, enum backend usual, struct pod_facts *facts, struct err *err)
{
	enum backend backend = facts->spec.backend != BACKEND_AUTO ? facts->spec.backend
			       : (traces & TRACE_SOCKET)	    ? BACKEND_EMBEDDED
								    : usual;
	ask_backend(session, backend, units);
	take_unit(units, backend, facts);
	int r = drop_home_of_another(session, facts, err);
	return r < 0 ? r : session_check_root(session, facts->spec.root_identity, err);
}

static int by_entry_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct plane_entry *)entry)->name.text);
}

/* Units of which there is nothing on disk follow the others. */
static int add_units(struct plane_entries *entries, const struct service_listing *listing, struct err *err)
{
	size_t scanned = entries->n;
	for (size_t i = 0; i < listing->count; i++) {
		const struct pod_name *name = &listing->units[i].name;
		bool there = scanned && bsearch(name->text, entries->v, scanned, sizeof *entries->v, by_entry_name);
		int r = there ? 0 : plane_entries_add(entries, name, TRACE_UNIT, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int look_added(struct session *session, const struct plane_entries *entries, struct sights *sights, struct err *err)
{
	struct sight *grown = entries->n > sights->n ? realloc(sights->v, entries->n * sizeof *grown) : sights->v;
	if (!grown)
		return err_code(err, -ENOMEM, "look", NULL);
	sights->v = grown;
	int r = 0;
	while (r == 0 && sights->n < entries->n) {
		struct disk_look look = {.session = session, .entries = entries->v, .sights = sights->v};
		sights->v[sights->n++] = (struct sight){0};
		r = look_entry(&look, sights->n - 1, err);
	}
	return r;
}

/* A backend that is asked answers while the disk is looked at: its keepers are other processes. */
static int look_entries(struct session *session, struct plane_entries *entries, struct plane_units *units, enum backend *ret_usual,
			struct sights *sights, struct err *err)
{
	struct err none = {0};
	struct crew crew;
	sights->v = calloc(entries->n + 1, sizeof *sights->v);
	if (!sights->v)
		return err_code(err, -ENOMEM, "look", NULL);
	sights->n = entries->n;
	struct disk_look look = {.session = session, .entries = entries->v, .sights = sights->v};
	crew_begin(&crew, entries->n, look_entry, &look);
	enum backend usual = real_backend(session, BACKEND_AUTO, &none);
	ask_backend(session, usual, units);
	if (none.code) /* that no manager can be reached does not say that it has no unit */
		units->failed[usual] = none;
	int r = crew_end(&crew, err);
	if (r == 0)
		r = add_units(entries, &units->of[usual], err);
	if (r == 0)
		r = look_added(session, entries, sights, err);
	*ret_usual = usual;
	return r;
}

static int join_units(struct session *session, const struct plane_entries *entries, struct plane_units *units, enum backend usual, struct sights *sights,
		      struct err *err)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < sights->n; i++)
		r = join_unit(session, entries->v[i].traces, units, usual, &sights->v[i].facts, err);
	return r;
}

static int compare_sights(const void *a, const void *b)
{
	return strcmp(((const struct sight *)a)->facts.name.text, ((const struct sight *)b)->facts.name.text);
}

/* Only the pods, by name. */
static void drop_others(struct sights *sights, bool sorted)
{
	size_t kept = 0;
	for (size_t i = 0; i < sights->n; i++) {
		if (!pod_exists(&sights->v[i].facts))
			sight_free(&sights->v[i]);
		else if (kept++ != i)
			sights->v[kept - 1] = sights->v[i];
	}
	sights->n = kept;
	if (!sorted && kept)
		qsort(sights->v, kept, sizeof *sights->v, compare_sights);
}

static void take_strangers(struct plane_entries *entries, struct sights *sights)
{
	sights->strangers = TAKE_PTR(entries->strangers);
	sights->stranger_count = entries->stranger_count;
	entries->stranger_count = 0;
}

int look_all(struct session *session, struct look_options options, struct sights *ret_sights, struct err *err)
{
	AUTO_ENTRIES struct plane_entries entries = {0};
	__attribute__((cleanup(cleanup_units))) struct plane_units units = {0};
	AUTO_SIGHTS struct sights sights = {0};
	enum backend usual = BACKEND_NULL;
	int r = plane_scan(&session->root, &session->pods_dir, session->around.plane.prefix, &entries, err);
	size_t scanned = entries.n;
	if (r == 0)
		r = look_entries(session, &entries, &units, &usual, &sights, err);
	if (r == 0)
		r = join_units(session, &entries, &units, usual, &sights, err);
	if (r < 0)
		return r;
	drop_others(&sights, entries.n == scanned);
	r = look_rest(session, &sights, options, err);
	if (r < 0)
		return r;
	take_strangers(&entries, &sights);
	*ret_sights = sights;
	sights = (struct sights){0};
	return 0;
}

/* --- one ---------------------------------------------------------------------------------------------------------------- */

static void look_gate(struct session *session, struct pod_facts *facts)
{
	if (session->pods_dir.fd >= 0)
		(void)lock_is_held(&session->pods_dir, pod_file_gate(session->around.plane.prefix, &facts->name).text, &facts->gate_held, NULL);
}

int look_one(struct session *session, const struct pod_name *name, struct look_options options, struct sight *ret_sight, struct err *err)
{
	struct sight sight = {.facts.name = *name};
	unsigned traces = 0;
	int r = plane_probe(&session->root, &session->pods_dir, session->around.plane.prefix, name, &traces, err);
	if (r == 0)
		r = look_disk(session, traces, &sight.facts, err);
	if (r == 0)
		r = drop_home_of_another(session, &sight.facts, err);
	if (r == 0)
		r = session_check_root(session, sight.facts.spec.root_identity, err);
	if (r == 0) {
		if (sight.facts.spec.backend == BACKEND_AUTO && (traces & TRACE_SOCKET))
			sight.facts.spec.backend = BACKEND_EMBEDDED;
		look_unit(session, &sight.facts);
		look_gate(session, &sight.facts);
		struct sights one = {.v = &sight, .n = 1};
		r = look_rest(session, &one, options, err);
	}
	if (r < 0) {
		sight_free(&sight);
		return r;
	}
	*ret_sight = sight;
	return 0;
}
