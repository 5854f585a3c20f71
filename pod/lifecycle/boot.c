#include "pod/lifecycle/boot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/lifecycle/agent.h"
#include "pod/lifecycle/intent.h"
#include "pod/lifecycle/up.h"
#include "pod/model/environment.h"
#include "pod/model/refusal.h"
#include "pod/system/home_look.h"
#include "pod/system/command.h"
#include "pod/system/homes.h"
#include "pod/system/records.h"
#include "pod/system/seeds.h"
#include "pod/system/spawn.h"
#include "pod/system/stores.h"

#define GATE_WAIT_MS 0

void boot_free(struct boot *boot)
{
	residence_free(&boot->in);
	lock_release(&boot->gate);
	passage_free(&boot->passage);
	words_free(&boot->lines);
	session_close(&boot->session);
}

void passage_free(struct passage *passage)
{
	environment_free(&passage->environment);
	words_free(&passage->argv);
	pin_close(&passage->workspace);
}

/* --- steps -------------------------------------------------------------------------------------------------------------- */

static int pass_gate(struct boot *b, struct err *err)
{
	struct pod_file gate = pod_file_gate(b->session.around.plane.prefix, &b->in.name);
	if (b->session.pods_dir.fd < 0)
		return refuse(err, REFUSAL_NOT_PROVISIONED, b->in.name.text, "there is no pods dir %s", b->session.around.plane.pods_dir);
	int r = lock_take(&b->session.pods_dir, gate.text, LOCK_MODE_SHARED, deadline_in_ms(GATE_WAIT_MS), &b->gate, err);
	return r < 0 ? r : lock_keep_over_exec(&b->gate, err);
}

static int read_record(struct boot *b, struct err *err)
{
	AUTO_RECORD struct record record = {0};
	struct err why = {0};
	int r = record_load(&b->session.pods_dir, &b->in.name, &record, &why);
	if (r == -ENOENT)
		return refuse(err, REFUSAL_NOT_PROVISIONED, b->in.name.text, "it has no record");
	if (r < 0)
		*err = why;
	return r < 0 ? r : spec_from_record(&record, &b->in.spec, err);
}

static int read_settings(struct boot *b, struct err *err)
{
	AUTO_INI struct ini own = {0};
	if (!b->in.spec.checkout)
		return 0;
	int r = checkout_ini_read(b->in.spec.checkout, &own, err);
	return r < 0 ? r : ini_merge(&b->session.around.ini, &own, err);
}

static int payload_ready(struct boot *b, struct err *err)
{
	int r = pod_paths_make(&b->session.around.plane, &b->in.name, &b->in.paths, err);
	if (r == 0)
		r = payload_argv(&b->in.spec, &b->in.name, &b->in.paths, &b->passage.argv, err);
	if (r < 0 || b->in.spec.port != b->session.around.plane.live_port)
		return r;
	char port[16];
	(void)snprintf(port, sizeof port, "%d", b->in.spec.port);
	return refuse(err, REFUSAL_LIVE_PORT, port, NULL);
}

static int open_home(struct boot *b, struct err *err)
{
	enum home_kind kind = HOME_ABSENT;
	int64_t made = 0;
	int r = home_look(&b->session.root, &b->in.name, b->in.spec.home_identity, true, &kind, &made, err);
	if (r < 0)
		return r;
	if (kind == HOME_REPLACED)
		return refuse(err, REFUSAL_NOT_THE_POD, b->in.paths.home, "another directory has its name");
	struct err why = {0};
	r = b->session.root.fd < 0 ? -ENOENT : home_make(&b->session.root, &b->in.name, b->in.spec.id, &b->in.home, &why);
	if (r < 0)
		return why.refusal ? (*err = why, r) : refuse(err, REFUSAL_HOME, b->in.paths.home, "%s", r == -ENOENT ? "the pods root is gone" : why.text);
	return 0;
}

static int furnish_home(struct boot *b, struct err *err)
{
	bool kirocrew = b->in.spec.exec.n == 0;
	int r = seed_apply(&b->in.home, b->in.paths.home, b->in.spec.seed ? b->in.spec.seed : "", kirocrew, err);
	if (r == 0)
		r = home_furnish(&b->in.home, err);
	return r;
}

/* Best effort: without a store the pod boots signed out, with a line in its log. */
static int stage_stores(struct boot *b, struct err *err)
{
	AUTO_STORE_REPORT struct store_report report = {0};
	const struct ini *settings = &b->session.around.ini;
	int r = stores_stage(&b->in.home, &b->session.around.plane, b->in.spec.exec.n == 0, settings->identities, settings->identity_count, &report, err);
	for (size_t i = 0; i < report.count; i++)
		(void)words_append(&b->lines, report.lines[i]);
	return r;
}

static int make_environment(struct boot *b, struct err *err)
{
	bool in_checkout = b->in.spec.exec.n == 0 && b->in.spec.checkout;
	(void)snprintf(b->passage.directory, sizeof b->passage.directory, "%s", in_checkout ? b->in.spec.checkout : b->in.paths.workspace);
	int r = in_checkout ? 0 : home_room(&b->in.home, HOME_WORKSPACE, &b->passage.workspace, err);
	if (r == 0)
		r = residence_environment(&b->session, &b->in, err);
	return r < 0 ? r : environment_copy(b->in.payload.v, &b->passage.environment, err);
}

