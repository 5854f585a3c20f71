#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pod/model/doctor.h"
#include "pod/model/unit_text.h"

static struct host_facts host;
static struct findings findings;

/* A host on which all is well: a plain user below systemd, with sessions. */
static void well(void)
{
	host = (struct host_facts){
	    .linux_host = true,
	    .uid = 1000,
	    .user = "ann",
	    .installer = "apt-get install",
	    .booted_with_systemd = true,
	    .logind = true,
	    .lingers = true,
	    .manager_answers = true,
	    .bus = true,
	    .max_user_namespaces = 1000,
	    .unprivileged_clone = 1,
	    .apparmor_restricts = -1,
	    .sandbox_found = true,
	    .sandbox_by_descriptor = true,
	    .sandbox_works = true,
	    .sandbox_path = "/usr/bin/bwrap",
	    .journald = true,
	    .journal_readable = true,
	    .journal_group = true,
	    .agent_word = "kiro-cli",
	    .agent_path = "/usr/bin/kiro-cli",
	    .git = true,
	    .template_program = "/usr/bin/kirocrew-pod",
	    .cgroup = {.mounted = true,
		       .own = "/sys/fs/cgroup/a",
		       .own_writable = true,
		       .controllers = "cpu io memory pids",
		       .available = "cpu io memory pids"},
	};
	static const char *const checks[PLACES] = {"root", "pods-dir", "artifacts"};
	for (size_t i = 0; i < PLACES; i++) {
		host.places[i] = (struct place_facts){.check = checks[i],
						      .variable = "KIROCREW_POD_ROOT",
						      .kind = PLACE_DIRECTORY,
						      .owner = 1000,
						      .mode = 040700,
						      .writable = true,
						      .bytes_free = 1ull << 40,
						      .inodes_free = 100000,
						      .inodes_counted = true};
		(void)snprintf(host.places[i].path, sizeof host.places[i].path, "/home/ann/%s", checks[i]);
	}
}

static const struct finding *found(const char *check)
{
	doctor_judge(&host, &findings);
	assert_true(findings.n <= FINDINGS_MAX);
	for (size_t i = 0; i < findings.n; i++)
		if (strcmp(findings.v[i].check, check) == 0)
			return &findings.v[i];
	fail_msg("no finding of %s", check);
	return NULL;
}

static void expect(const char *check, enum finding_level level, const char *in_text, const char *in_remedy)
{
	const struct finding *finding = found(check);
	if (finding->level != level || !strstr(finding->text, in_text) ||
	    (in_remedy ? !strstr(finding->remedy, in_remedy) : *finding->remedy))
		fail_msg("%s is %s: %s; %s", check, finding_level_name(finding->level), finding->text, finding->remedy);
}

static void a_good_host_has_nothing_to_say(void **unused)
{
	(void)unused;
	well();
	doctor_judge(&host, &findings);
	for (size_t i = 0; i < findings.n; i++) {
		assert_int_equal(findings.v[i].level, FINDING_OK);
		assert_string_equal(findings.v[i].remedy, "");
		assert_true(*findings.v[i].text);
	}
	assert_int_equal(findings_worst(&findings), FINDING_OK);
	assert_true(findings.n >= 14);
}

static void without_a_manager_the_keeper_does(void **unused)
{
	(void)unused;
	well();
	host.manager_answers = false;
	strcpy(host.manager_error, "there is no runtime directory /run/user/1000; start one");
	expect("manager", FINDING_WARNING, "the embedded keeper supervises", "start one");
	expect("linger", FINDING_OK, "no session manager", NULL);
	host.wanted = BACKEND_EMBEDDED;
	expect("manager", FINDING_OK, "the embedded keeper supervises", NULL);
	host.wanted = BACKEND_SYSTEMD;
	expect("manager", FINDING_PROBLEM, "/run/user/1000, and the settings ask for it", "start one, or set KIROCREW_POD_BACKEND");
	/* A host where systemd is not init: what would start a manager there is not given. */
	host.wanted = BACKEND_AUTO;
	host.booted_with_systemd = host.logind = host.lingers = false;
	strcpy(host.manager_error, "there is no user manager");
	expect("manager", FINDING_OK, "there is no user manager: the embedded", NULL);
	expect("linger", FINDING_OK, "", NULL);
}

