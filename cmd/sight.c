#include "cmd/sight.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/print.h"
#include "fsops/memory_stream.h"
#include "pod/lifecycle/down.h"

#define STRANGER "not a pod: no pod can have this name; it is left alone"

void sight_health(const struct pod_facts *facts, char *out, size_t size)
{
	static const char *const words[] = {
		[HEALTH_NOT_ASKED] = "-",          [HEALTH_OK] = "ok",      [HEALTH_REFUSED_CONNECTION] = "refused",
		[HEALTH_NO_ANSWER] = "no answer", [HEALTH_GARBAGE] = "garbage", [HEALTH_BAD_STATUS] = "",
	};
	if (facts->health.answer == HEALTH_BAD_STATUS)
		(void)snprintf(out, size, "%d", facts->health.http_status);
	else
		(void)snprintf(out, size, "%s", words[facts->health.answer]);
}

static int64_t age_of(const struct sight *sight)
{
	return pod_age_s(&sight->facts, (int64_t)time(NULL));
}

static void age_text(int64_t secs, char *out, size_t size)
{
	if (secs < 120)
		(void)snprintf(out, size, "%llds", (long long)secs);
	else if (secs < 7200)
		(void)snprintf(out, size, "%lldm", (long long)(secs / 60));
	else if (secs < 172800)
		(void)snprintf(out, size, "%lldh", (long long)(secs / 3600));
	else
		(void)snprintf(out, size, "%lldd", (long long)(secs / 86400));
}

static void set_life(struct json *object, const struct pod_facts *facts)
{
	pid_t owner = facts->spec.life.owner.pid;
	(void)json_set(object, "owner", owner ? json_new_integer(owner) : json_new_null());
	(void)json_set(object, "owner_alive", owner ? json_new_bool(facts->life_end != LIFE_OWNER_GONE) : json_new_null());
	(void)json_set(object, "ttl_s", facts->left_ms != INT64_MAX ? json_new_integer(facts->left_ms / 1000) : json_new_null());
}

struct json *sight_json(const struct session *session, const struct sight *sight)
{
	const struct pod_facts *facts = &sight->facts;
	char health[32], home[PLANE_PATH_MAX + POD_NAME_MAX + 2];
	sight_health(facts, health, sizeof health);
	(void)snprintf(home, sizeof home, "%s/%s", session->around.plane.root, facts->name.text);
	struct json *object = json_new_object();
	if (!object)
		return NULL;
	(void)json_set(object, "name", json_new_string(facts->name.text));
	(void)json_set(object, "id", *facts->spec.id ? json_new_string(facts->spec.id) : json_new_null());
	(void)json_set(object, "state", json_new_string(pod_state_name(sight->state)));
	(void)json_set(object, "port", json_new_integer(facts->port));
	(void)json_set(object, "health", json_new_string(health));
	(void)json_set(object, "pid", facts->unit.main_pid ? json_new_integer(facts->unit.main_pid) : json_new_null());
	(void)json_set(object, "backend", facts->spec.backend != BACKEND_AUTO ? json_new_string(backend_name(facts->spec.backend)) : json_new_null());
	(void)json_set(object, "age_s", json_new_integer(age_of(sight)));
	set_life(object, facts);
	(void)json_set(object, "home", json_new_string(home));
	(void)json_set(object, "reason", *sight->reason ? json_new_string(sight->reason) : json_new_null());
	return object;
}

struct json *stranger_json(const struct session *session, const char *entry)
{
	char home[PLANE_PATH_MAX + 300];
	(void)snprintf(home, sizeof home, "%s/%s", session->around.plane.root, entry);
	struct json *object = json_new_object();
	if (!object)
		return NULL;
	static const char *const nulls[] = {"port", "health", "pid", "backend", "age_s", "owner", "owner_alive", "ttl_s"};
	(void)json_set(object, "name", json_new_string(entry));
	(void)json_set(object, "id", json_new_null());
	(void)json_set(object, "state", json_new_string(pod_state_name(POD_FOREIGN)));
	for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
		(void)json_set(object, nulls[i], json_new_null());
	(void)json_set(object, "home", json_new_string(home));
	(void)json_set(object, "reason", json_new_string(STRANGER));
	return object;
}

#define COLUMN(title, ...) {.heading = title, __VA_ARGS__}
static const struct table_column columns[] = {
	COLUMN("NAME", .rank = 0),		  COLUMN("STATE", .toned = true),	   COLUMN("PORT", .right = true, .rank = 1),
	COLUMN("HEALTH", .rank = 4),		  COLUMN("PID", .right = true, .rank = 6), COLUMN("AGE", .right = true, .rank = 5),
	COLUMN("OWNER", .right = true, .rank = 3), COLUMN("LEFT", .right = true, .rank = 2), COLUMN("REASON", .rank = 0),
};
#define COLUMNS (sizeof columns / sizeof *columns)

struct table sight_table(void)
{
	return (struct table){.columns = columns, .n = COLUMNS};
}

static enum tone tone_of(enum pod_state state)
{
	static const enum tone tones[POD_STATES] = {
		[POD_UP] = TONE_GOOD,	   [POD_STARTING] = TONE_BUSY, [POD_RESTARTING] = TONE_BUSY, [POD_FAILED] = TONE_BAD,  [POD_REFUSED] = TONE_BAD,
		[POD_FOREIGN] = TONE_BAD, [POD_STOPPED] = TONE_PLAIN, [POD_ORPHAN] = TONE_BUSY,	     [POD_UNFINISHED] = TONE_BUSY,
	};
	return tones[state];
}

static void life_text(const struct pod_facts *facts, char owner[32], char left[32])
{
	const struct life *life = &facts->spec.life;
	*owner = *left = '\0';
	if (life->owner.pid)
		(void)snprintf(owner, 32, "%d%s", (int)life->owner.pid, facts->life_end == LIFE_OWNER_GONE ? " gone" : "");
	if (facts->left_ms != INT64_MAX)
		age_text(facts->left_ms / 1000, left, 32);
}

int sight_row(struct table *table, const struct sight *sight)
{
	char health[32], age[32], pid[16] = "-", port[16], owner[32], left[32];
	sight_health(&sight->facts, health, sizeof health);
	age_text(age_of(sight), age, sizeof age);
	life_text(&sight->facts, owner, left);
	(void)snprintf(port, sizeof port, "%d", sight->facts.port);
	if (sight->facts.unit.main_pid)
		(void)snprintf(pid, sizeof pid, "%d", (int)sight->facts.unit.main_pid);
	const char *const texts[COLUMNS] = {sight->facts.name.text, pod_state_name(sight->state), port, health, pid, age, owner, left, sight->reason};
	return table_add(table, texts, tone_of(sight->state));
}

int stranger_row(struct table *table, const char *entry)
{
	const char *const texts[COLUMNS] = {entry, pod_state_name(POD_FOREIGN), "-", "-", "-", "-", "", "", STRANGER};
	return table_add(table, texts, TONE_BAD);
}

static bool passes(size_t column)
{
	return strcmp(columns[column].heading, "AGE") == 0 || strcmp(columns[column].heading, "LEFT") == 0;
}

char *sight_substance(const struct table *table)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	for (size_t r = 0; out && r < table->count; r++)
		for (size_t c = 0; c < table->n; c++)
			if (!passes(c))
				(void)fprintf(out, "%s%c", table->rows[r].cells[c], c + 1 < table->n ? '\t' : '\n');
	if (out && memory_stream_end(out, &text))
		return text;
	free(text);
	return NULL;
}
