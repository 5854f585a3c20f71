#include "pod/model/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SPACE_NONE (1ull << 20)
#define SPACE_LITTLE (256ull << 20)
#define INODES_NONE 16
#define INODES_FEW 1000

const char *finding_level_name(enum finding_level level)
{
	static const char *const names[] = {[FINDING_OK] = "ok", [FINDING_WARNING] = "warning", [FINDING_PROBLEM] = "problem"};
	return names[level];
}

enum finding_level findings_worst(const struct findings *findings)
{
	enum finding_level worst = FINDING_OK;
	for (size_t i = 0; i < findings->n; i++)
		if (findings->v[i].level > worst)
			worst = findings->v[i].level;
	return worst;
}

__attribute__((format(printf, 4, 5))) static struct finding *say(struct findings *findings, const char *check, enum finding_level level,
								 const char *format, ...)
{
	struct finding *finding = &findings->v[findings->n++];
	va_list arguments;
	va_start(arguments, format);
	*finding = (struct finding){.check = check, .level = level};
	(void)vsnprintf(finding->text, sizeof finding->text, format, arguments);
	va_end(arguments);
	return finding;
}

__attribute__((format(printf, 2, 3))) static void remedy(struct finding *finding, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(finding->remedy, sizeof finding->remedy, format, arguments);
	va_end(arguments);
}

/* The text as one word of a shell command, quoted where it has to be. "" when it does not fit: a command about half a path is worse than
 * none. */
static const char *shell_word(const char *text, char *out, size_t size)
{
	size_t plain = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-"), n = 0;
	bool quote = text[plain] != '\0';
	char quoted[2 * PLANE_PATH_MAX];
	if (strlen(text) * 4 + 3 > sizeof quoted)
		return strcpy(out, "");
	if (quote)
		quoted[n++] = '\'';
	for (; *text; text++) {
		if (*text == '\'') {
			memcpy(quoted + n, "'\\'", 3); /* close, a quoted quote, and the quote itself opens again */
			n += 3;
		}
		quoted[n++] = *text;
	}
	if (quote)
		quoted[n++] = '\'';
	quoted[n] = '\0';
	return strcpy(out, n < size ? quoted : "");
}

static const char *as_root(const struct host_facts *host)
{
	return host->uid ? "as root: " : "";
}

static void remedy_install(const struct host_facts *host, struct finding *finding, const char *package)
{
	if (host->installer)
		remedy(finding, "%s%s %s", as_root(host), host->installer, package);
	else
		remedy(finding, "install %s", package);
}

/* Which backend `up` would take now. */
static bool uses_systemd(const struct host_facts *host)
{
	return host->manager_answers && (host->wanted == BACKEND_AUTO || host->wanted == BACKEND_SYSTEMD);
}

static void judge_manager(const struct host_facts *host, struct findings *findings)
{
	if (!host->linux_host)
		return;
	if (host->manager_answers) {
		(void)say(findings, "manager", FINDING_OK, "the user manager of systemd answers%s%s",
			  host->bus ? "" : ", by its own socket: there is no D-Bus",
			  uses_systemd(host) ? "" : "; the settings ask for the embedded keeper");
		return;
	}
	bool asked = host->wanted == BACKEND_SYSTEMD, could = host->booted_with_systemd && host->wanted == BACKEND_AUTO;
	const char *advice = strstr(host->manager_error, "; ");
	size_t len = advice ? (size_t)(advice - host->manager_error) : strlen(host->manager_error);
	struct finding *finding = say(findings, "manager",
				      asked   ? FINDING_PROBLEM
				      : could ? FINDING_WARNING
					      : FINDING_OK,
				      "%.*s%s", (int)len, host->manager_error,
				      asked ? ", and the settings ask for it" : ": the embedded keeper supervises the pods");
	if (asked || could)
		remedy(finding, "%s%s%s", advice ? advice + 2 : "", advice && asked ? ", or " : "",
		       asked ? "set KIROCREW_POD_BACKEND to auto or embedded" : "");
}