static void linger_is_named_only_with_sessions(void **unused)
{
	(void)unused;
	well();
	host.lingers = false;
	expect("linger", FINDING_WARNING, "end with your last session", "loginctl enable-linger ann");
	host.logind = false;
	expect("linger", FINDING_OK, "", NULL);
}

static void control_groups(void **unused)
{
	(void)unused;
	well();
	strcpy(host.cgroup.controllers, "memory pids");
	expect("cgroup2", FINDING_WARNING, "no cpu controller", "Delegate=cpu memory pids");
	strcpy(host.cgroup.available, "cpuset pids");
	expect("cgroup2", FINDING_WARNING, "no cpu controller", NULL);
	strcpy(host.cgroup.controllers, "cpuset pids");
	expect("cgroup2", FINDING_WARNING, "no memory and cpu controller", NULL);
	host.manager_answers = false;
	expect("cgroup2", FINDING_WARNING, "in our own control group", NULL);
	host.cgroup.own_writable = false;
	expect("cgroup2", FINDING_WARNING, "not writable", "as root: chown 1000 /sys/fs/cgroup/a ");
	host.cgroup.own_is_root = true;
	expect("cgroup2", FINDING_WARNING, "not writable", NULL);
	host.cgroup.read_only = true;
	expect("cgroup2", FINDING_WARNING, "read-only", NULL);
	host.cgroup.mounted = false;
	expect("cgroup2", FINDING_WARNING, "not mounted", NULL);
}

static void user_namespaces_and_sandbox(void **unused)
{
	(void)unused;
	well();
	host.user_namespace_error = -EPERM;
	expect("user-namespaces", FINDING_PROBLEM, "not permitted", NULL); /* a container's profile: nothing known can help */
	host.unprivileged_clone = 0;
	expect("user-namespaces", FINDING_PROBLEM, "not permitted", "kernel.unprivileged_userns_clone=1");
	host.unprivileged_clone = -1;
	host.max_user_namespaces = 0;
	host.user_namespace_error = -ENOSPC;
	expect("user-namespaces", FINDING_PROBLEM, "", "user.max_user_namespaces=");
	host.sandbox_works = false;
	strcpy(host.sandbox_error, "setting up uid map: Permission denied");
	expect("sandbox", FINDING_PROBLEM, "uid map", NULL);
	host.apparmor_restricts = 1;
	expect("sandbox", FINDING_PROBLEM, "uid map", "kernel.apparmor_restrict_unprivileged_userns=0");
	host.sandbox_found = false;
	strcpy(host.sandbox_error, "bwrap is not installed");
	expect("sandbox", FINDING_PROBLEM, "not installed", "as root: apt-get install bubblewrap");
	host.uid = 0;
	host.installer = NULL;
	expect("sandbox", FINDING_PROBLEM, "not installed", "install bubblewrap");
	assert_null(strstr(found("sandbox")->remedy, "as root"));
	host.sandbox_found = host.sandbox_works = true;
	host.sandbox_by_descriptor = false;
	expect("sandbox", FINDING_OK, "no --bind-fd", NULL);
}

static void the_journal(void **unused)
{
	(void)unused;
	well();
	host.journal_readable = false;
	expect("journal", FINDING_WARNING, "/home/ann/artifacts", "usermod -a -G systemd-journal ann");
	host.journal_group = false;
	expect("journal", FINDING_WARNING, "/home/ann/artifacts", NULL);
	host.journald = false;
	expect("journal", FINDING_OK, "/home/ann/artifacts", NULL);
}

static void directories(void **unused)
{
	(void)unused;
	well();
	struct place_facts *root = &host.places[PLACE_ROOT];
	strcpy(root->target, "/mnt/pods");
	expect("root", FINDING_OK, "is a link to /mnt/pods", NULL);
	root->kind = PLACE_DANGLING;
	expect("root", FINDING_PROBLEM, "/mnt/pods, which is not there", "remove the link, or set KIROCREW_POD_ROOT");
	root->kind = PLACE_OTHER;
	expect("root", FINDING_PROBLEM, "is not a directory", "move it away");
	root->kind = PLACE_CLOSED;
	root->error = -EACCES;
	expect("root", FINDING_PROBLEM, "Permission denied", "KIROCREW_POD_ROOT");
	root->kind = PLACE_DIRECTORY;
	root->owner = 0;
	expect("root", FINDING_PROBLEM, "belongs to uid 0", "as root: chown 1000 /home/ann/root");
	root->owner = 1000;
	root->mode = 040770;
	expect("root", FINDING_PROBLEM, "mode 0770", "chmod go-w /home/ann/root");
	root->mode = 040755;
	expect("root", FINDING_OK, "/home/ann/root", NULL);
	root->writable = false;
	expect("root", FINDING_PROBLEM, "not writable", "chmod u+rwx /home/ann/root");
	root->read_only = true;
	expect("root", FINDING_PROBLEM, "read-only", "KIROCREW_POD_ROOT");
}

