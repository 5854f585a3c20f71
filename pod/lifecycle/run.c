#include "pod/lifecycle/run.h"

#include <stdio.h>
#include <unistd.h>

#include "pod/lifecycle/down.h"
#include "pod/model/environment.h"
#include "pod/system/command.h"

int run_find_command(const struct session *session, const char *word, char *out, size_t size, struct err *err)
{
	const struct surroundings *around = &session->around;
	return command_find(word, around->path ? around->path : around->plane.path, around->cwd, out, size, err);
}

static int take_back(struct session *session, const struct pod_name *name, const struct up_report *report, struct err *err)
{
	struct down_report gone;
	return *report->id ? down(session, name, (struct down_options){.id = report->id}, &gone, err) : 0;
}

int run_begin(struct session *session, struct up_request *request, struct up_report *ret_report, struct err *err)
{
	struct err why = {0};
	request->only_new = true;
	request->life.owner_said = true;
	request->life.owner = getpid();
	int r = up(session, request, ret_report, err);
	if (r < 0 && take_back(session, &request->name, ret_report, &why) < 0)
		(void)err_prepend(err, "it is not gone (%s)", why.text);
	return r;
}

static int tell(const struct up_report *report, struct environment *environment, struct err *err)
{
	char url[64], port[16];
	(void)snprintf(url, sizeof url, "http://127.0.0.1:%d", report->port);
	(void)snprintf(port, sizeof port, "%d", report->port);
	const struct {
		const char *name, *value;
	} pairs[] = {
	    {"KIROCREW_POD_NAME", report->name.text},
	    {"KIROCREW_POD_URL", url},
	    {"KIROCREW_POD_PORT", port},
	    {"KIROCREW_POD_HOME", report->home},
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof pairs / sizeof *pairs; i++)
		r = environment_set(environment, pairs[i].name, pairs[i].value, err);
	return r;
}

int run_command(struct foreground *foreground, const struct up_report *report, const char *program,
		char *const *command, int *ret_status, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	int r = environment_copy(environ, &environment, err);
	if (r == 0)
		r = tell(report, &environment, err);
	return r < 0 ? r : foreground_run(foreground, program, command, environment.v, ret_status, err);
}

int run_end(struct session *session, const struct up_report *report, struct err *err)
{
	return take_back(session, &report->name, report, err);
}