static void judge_linger(const struct host_facts *host, struct findings *findings)
{
	if (!host->linux_host)
		return;
	if (!host->logind || !uses_systemd(host))
		(void)say(findings, "linger", FINDING_OK, "no session manager ends the pods with a session");
	else if (host->lingers)
		(void)say(findings, "linger", FINDING_OK, "the user manager outlives your sessions");
	else
		remedy(say(findings, "linger", FINDING_WARNING, "pods end with your last session"),
		       "loginctl enable-linger %s (as root where there is no polkit)", host->user);
}

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
			return true;
	return false;
}

/* What --memory-max and --cpu-quota need and do not have; "" nothing. */
static void missing_controllers(const char *controllers, char out[16])
{
	(void)snprintf(out, 16, "%s%s%s", has_word(controllers, "memory") ? "" : "memory",
		       has_word(controllers, "memory") || has_word(controllers, "cpu") ? "" : " and ",
		       has_word(controllers, "cpu") ? "" : "cpu");
}

static void judge_controllers(const struct host_facts *host, struct findings *findings)
{
	char missing[16], unavailable[16];
	missing_controllers(host->cgroup.controllers, missing);
	missing_controllers(host->cgroup.available, unavailable);
	if (!*missing) {
		(void)say(findings, "cgroup2", FINDING_OK, "limits are enforced");
		return;
	}
	struct finding *finding =
	    say(findings, "cgroup2", FINDING_WARNING, "--memory-max and --cpu-quota are not enforced fully: no %s controller %s", missing,
		uses_systemd(host) ? "is delegated to the user manager" : "is to be had in our own control group");
	if (uses_systemd(host) && host->booted_with_systemd && !*unavailable)
		remedy(finding,
		       "as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' "
		       ">/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload && systemctl restart user@%u.service "
		       "(which ends what runs there)",
		       (unsigned)host->uid);
}

static void judge_cgroup(const struct host_facts *host, struct findings *findings)
{
	const struct cgroup_facts *cgroup = &host->cgroup;
	static const char without[] = "limits are not enforced, and the processes of a pod are followed by descent";
	if (!host->linux_host)
		return;
	if (uses_systemd(host)) {
		judge_controllers(host, findings);
	} else if (!cgroup->mounted) {
		(void)say(findings, "cgroup2", FINDING_WARNING, "cgroup2 is not mounted: %s", without);
	} else if (!*cgroup->own || cgroup->read_only) {
		(void)say(findings, "cgroup2", FINDING_WARNING, "%s: %s",
			  *cgroup->own ? "cgroup2 is mounted read-only" : "our own control group is not to be seen here", without);
	} else if (!cgroup->own_writable) {
		struct finding *finding = say(findings, "cgroup2", FINDING_WARNING, "%s is not writable for us: %s", cgroup->own, without);
		if (!cgroup->own_is_root)
			remedy(finding, "%schown %u %s %s/cgroup.procs %s/cgroup.subtree_control", as_root(host), (unsigned)host->uid,
			       cgroup->own, cgroup->own, cgroup->own);
	} else {
		judge_controllers(host, findings);
	}
}

static void judge_user_namespaces(const struct host_facts *host, struct findings *findings)
{
	if (!host->linux_host)
		return;
	if (!host->user_namespace_error) {
		(void)say(findings, "user-namespaces", FINDING_OK, "they can be made");
		return;
	}
	struct finding *finding =
	    say(findings, "user-namespaces", FINDING_PROBLEM, "none can be made (%s), and without one no agent or MCP server is sandboxed",
		strerror(-host->user_namespace_error));
	if (host->unprivileged_clone == 0)
		remedy(finding, "%ssysctl -w kernel.unprivileged_userns_clone=1", as_root(host));
	else if (host->max_user_namespaces == 0)
		remedy(finding, "%ssysctl -w user.max_user_namespaces=15000", as_root(host));
}