static void directories_that_are_not_there(void **unused)
{
	(void)unused;
	well();
	struct place_facts *root = &host.places[PLACE_ROOT];
	root->kind = PLACE_ABSENT;
	root->owner = 0;
	root->mode = 040755;
	expect("root", FINDING_OK, "the first `up` makes it", NULL);
	root->writable = false;
	expect("root", FINDING_PROBLEM, "cannot be made", "KIROCREW_POD_ROOT");
	strcpy(host.root_parent_error, "/shared: the parent of the pods root is writable by everybody");
	expect("root", FINDING_PROBLEM, "/shared", "KIROCREW_POD_ROOT");
}

static void space(void **unused)
{
	(void)unused;
	well();
	struct place_facts *root = &host.places[PLACE_ROOT];
	root->inodes_free = 5;
	expect("root", FINDING_PROBLEM, "no inodes", "kirocrew-pod prune");
	root->inodes_free = 500;
	expect("root", FINDING_WARNING, "few inodes", "kirocrew-pod prune");
	root->inodes_counted = false;
	expect("root", FINDING_OK, "", NULL);
	root->bytes_free = 0;
	expect("root", FINDING_PROBLEM, "full", "kirocrew-pod prune");
	root->bytes_free = 100 << 20;
	expect("root", FINDING_WARNING, "100 MiB left", "kirocrew-pod prune");
}

static void what_is_left_over(void **unused)
{
	(void)unused;
	well();
	strcpy(host.orphans.named[0], "a");
	strcpy(host.orphans.named[1], "b");
	host.orphans.count = 2;
	expect("leftovers", FINDING_WARNING, "2 orphaned or unfinished pods: a b", "kirocrew-pod down a b");
	host.orphans.count = 50;
	expect("leftovers", FINDING_WARNING, "50 orphaned", "kirocrew-pod prune --all");
	strcpy(host.strangers.named[0], "it's mine");
	host.strangers.count = 1;
	expect("strangers", FINDING_WARNING, "1 thing in the pods root that no `up` made: 'it'\\''s mine'", "move it out of ");
	expect("leftovers", FINDING_WARNING, "50 orphaned", "kirocrew-pod prune --all");
	strcpy(host.pods_error, "the root is gone");
	expect("leftovers", FINDING_PROBLEM, "the root is gone", NULL);
	host.template_program_missing = true;
	expect("units", FINDING_WARNING, "/usr/bin/kirocrew-pod, which is not there", "kirocrew-pod install");
	strcpy(host.drop_ins.named[0], "/u/x@a.service.d");
	host.drop_ins.count = 1;
	expect("units", FINDING_WARNING, "1 drop-in directory of", "rm -r /u/x@a.service.d && systemctl --user daemon-reload");
	host.manager_answers = false;
	expect("units", FINDING_WARNING, "1 drop-in directory of", "rm -r /u/x@a.service.d");
	assert_null(strstr(found("units")->remedy, "systemctl"));
	host.template_of_others = true;
	expect("units", FINDING_WARNING, "another plane", "KIROCREW_POD_UNIT_PREFIX");
}

static void bad_settings_hide_the_plane_and_nothing_else(void **unused)
{
	(void)unused;
	well();
	strcpy(host.settings_error, "KIROCREW_POD_BASE_PORT: x: not a number");
	expect("settings", FINDING_PROBLEM, "KIROCREW_POD_BASE_PORT", "correct it");
	expect("sandbox", FINDING_OK, "works", NULL);
	for (size_t i = 0; i < findings.n; i++) {
		assert_string_not_equal(findings.v[i].check, "root");
		assert_string_not_equal(findings.v[i].check, "manager");
	}
	assert_int_equal(findings_worst(&findings), FINDING_PROBLEM);
}

