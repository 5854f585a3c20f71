#include "pod/model/unit_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/launchd_print.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_environment.h"
#include "unit_templates.h"

/* The names and values of an environment, apart; borrowed from it, whose entries are cut at their '='. */
struct columns {
	const char **names, **values;
};
static void columns_free(struct columns *columns)
{
	free(columns->names);
	free(columns->values);
}

static int columns_split(struct environment *environment, struct columns *columns, struct err *err)
{
	columns->names = calloc(environment->n, sizeof *columns->names);
	columns->values = calloc(environment->n, sizeof *columns->values);
	if (!columns->names || !columns->values)
		return err_code(err, -ENOMEM, "plist", NULL);
	for (size_t i = 0; i < environment->n; i++) {
		char *equals = strchr(environment->v[i], '=');
		*equals = '\0';
		columns->names[i] = environment->v[i];
		columns->values[i] = equals + 1;
	}
	return 0;
}

static int log_path(const struct unit_input *input, const struct pod_name *name, char out[PLANE_PATH_MAX], struct err *err)
{
	const char *directory = input->log_directory ? input->log_directory : input->plane->artifacts;
	int n = snprintf(out, PLANE_PATH_MAX, "%s/%s/pod.log", directory, name->text);
	return n < PLANE_PATH_MAX
		   ? 0
		   : refuse(err, REFUSAL_VALUE, directory, "the path of the log is longer than %d bytes", PLANE_PATH_MAX - 1);
}

int unit_text_plist(const struct unit_input *input, const struct pod_name *name, char **ret_text, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	CLEANUP(columns_free) struct columns columns = {0};
	char log[PLANE_PATH_MAX], label[LAUNCHD_LABEL_MAX], restart[16], stop[16];
	int r = log_path(input, name, log, err);
	if (r == 0)
		r = unit_environment(input->plane, BACKEND_LAUNCHD, &environment, err);
	if (r == 0)
		r = columns_split(&environment, &columns, err);
	if (r < 0)
		return r;
	launchd_label(input->plane->prefix, name, label);
	(void)snprintf(restart, sizeof restart, "%u", UNIT_RESTART_SECS);
	(void)snprintf(stop, sizeof stop, "%u", input->stop_secs);
	const char *const plain[] = {input->program, "_run", name->text};
	const char *const configured[] = {input->program, "--config", input->config_file, "_run", name->text};
	const struct template_value values[PLIST_PLACEHOLDERS] = {
	    [PLIST_PLACEHOLDER_LABEL] = TEMPLATE_ONE(label),
	    [PLIST_PLACEHOLDER_ARGUMENT] = input->config_file ? (struct template_value){configured, 5} : (struct template_value){plain, 3},
	    [PLIST_PLACEHOLDER_VARIABLE] = {columns.names, environment.n},
	    [PLIST_PLACEHOLDER_VALUE] = {columns.values, environment.n},
	    [PLIST_PLACEHOLDER_RESTART_SECS] = TEMPLATE_ONE(restart),
	    [PLIST_PLACEHOLDER_STOP_SECS] = TEMPLATE_ONE(stop),
	    [PLIST_PLACEHOLDER_LOG] = TEMPLATE_ONE(log),
	};
	return template_fill(template_plist, plist_placeholders, PLIST_PLACEHOLDERS, values, ret_text, err);
}