static void judge_sandbox(const struct host_facts *host, struct findings *findings)
{
	struct finding *finding;
	if (!host->sandbox_found) {
		finding =
		    say(findings, "sandbox", FINDING_PROBLEM, "%s, and no agent or MCP server is run without it", host->sandbox_error);
		if (host->linux_host)
			remedy_install(host, finding, "bubblewrap");
	} else if (!host->sandbox_works) {
		finding =
		    say(findings, "sandbox", FINDING_PROBLEM, "%s cannot make a sandbox: %s", host->sandbox_path, host->sandbox_error);
		if (host->apparmor_restricts == 1)
			remedy(finding, "%ssysctl -w kernel.apparmor_restrict_unprivileged_userns=0", as_root(host));
	} else {
		(void)say(findings, "sandbox", FINDING_OK, "%s works%s", host->sandbox_path,
			  !host->linux_host || host->sandbox_by_descriptor
			      ? ""
			      : "; it has no --bind-fd, so directories are given by path and compared afterwards");
	}
}

static void judge_journal(const struct host_facts *host, struct findings *findings)
{
	if (!host->linux_host)
		return;
	if (!uses_systemd(host) || !host->journald) {
		(void)say(findings, "journal", FINDING_OK, "it is not used: what pods write is kept in files below %.600s",
			  host->places[PLACE_ARTIFACTS].path);
	} else if (host->journal_readable) {
		(void)say(findings, "journal", FINDING_OK, "we can read what pods write to it");
	} else {
		struct finding *finding =
		    say(findings, "journal", FINDING_WARNING, "we may not read it: what pods write is kept in files below %.600s",
			host->places[PLACE_ARTIFACTS].path);
		if (host->journal_group && *host->user)
			remedy(finding, "as root: usermod -a -G systemd-journal %s, then log in again", host->user);
	}
}

static void judge_space(const struct place_facts *place, struct findings *findings, const char *what)
{
	struct finding *finding;
	if (place->bytes_free < SPACE_NONE || (place->inodes_counted && place->inodes_free < INODES_NONE))
		finding = say(findings, place->check, FINDING_PROBLEM, "%s: its file system is full (%" PRIu64 " KiB%s left)", what,
			      place->bytes_free >> 10, place->inodes_counted && place->inodes_free < INODES_NONE ? ", no inodes" : "");
	else if (place->bytes_free < SPACE_LITTLE || (place->inodes_counted && place->inodes_free < INODES_FEW))
		finding = say(findings, place->check, FINDING_WARNING, "%s: %" PRIu64 " MiB%s left on its file system", what,
			      place->bytes_free >> 20, place->inodes_counted && place->inodes_free < INODES_FEW ? " and few inodes" : "");
	else {
		(void)say(findings, place->check, FINDING_OK, "%s", what);
		return;
	}
	remedy(finding, "remove what you can (`kirocrew-pod prune` takes dead pods away), or set %s to a directory elsewhere",
	       place->variable);
}

static void choose_another(struct finding *finding, const struct place_facts *place, const char *first)
{
	remedy(finding, "%s%sset %s to another", first, *first ? ", or " : "", place->variable);
}

static void judge_absent(const struct host_facts *host, const struct place_facts *place, struct findings *findings)
{
	char what[800];
	if (place == &host->places[PLACE_ROOT] && *host->root_parent_error) {
		choose_another(say(findings, place->check, FINDING_PROBLEM, "%s", host->root_parent_error), place, "");
		return;
	}
	if (place->read_only || !place->writable) {
		choose_another(say(findings, place->check, FINDING_PROBLEM, "%.700s cannot be made: the directory above %s", place->path,
				   place->read_only ? "is on a read-only file system" : "is not writable for us"),
			       place, "");
		return;
	}
	(void)snprintf(what, sizeof what, "%.600s is not there yet; the first `up` makes it", place->path);
	judge_space(place, findings, what);
}