static void agent_and_git(void **unused)
{
	(void)unused;
	well();
	*host.agent_path = '\0';
	strcpy(host.agent_error, "not found: kiro-cli");
	host.git = false;
	expect("agent", FINDING_WARNING, "not found: kiro-cli", "install kiro-cli");
	expect("git", FINDING_WARNING, "not installed", "as root: apt-get install git");
	assert_int_equal(findings_worst(&findings), FINDING_WARNING);
}

/* A remedy is pasted into a shell: a path is whole and one word there, or it is not in it. */
static void paths_in_remedies_are_shell_words(void **unused)
{
	(void)unused;
	well();
	struct place_facts *root = &host.places[PLACE_ROOT];
	root->mode = 040777;
	strcpy(root->path, "/home/ann/it's $HOME");
	expect("root", FINDING_PROBLEM, "writable for others", "chmod go-w '/home/ann/it'\\''s $HOME', or set ");
	memset(root->path, 'x', 2000);
	expect("root", FINDING_PROBLEM, "writable for others", "set KIROCREW_POD_ROOT to another");
	assert_null(strstr(found("root")->remedy, "chmod"));
	memset(host.drop_ins.named[0], 'd', sizeof host.drop_ins.named[0] - 1);
	memset(host.drop_ins.named[1], 'e', sizeof host.drop_ins.named[1] - 1);
	memset(host.drop_ins.named[2], 'f', sizeof host.drop_ins.named[2] - 1);
	host.drop_ins.count = 3;
	const struct finding *units = found("units");
	assert_non_null(strstr(units->remedy, "rm -r d"));
	assert_int_equal(strlen(units->remedy), strlen("rm -r && systemctl --user daemon-reload") + 2 * sizeof host.drop_ins.named[0]);
}

static void the_longest_paths_fit(void **unused)
{
	(void)unused;
	well();
	for (size_t i = 0; i < PLACES; i++) {
		memset(host.places[i].path, 'x', sizeof host.places[i].path - 1);
		memset(host.places[i].target, 'y', sizeof host.places[i].target - 1);
		host.places[i].mode = 040777;
	}
	memset(host.template_program, 'z', sizeof host.template_program - 1);
	host.template_program_missing = true;
	for (size_t i = 0; i < LEFTOVERS_NAMED; i++) {
		memset(host.orphans.named[i], 'o', sizeof host.orphans.named[i] - 1);
		memset(host.strangers.named[i], 's', sizeof host.strangers.named[i] - 1);
		memset(host.drop_ins.named[i], 'd', sizeof host.drop_ins.named[i] - 1);
	}
	host.orphans.count = host.strangers.count = host.drop_ins.count = LEFTOVERS_NAMED;
	doctor_judge(&host, &findings);
	for (size_t i = 0; i < findings.n; i++)
		assert_true(strlen(findings.v[i].text) < sizeof findings.v[i].text);
}

static void the_program_of_a_template(void **unused)
{
	(void)unused;
	char path[PLANE_PATH_MAX] = "untouched";
	assert_int_equal(unit_text_program("[Service]\nExecStart=\"/a b/100%%/c\" _run %i\n", path), 0);
	assert_string_equal(path, "/a b/100%/c");
	assert_int_equal(unit_text_program("[Service]\nExecStart=/bin/true\n", path), -EBADMSG);
	assert_int_equal(unit_text_program("[Service]\nExecStart=\"/a\nb\"\n", path), -EBADMSG);
	assert_int_equal(unit_text_program("", path), -EBADMSG);
	assert_string_equal(path, "/a b/100%/c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_good_host_has_nothing_to_say),
	    cmocka_unit_test(without_a_manager_the_keeper_does),
	    cmocka_unit_test(linger_is_named_only_with_sessions),
	    cmocka_unit_test(control_groups),
	    cmocka_unit_test(user_namespaces_and_sandbox),
	    cmocka_unit_test(the_journal),
	    cmocka_unit_test(directories),
	    cmocka_unit_test(directories_that_are_not_there),
	    cmocka_unit_test(space),
	    cmocka_unit_test(what_is_left_over),
	    cmocka_unit_test(bad_settings_hide_the_plane_and_nothing_else),
	    cmocka_unit_test(agent_and_git),
	    cmocka_unit_test(paths_in_remedies_are_shell_words),
	    cmocka_unit_test(the_longest_paths_fit),
	    cmocka_unit_test(the_program_of_a_template),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
