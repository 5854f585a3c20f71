#include "pod/model/launchd_print.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pod/model/refusal.h"

#define NO_SUCH_SERVICE 113 /* launchctl's status for a label that the domain does not know */

struct job {
	char state[64];
	long pid, runs, code, signal; /* -1: not told */
};

void launchd_label(const char *prefix, const struct pod_name *name, char out[LAUNCHD_LABEL_MAX])
{
	(void)snprintf(out, LAUNCHD_LABEL_MAX, "dev.kirocrew.pod.%s.%s", prefix, name->text);
}

void launchd_words(const char *text, char *out, size_t size)
{
	static const char preface[] = "Bad request.";
	*out = '\0';
	for (const char *line = text; *line; line += *line == '\n') {
		size_t len = strcspn(line, "\n");
		if (len && strncmp(line, preface, len > sizeof preface - 1 ? len : sizeof preface - 1) != 0)
			(void)snprintf(out, size, "%.*s", (int)len, line);
		line += len;
	}
}

/* The value of a line "\t<key> = <value>". 0 found, -ENOENT, -EBADMSG when it stands there twice or does not fit. */
static int value_of(const char *text, const char *key, char *out, size_t size)
{
	size_t len = strlen(key);
	int found = -ENOENT;
	for (const char *line = text; *line; line += *line == '\n') {
		size_t end = strcspn(line, "\n");
		if (end > len + 4 && *line == '\t' && strncmp(line + 1, key, len) == 0 && strncmp(line + 1 + len, " = ", 3) == 0) {
			int n = snprintf(out, size, "%.*s", (int)(end - len - 4), line + len + 4);
			if (found == 0 || n < 0 || (size_t)n >= size)
				return -EBADMSG;
			found = 0;
		}
		line += end;
	}
	return found;
}

/* "78", "78: EX_CONFIG" */
static int leading_number(const char *word, long *ret_number)
{
	char *end;
	long number = strtol(word, &end, 10);
	if (end == word || number < 0 || number > INT_MAX || (*end && *end != ':'))
		return -EBADMSG;
	*ret_number = number;
	return 0;
}

/* "Killed: 9", "9" */
static int trailing_number(const char *word, long *ret_number)
{
	const char *colon = strrchr(word, ':');
	return leading_number(colon ? colon + 1 + strspn(colon + 1, " ") : word, ret_number);
}

static int number_of(const char *text, const char *key, int (*read)(const char *, long *), long *ret_number)
{
	char word[64];
	int r = value_of(text, key, word, sizeof word);
	if (r == -ENOENT || (r == 0 && *word == '(')) /* "(never exited)" */
		return 0;
	return r < 0 ? r : read(word, ret_number);
}

static int job_read(const char *text, struct job *job)
{
	*job = (struct job){.pid = -1, .runs = -1, .code = -1, .signal = -1};
	int r = value_of(text, "state", job->state, sizeof job->state);
	if (r == 0)
		r = number_of(text, "pid", leading_number, &job->pid);
	if (r == 0)
		r = number_of(text, "runs", leading_number, &job->runs);
	if (r == 0)
		r = number_of(text, "last exit code", leading_number, &job->code);
	if (r == 0)
		r = number_of(text, "last terminating signal", trailing_number, &job->signal);
	return r;
}

static enum unit_active active_with_process(const struct job *job)
{
	if (strcmp(job->state, "running") == 0)
		return UNIT_ACTIVE;
	return strncmp(job->state, "SIG", 3) == 0 ? UNIT_STOPPING : UNIT_STARTING; /* "SIGTERMed"; "xpcproxy" is on its way to the program */
}

static enum unit_active active_without_process(const struct job *job)
{
	if (strcmp(job->state, "spawn failed") == 0)
		return UNIT_FAILED;
	if (job->signal >= 0)
		return UNIT_RESTARTING;
	if (job->code < 0)
		return UNIT_STARTING;
	if (job->code == 0)
		return UNIT_INACTIVE;
	return exit_status_terminal((int)job->code) ? UNIT_FAILED : UNIT_RESTARTING;
}

static void state_of(const struct job *job, struct unit_state *ret_state)
{
	struct unit_state state = {.main_pid = job->pid > 0 ? (pid_t)job->pid : 0};
	state.active = state.main_pid ? active_with_process(job) : active_without_process(job);
	if (job->signal >= 0) {
		state.end = UNIT_END_SIGNALED;
		state.status = (int)job->signal;
	} else if (job->code >= 0) {
		state.end = UNIT_END_EXITED;
		state.status = (int)job->code;
	}
	state.restarts = job->runs > 1 ? (unsigned)job->runs - 1 : 0;
	(void)snprintf(state.detail, sizeof state.detail, "%s", job->state);
	*ret_state = state;
}

int launchd_print_parse(int status, const char *text, struct unit_state *ret_state, struct err *err)
{
	struct job job;
	char words[256];
	launchd_words(text, words, sizeof words);
	if (status == NO_SUCH_SERVICE && strstr(text, "Could not find service")) {
		*ret_state = (struct unit_state){.active = UNIT_ABSENT};
		return 0;
	}
	if (status && (strstr(text, "Could not find domain") || strstr(text, "Domain does not support")))
		return refuse(err, REFUSAL_NO_MANAGER, "launchd", "%s", words);
	if (status)
		return err_set(err, -EIO, "launchctl", "print", "it ended with status %d: %s", status, words);
	if (job_read(text, &job) < 0)
		return err_set(err, -EBADMSG, "launchctl", "print", "what it says of the job cannot be read");
	state_of(&job, ret_state);
	return 0;
}