static void judge_directory(const struct host_facts *host, const struct place_facts *place, struct findings *findings)
{
	const char *path = place->path;
	char what[900], first[700] = "", word[600];
	(void)shell_word(path, word, sizeof word);
	if (place->owner != host->uid) {
		if (*word)
			(void)snprintf(first, sizeof first, "%schown %u %s", as_root(host), (unsigned)host->uid, word);
		choose_another(say(findings, place->check, FINDING_PROBLEM,
				   "%.700s belongs to uid %u, who could put anything in the place of a pod", path, (unsigned)place->owner),
			       place, first);
	} else if (place->mode & 022) {
		if (*word)
			(void)snprintf(first, sizeof first, "chmod go-w %s", word);
		choose_another(say(findings, place->check, FINDING_PROBLEM,
				   "%.700s (mode %04o) is writable for others, who could put anything in the place of a pod", path,
				   (unsigned)place->mode & 07777),
			       place, first);
	} else if (place->read_only) {
		choose_another(say(findings, place->check, FINDING_PROBLEM, "%.700s is on a read-only file system", path), place, "");
	} else if (!place->writable) {
		if (*word)
			(void)snprintf(first, sizeof first, "chmod u+rwx %s", word);
		choose_another(say(findings, place->check, FINDING_PROBLEM, "%.700s (mode %04o) is not writable for us", path,
				   (unsigned)place->mode & 07777),
			       place, first);
	} else {
		(void)snprintf(what, sizeof what, "%.400s%s%.400s", path, *place->target ? " is a link to " : "", place->target);
		judge_space(place, findings, what);
	}
}

static void judge_place(const struct host_facts *host, const struct place_facts *place, struct findings *findings)
{
	switch (place->kind) {
	case PLACE_ABSENT:
		judge_absent(host, place, findings);
		break;
	case PLACE_DIRECTORY:
		judge_directory(host, place, findings);
		break;
	case PLACE_OTHER:
		choose_another(say(findings, place->check, FINDING_PROBLEM, "%.700s is not a directory", place->path), place,
			       "move it away");
		break;
	case PLACE_DANGLING:
		choose_another(say(findings, place->check, FINDING_PROBLEM, "%.500s is a link to %.400s, which is not there", place->path,
				   place->target),
			       place, "make the directory or remove the link");
		break;
	case PLACE_CLOSED:
		choose_another(
		    say(findings, place->check, FINDING_PROBLEM, "%.700s cannot be looked at: %s", place->path, strerror(-place->error)),
		    place, "");
		break;
	}
}

static void judge_agent(const struct host_facts *host, struct findings *findings)
{
	if (*host->agent_path)
		(void)say(findings, "agent", FINDING_OK, "%.900s", host->agent_path);
	else
		remedy(say(findings, "agent", FINDING_WARNING,
			   "the agent command cannot be found (%.800s): KiroCrew pods boot without a look at their agent",
			   host->agent_error),
		       "install %.200s into a directory of KIROCREW_POD_PATH, or name another in [agent] exec", host->agent_word);
}

static void judge_git(const struct host_facts *host, struct findings *findings)
{
	if (host->git)
		(void)say(findings, "git", FINDING_OK, "worktrees are found by name");
	else
		remedy_install(
		    host,
		    say(findings, "git", FINDING_WARNING, "it is not installed: worktrees are not found by name, only with --checkout"),
		    "git");
}

/* The first few as words of a command, each behind a space; false when one does not fit. */
static bool list(const struct leftovers *left, char *out, size_t size)
{
	size_t used = 0;
	*out = '\0';
	for (size_t i = 0; i < left->count && i < LEFTOVERS_NAMED; i++) {
		char word[sizeof left->named[0]];
		size_t len = strlen(shell_word(left->named[i], word, sizeof word));
		if (!len || used + len + 2 > size)
			return false;
		used += (size_t)snprintf(out + used, size - used, " %s", word);
	}
	return true;
}

