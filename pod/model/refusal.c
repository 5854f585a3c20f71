#include "pod/model/refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct refusal_entry table[REFUSAL_COUNT_] = {
	[REFUSAL_NONE] = {"none", EXIT_FAILED, false, "no reason was given", NULL},
	[REFUSAL_USAGE] = {"usage", EXIT_USAGE, false, NULL, "see kirocrew-pod [VERB] --help"},
	[REFUSAL_BAD_NAME] = {"bad-name", EXIT_USAGE, true, "not a pod name",
			      "use 1 to 61 of A-Z a-z 0-9 . _ - and begin with a letter or digit"},
	[REFUSAL_BAD_CONFIG] = {"bad-config", EXIT_REFUSED, true, "the setting cannot be used", "correct it and try again"},
	[REFUSAL_NOT_PROVISIONED] = {"not-provisioned", EXIT_NOT_PROVISIONED, true, "the payload cannot be executed",
				     "install it or name another, then run `kirocrew-pod up` again"},
	[REFUSAL_NO_PAYLOAD] = {"no-payload", EXIT_NOT_PROVISIONED, true, "there is nothing to run",
				"give a checkout with --checkout DIR, or a command (`up`: after `--`; `run`: with --payload WORDS)"},
	[REFUSAL_NO_SUCH_POD] = {"no-such-pod", EXIT_NOT_PROVISIONED, true, "there is no such pod", "`kirocrew-pod ls` shows what there is"},
	[REFUSAL_LIVE_PORT] = {"live-port", EXIT_LIVE_PORT, true, "a pod never binds the live port", "choose another with --port"},
	[REFUSAL_PORT_BUSY] = {"port-busy", EXIT_REFUSED, true, "the pinned port cannot be used", "free it or choose another with --port"},
	[REFUSAL_PORT_BAND_FULL] = {"port-band-full", EXIT_REFUSED, true, "every port of the band is taken",
				    "take pods down, or widen KIROCREW_POD_PORT_SPAN"},
	[REFUSAL_NO_MANAGER] = {"no-manager", EXIT_NO_MANAGER, false, "the service manager cannot be reached",
				"use --backend embedded, which needs none"},
	[REFUSAL_BUSY] = {"busy", EXIT_BUSY, false, "another kirocrew-pod works on it", "wait for it to end and try again"},
	[REFUSAL_NOT_A_POD] = {"not-a-pod", EXIT_REFUSED, true, "this is not a pod", "move it out of the pods root; it is left untouched"},
	[REFUSAL_NOT_THE_POD] = {"not-the-pod", EXIT_REFUSED, true, "this is not the directory that `up` made",
				 "move it away; it is left untouched"},
	[REFUSAL_UNSAFE_PATH] = {"unsafe-path", EXIT_REFUSED, true, "the path cannot be trusted", "give it to yourself alone, or choose another"},
	[REFUSAL_HOME] = {"home", EXIT_REFUSED, true, "the home of the pod cannot be built", "remove what stands in the way, or take the pod down"},
	[REFUSAL_SEED] = {"seed", EXIT_REFUSED, true, "the seed cannot be used", "see kirocrew-pod scenarios"},
	[REFUSAL_SEED_INCOMPLETE] = {"seed-incomplete", EXIT_REFUSED, true, "the home is populated but not complete",
				     "take the pod down and up again"},
	[REFUSAL_AGENT_DEAD] = {"agent-dead", EXIT_REFUSED, true, "the agent cannot start", "mend the agent, then run `kirocrew-pod up` again"},
	[REFUSAL_VALUE] = {"value", EXIT_REFUSED, true, "the value cannot be carried to the pod", "choose another"},
	[REFUSAL_PORT_KEPT] = {"port-kept", EXIT_REFUSED, false, "a pod that runs keeps its port", "take it down before it is given another with --port"},
	[REFUSAL_BACKEND_KEPT] = {"backend-kept", EXIT_REFUSED, false, "a pod that has not ended keeps its backend",
				  "leave --backend out, or take the pod down before it is given another"},
	[REFUSAL_SERVER_EXISTS] = {"server-exists", EXIT_REFUSED, false, "there is such a server already, and it is left alone",
				   "say --replace, or choose another name"},
	[REFUSAL_EXISTS] = {"exists", EXIT_REFUSED, false, "there is such a pod already, and it is left alone", "take it down, or choose another name"},
	[REFUSAL_OWNER] = {"owner", EXIT_REFUSED, false, "the owner cannot be watched", "name a process that runs with --owner PID"},
	[REFUSAL_IN_USE] = {"in-use", EXIT_FAILED, false, "somebody holds the pod", "end what is named and try again"},
};

const struct refusal_entry *refusal_entry(enum refusal refusal)
{
	return &table[refusal > REFUSAL_NONE && refusal < REFUSAL_COUNT_ ? refusal : REFUSAL_NONE];
}

int refuse(struct err *err, enum refusal refusal, const char *subject, const char *format, ...)
{
	if (!err)
		return -EPERM;
	char detail[sizeof err->text] = "";
	if (format) {
		va_list arguments;
		va_start(arguments, format);
		(void)vsnprintf(detail, sizeof detail, format, arguments);
		va_end(arguments);
	}
	const char *sentence = refusal_entry(refusal)->sentence;
	if (sentence && *detail)
		(void)err_set(err, -EPERM, "refused", subject, "%s: %s", sentence, detail);
	else
		(void)err_set(err, -EPERM, "refused", subject, "%s", sentence ? sentence : detail);
	err->refusal = (int)refusal;
	return -EPERM;
}

bool exit_status_terminal(int status)
{
	return status == EXIT_NOT_PROVISIONED || status == EXIT_LIVE_PORT || status == EXIT_REFUSED;
}

enum exit_status err_exit_status(const struct err *err)
{
	return err->refusal ? refusal_entry((enum refusal)err->refusal)->status : EXIT_FAILED;
}

void err_sentence(const struct err *err, char *out, unsigned long size)
{
	const char *remedy = err->refusal ? refusal_entry((enum refusal)err->refusal)->remedy : NULL;
	(void)snprintf(out, size, "%s%s%s%s%s", err->subject, *err->subject ? ": " : "", err->text, remedy ? "; " : "", remedy ? remedy : "");
}
