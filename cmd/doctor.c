#include "pod/lifecycle/doctor.h"

#include <string.h>

#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/model/refusal.h"

static struct json *finding_json(const struct finding *finding)
{
	struct json *object = json_new_object();
	if (object) {
		(void)json_set(object, "check", json_new_string(finding->check));
		(void)json_set(object, "status", json_new_string(finding_level_name(finding->level)));
		(void)json_set(object, "detail", json_new_string(finding->text));
		(void)json_set(object, "remedy", *finding->remedy ? json_new_string(finding->remedy) : json_new_null());
	}
	return object;
}

static void print_findings_json(const struct findings *findings)
{
	struct json *object = json_new_object(), *checks = json_new_array();
	for (size_t i = 0; checks && i < findings->n; i++)
		(void)json_append(checks, finding_json(&findings->v[i]));
	if (object) {
		(void)json_set(object, "status", json_new_string(finding_level_name(findings_worst(findings))));
		(void)json_set(object, "version", json_new_string(KIROCREW_POD_VERSION));
		(void)json_set(object, "checks", checks);
	}
	print_json(object);
}

static void print_finding(const struct finding *finding)
{
	print_out("%-8s %-16s ", finding_level_name(finding->level), finding->check);
	print_text(finding->text, strlen(finding->text));
	print_out("\n");
	if (!*finding->remedy)
		return;
	print_out("%-25s remedy: ", "");
	print_text(finding->remedy, strlen(finding->remedy));
	print_out("\n");
}

static int run_doctor(const struct arguments *arguments, struct err *err)
{
	struct findings findings = {0};
	int r = doctor(arguments->config, &findings, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < findings.n && !arguments->value[FLAG_JSON]; i++)
		print_finding(&findings.v[i]);
	if (arguments->value[FLAG_JSON])
		print_findings_json(&findings);
	return findings_worst(&findings) == FINDING_PROBLEM ? EXIT_FAILED : EXIT_DONE;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "Is this host fit for pods, and is anything left over? Exit status 1 if there is a problem",
    .details =
	"Each line is ok, a warning (pods work, with something less) or a problem, with a remedy where there is one that can work here.\n"
	"It looks only: nothing is made or changed.",
    .flags = FLAG(JSON),
    .run = run_doctor,
};
