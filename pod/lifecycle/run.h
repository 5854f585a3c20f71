/* A command beside a pod of its own: up, the command, down, whatever happens. */
#pragma once

#include "pod/lifecycle/up.h"

/* The command is found before anything is made: its absolute path. -ENOENT; another code when what is there cannot be executed. */
int run_find_command(const struct session *session, const char *word, char *out, size_t size, struct err *err);
/* `up`, of a new pod that this process owns. After a failure nothing of it is left. */
int run_begin(struct session *session, struct up_request *request, struct up_report *ret_report, struct err *err);
/* In this process's environment and what tells of the pod: KIROCREW_POD_NAME, _URL, _PORT, _HOME. */
int run_command(struct foreground *foreground, const struct up_report *report, const char *program,
		char *const *command, int *ret_status, struct err *err);
int run_end(struct session *session, const struct up_report *report, struct err *err);
