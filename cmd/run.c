#include "cmd/print.h"
#include "cmd/progress.h"
#include "cmd/up.h"
#include "pod/lifecycle/run.h"
#include "pod/model/refusal.h"

static void cleanup_report(struct up_report *report) { up_report_free(report); }

static int payload_words(const struct arguments *arguments, struct words *ret_words, struct err *err)
{
	const char *text = arguments->value[FLAG_PAYLOAD];
	if (!text)
		return 0;
	int r = words_split(text, ret_words, err);
	if (r == 0 && !ret_words->n)
		return refuse(err, REFUSAL_USAGE, "--payload", "there is no word in it");
	if (r < 0 && err->refusal == REFUSAL_BAD_CONFIG)
		err->refusal = REFUSAL_USAGE;
	return r;
}

/* The command's own status counts; what happened afterwards only when it went well. */
static int run_beside(struct session *session, struct foreground *foreground, const struct up_report *report, const char *program,
		      char *const *command, struct err *err)
{
	int status = 128 + foreground_asked_to_end(foreground);
	int r = status > 128 ? 0 : run_command(foreground, report, program, command, &status, err);
	struct err why = {0};
	struct progress_line line;
	progress_begin(&line, session);
	int ended = run_end(session, report, &why);
	progress_end(&line);
	if (ended < 0) {
		if (r < 0 || status != EXIT_DONE)
			print_err(&why);
		else
			*err = why, r = why.code;
	}
	return r < 0 ? r : status;
}

static int run_run(const struct arguments *arguments, struct err *err)
{
	AUTO_SESSION struct session session = {.root = PIN_NONE, .pods_dir = PIN_NONE};
	__attribute__((cleanup(cleanup_report))) struct up_report report = {0};
	AUTO_FOREGROUND struct foreground foreground = FOREGROUND_NONE;
	AUTO_WORDS struct words payload = {0};
	struct up_request request = {0};
	struct progress_line line;
	char program[PLANE_PATH_MAX];
	if (!arguments->command_count)
		return refuse(err, REFUSAL_USAGE, "run", "the command stands after `--`");
	int r = up_request_from(arguments, &request, err);
	if (r == 0)
		r = payload_words(arguments, &payload, err);
	if (r == 0)
		r = session_open(arguments->config, &session, err);
	if (r == 0 && run_find_command(&session, arguments->command[0], program, sizeof program, err) < 0)
		return print_not_runnable(err);
	if (r == 0)
		r = foreground_begin(&foreground, err);
	if (r < 0)
		return r;
	request.command = payload.v;
	request.command_count = payload.n;
	session.foreground = &foreground;
	progress_begin(&line, &session);
	r = run_begin(&session, &request, &report, err);
	progress_end(&line);
	up_tell(&report);
	if (r == 0)
		return run_beside(&session, &foreground, &report, program, arguments->command, err);
	int asked = foreground_asked_to_end(&foreground);
	if (!asked)
		return r;
	print_err(err);
	return 128 + asked;
}

const struct verb verb_run = {
	.name = "run",
	.operands = "NAME -- CMD ARG...",
	.summary = "Run a command beside a pod of its own, which goes with it",
	.details = "The pod is new, is up before the command starts, and is taken down when the command has ended, or this process is killed. The command\n"
		   "has KIROCREW_POD_URL, _PORT, _HOME and _NAME in its environment, and its status is passed on, 128 and the signal if one ended it.",
	.flags = UP_FLAGS | FLAG(PAYLOAD),
	.names_min = 1,
	.names_max = 1,
	.command = true,
	.run = run_run,
};