/* Before the payload, so that a pod whose agent cannot start fails at once. What the agent started is gone when this returns. */
static int prove_agent(struct boot *b, struct err *err)
{
	struct sandbox_program sandbox;
	struct viability seen;
	if (!agent_expected(&b->in.spec, &b->session.around.ini))
		return 0;
	sandbox_find(&sandbox);
	int r = agent_probe(&b->in, &b->session.around.ini, &sandbox, &seen, err);
	if (r < 0)
		return r;
	if (seen.verdict == VERDICT_DEAD)
		return viability_refuse(&seen, err);
	if (!verdict_warns(seen.verdict))
		return 0;
	char line[sizeof seen.detail + 64];
	(void)snprintf(line, sizeof line, "agent: %s: %s", verdict_name(seen.verdict), seen.detail);
	(void)words_append(&b->lines, line);
	return 0;
}

static int clear_note(struct boot *b, struct err *err)
{
	return note_delete(&b->session.pods_dir, &b->in.name, err);
}

int boot_prepare(const char *config, const char *text, struct boot *boot, struct err *err)
{
	static int (*const steps[])(struct boot *, struct err *) = {
		pass_gate, read_record, read_settings, payload_ready, open_home, furnish_home, stage_stores, make_environment,
		prove_agent, clear_note,
	};
	*boot = BOOT_NONE;
	int r = pod_name_parse(text, strlen(text), &boot->in.name, err);
	if (r == 0)
		r = session_open(config, &boot->session, err);
	for (size_t i = 0; r >= 0 && i < sizeof steps / sizeof *steps; i++)
		r = steps[i](boot, err);
	return r;
}

int boot_go(struct boot *boot, struct err *err)
{
	struct err why = {0};
	if (passage_enter(&boot->passage, &why) == 0)
		(void)passage_go(&boot->passage, &why);
	return refuse(err, REFUSAL_NOT_PROVISIONED, boot->passage.argv.v[0], "%s", why.text);
}

/* launchd has no list of statuses that end the restarts: status 0 does, and says nothing. So the note must, and is read back before. */
static enum exit_status status_for_manager(struct boot *boot, const struct refusal_entry *refused, enum exit_status status)
{
	struct note note = {0};
	if (boot->session.around.plane.backend != BACKEND_LAUNCHD || note_load(&boot->session.pods_dir, &boot->in.name, &note, NULL) < 0)
		return status;
	return note.kind == NOTE_TEXT && strcmp(note.code, refused->code) == 0 ? EXIT_DONE : status;
}

int boot_end(struct boot *boot, const struct err *why)
{
	const struct refusal_entry *entry = refusal_entry((enum refusal)why->refusal);
	struct err lost = {0};
	if (!*boot->in.name.text)
		return EXIT_NOT_PROVISIONED;
	if (!why->refusal || !entry->terminal)
		return EXIT_FAILED;
	enum exit_status status = exit_status_terminal((int)entry->status) ? entry->status : EXIT_REFUSED;
	if (boot->session.pods_dir.fd < 0)
		return (int)status;
	if (note_store(&boot->session.pods_dir, &boot->in.name, why, &lost) == 0)
		return (int)status_for_manager(boot, entry, status);
	(void)words_append(&boot->lines, "the refusal note could not be written");
	return (int)status;
}

/* --- exec --------------------------------------------------------------------------------------------------------------- */

int passage_for_command(struct session *session, const struct pod_name *name, char *const *command, size_t count, struct passage *ret_passage,
			struct err *err)
{
	AUTO_RESIDENCE struct residence in = RESIDENCE_NONE;
	AUTO_PASSAGE struct passage passage = PASSAGE_NONE;
	int r = residence_open(session, name, &in, err);
	if (r == 0)
		r = environment_copy(in.payload.v, &passage.environment, err);
	if (r == 0)
		r = words_copy(command, count, &passage.argv, err);
	if (r == 0)
		r = home_room(&in.home, HOME_WORKSPACE, &passage.workspace, err);
	if (r < 0)
		return r;
	(void)snprintf(passage.directory, sizeof passage.directory, "%s", in.paths.workspace);
	passage.for_caller = true;
	*ret_passage = passage;
	passage = PASSAGE_NONE;
	return 0;
}

int passage_enter(const struct passage *passage, struct err *err)
{
	int r = passage->workspace.fd < 0 ? chdir(passage->directory) : fchdir(passage->workspace.fd);
	return r < 0 ? err_code(err, -errno, "directory", passage->directory) : 0;
}

int passage_go(const struct passage *passage, struct err *err)
{
	char found[PLANE_PATH_MAX];
	const char *path = environment_get(&passage->environment, "PATH");
	int r = command_find(passage->argv.v[0], path ? path : "/usr/bin:/bin", passage->directory, found, sizeof found, err);
	if (r < 0)
		return r;
	sigset_t ignored;
	(void)sigemptyset(&ignored);
	if (passage->for_caller)
		spawn_ignored_ends(&ignored);
	spawn_reset_signals(&ignored);
	(void)execve(found, passage->argv.v, passage->environment.v);
	r = exec_cause(found, -errno, err);
	/* We stay, to say so: a reader of our words that is gone must not end us. */
	(void)signal(SIGPIPE, SIG_IGN);
	return r;
}