static void judge_leftovers(const struct host_facts *host, struct findings *findings)
{
	char names[800];
	(void)list(&host->orphans, names, sizeof names);
	if (*host->pods_error) {
		(void)say(findings, "leftovers", FINDING_PROBLEM, "%s", host->pods_error);
	} else if (!host->orphans.count) {
		(void)say(findings, "leftovers", FINDING_OK, "no orphaned or unfinished pod");
	} else {
		bool more = host->orphans.count > LEFTOVERS_NAMED;
		struct finding *finding = say(findings, "leftovers", FINDING_WARNING, "%zu orphaned or unfinished pod%s:%s%s",
					      host->orphans.count, host->orphans.count == 1 ? "" : "s", names, more ? " …" : "");
		remedy(finding, more ? "kirocrew-pod prune --all" : "kirocrew-pod down%s", names);
	}
}

/* `ls` shows them; no verb touches them. */
static void judge_strangers(const struct host_facts *host, struct findings *findings)
{
	char names[800];
	const struct leftovers *there = &host->strangers;
	bool one = there->count == 1, whole = list(there, names, sizeof names) && there->count <= LEFTOVERS_NAMED;
	if (!there->count)
		return;
	struct finding *finding = say(findings, "strangers", FINDING_WARNING, "%zu thing%s in the pods root that no `up` made:%s%s", there->count,
				      one ? "" : "s", names, whole ? "" : " …");
	remedy(finding, "move %s out of %.700s; no verb touches %s", one ? "it" : "them", host->places[PLACE_ROOT].path, one ? "it" : "them");
}

static void judge_units(const struct host_facts *host, struct findings *findings)
{
	char paths[800];
	struct finding *finding;
	bool whole = list(&host->drop_ins, paths, sizeof paths);
	if (!host->linux_host)
		return;
	if (host->template_of_others) {
		finding = say(findings, "units", uses_systemd(host) ? FINDING_PROBLEM : FINDING_WARNING,
			      "the unit template of our prefix belongs to another plane");
		remedy(finding, "set KIROCREW_POD_UNIT_PREFIX to a prefix of this plane's own");
	} else if (host->drop_ins.count) {
		finding =
		    say(findings, "units", FINDING_WARNING, "%zu drop-in director%s of pods that have no record:%s%s", host->drop_ins.count,
			host->drop_ins.count == 1 ? "y" : "ies", paths, whole && host->drop_ins.count <= LEFTOVERS_NAMED ? "" : " …");
		if (*paths)
			remedy(finding, "rm -r%s%s", paths, host->manager_answers ? " && systemctl --user daemon-reload" : "");
	} else if (host->template_program_missing) {
		finding =
		    say(findings, "units", FINDING_WARNING, "the unit template starts %.700s, which is not there", host->template_program);
		if (uses_systemd(host))
			remedy(finding, "kirocrew-pod install");
	} else {
		(void)say(findings, "units", FINDING_OK, "%s",
			  *host->template_program ? "the unit template is in order" : "no unit template yet");
	}
}

void doctor_judge(const struct host_facts *host, struct findings *ret_findings)
{
	*ret_findings = (struct findings){0};
	if (*host->settings_error)
		remedy(say(ret_findings, "settings", FINDING_PROBLEM, "%s", host->settings_error),
		       "correct it; nothing can be done before");
	else
		(void)say(ret_findings, "settings", FINDING_OK, "they can be used");
	if (!*host->settings_error) { /* they say which manager */
		judge_manager(host, ret_findings);
		judge_linger(host, ret_findings);
	}
	judge_cgroup(host, ret_findings);
	judge_user_namespaces(host, ret_findings);
	judge_sandbox(host, ret_findings);
	if (!*host->settings_error) {
		judge_journal(host, ret_findings);
		for (size_t i = 0; i < PLACES; i++)
			judge_place(host, &host->places[i], ret_findings);
		judge_agent(host, ret_findings);
		judge_leftovers(host, ret_findings);
		judge_strangers(host, ret_findings);
		judge_units(host, ret_findings);
	}
	judge_git(host, ret_findings);
}
