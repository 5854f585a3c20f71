#include "pod/lifecycle/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/lifecycle/agent.h"
#include "pod/lifecycle/look.h"
#include "pod/model/refusal.h"
#include "pod/system/command.h"
#include "pod/system/home_look.h"
#include "pod/system/host.h"
#include "pod/system/journal.h"
#include "pod/system/sandbox.h"
#include "pod/system/systemd_stale.h"

static void copy(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text);
}

/* Without the refusal's own sentence, which says only that there is a reason. */
static void look_manager(struct session *session, struct host_facts *facts)
{
	const char *sentence = refusal_entry(REFUSAL_NO_MANAGER)->sentence;
	struct err why = {0};
	struct service *service = NULL;
	facts->manager_answers = session_service(session, BACKEND_SYSTEMD, &service, &why) == 0;
	bool leads = strncmp(why.text, sentence, strlen(sentence)) == 0 && why.text[strlen(sentence)] == ':';
	copy(facts->manager_error, sizeof facts->manager_error, leads ? why.text + strlen(sentence) + 2 : why.text);
}

static void look_sandbox(struct host_facts *facts)
{
	struct sandbox_program program;
	struct err why = {0};
	sandbox_find(&program);
	facts->sandbox_found = program.kind != SANDBOX_UNAVAILABLE;
	facts->sandbox_by_descriptor = program.by_descriptor;
	copy(facts->sandbox_path, sizeof facts->sandbox_path, program.path);
	facts->sandbox_works = facts->sandbox_found && sandbox_try(&program, &why) == 0;
	copy(facts->sandbox_error, sizeof facts->sandbox_error, facts->sandbox_found ? why.text : program.detail);
}

static void look_places(const struct plane *plane, struct host_facts *facts)
{
	const struct {
		const char *check;
		enum plane_setting setting;
		const char *path;
	} places[PLACES] = {
	    [PLACE_ROOT] = {"root", PLANE_ROOT, plane->root},
	    [PLACE_PODS_DIR] = {"pods-dir", PLANE_ENV_DIR, plane->pods_dir},
	    [PLACE_ARTIFACTS] = {"artifacts", PLANE_ARTIFACTS_DIR, plane->artifacts},
	};
	struct err why = {0};
	for (size_t i = 0; i < PLACES; i++) {
		struct place_facts *place = &facts->places[i];
		place->check = places[i].check;
		place->variable = plane_settings[places[i].setting].variable;
		copy(place->path, sizeof place->path, places[i].path);
		place_look(place);
	}
	if (root_parent_check(plane->root, &why) < 0)
		(void)snprintf(facts->root_parent_error, sizeof facts->root_parent_error, "%s: %s", why.subject, why.text);
}

static int look_agent(const struct session *session, struct host_facts *facts, struct err *err)
{
	AUTO_WORDS struct words words = {0};
	struct err why = {0};
	int r = words_split(session->around.ini.agent_exec ? session->around.ini.agent_exec : AGENT_DEFAULT, &words, &why);
	if (r == 0 && words.n) {
		copy(facts->agent_word, sizeof facts->agent_word, words.v[0]);
		r = command_find(words.v[0], session->around.plane.path, session->around.cwd, facts->agent_path, sizeof facts->agent_path,
				 &why);
	}
	copy(facts->agent_error, sizeof facts->agent_error, why.text);
	return r == -ENOMEM ? err_code(err, r, "doctor", NULL) : 0;
}

static void add_leftover(struct leftovers *left, const char *name)
{
	if (left->count < LEFTOVERS_NAMED)
		copy(left->named[left->count], sizeof left->named[0], name);
	left->count++;
}

/* Without the advice, which would lead back to where we are. */
static void say_why(const struct err *why, char *out, size_t size)
{
	const char *advice = strstr(why->text, "; `kirocrew-pod doctor`");
	(void)snprintf(out, size, "%s%s%.*s", why->subject, *why->subject ? ": " : "", advice ? (int)(advice - why->text) : (int)strlen(why->text), why->text);
}

static void look_pods(struct session *session, struct host_facts *facts)
{
	AUTO_SIGHTS struct sights sights = {0};
	struct err why = {0};
	if (look_all(session, (struct look_options){0}, &sights, &why) < 0)
		say_why(&why, facts->pods_error, sizeof facts->pods_error);
	for (size_t i = 0; i < sights.n; i++) {
		const struct sight *sight = &sights.v[i];
		if (pod_is_stranger(&sight->facts))
			add_leftover(&facts->strangers, sight->facts.name.text);
		else if (sight->state == POD_ORPHAN || sight->state == POD_UNFINISHED)
			add_leftover(&facts->orphans, sight->facts.name.text);
	}
	for (size_t i = 0; i < sights.stranger_count; i++)
		add_leftover(&facts->strangers, sights.strangers[i]);
}

static int look_plane(struct session *session, const struct err *not_open, struct host_facts *facts, struct err *err)
{
	const struct plane *plane = &session->around.plane;
	if (!*plane->root) {
		say_why(not_open, facts->settings_error, sizeof facts->settings_error);
		return 0;
	}
	facts->wanted = plane->backend;
	look_manager(session, facts);
	look_places(plane, facts);
	units_look(plane, &session->pods_dir, facts);
	if (not_open->code)
		say_why(not_open, facts->pods_error, sizeof facts->pods_error);
	else
		look_pods(session, facts);
	return look_agent(session, facts, err);
}

int doctor(const char *config, struct findings *ret_findings, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	AUTO_FREE struct host_facts *facts = calloc(1, sizeof *facts);
	struct err not_open = {0};
	if (!facts)
		return err_code(err, -ENOMEM, "doctor", NULL);
	(void)session_open(config, &session, &not_open);
	host_look(facts);
	look_sandbox(facts);
	facts->journal_readable = journal_readable();
	int r = look_plane(&session, &not_open, facts, err);
	if (r == 0)
		doctor_judge(facts, ret_findings);
	return r;
}
