/* "I will not, because …": one table of code, exit status, terminal or not, sentence, remedy, JSON code. A refusal travels in
 * struct err (field `refusal`), so no path can lose it. */
#pragma once

#include <stdbool.h>

#include "fsops/err.h"

/* Exit statuses of the contract, section 11. */
enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PROVISIONED = 3,
	EXIT_NO_MANAGER = 69,
	EXIT_LIVE_PORT = 70,
	EXIT_BUSY = 75,
	EXIT_REFUSED = 78,
};

/* No restart can help: 3, 70, 78 (contract, section 8). */
bool exit_status_terminal(int status);

enum refusal {
	REFUSAL_NONE,
	REFUSAL_USAGE,
	REFUSAL_BAD_NAME,
	REFUSAL_BAD_CONFIG,      /* INI, environment setting, record */
	REFUSAL_NOT_PROVISIONED, /* payload missing or not executable */
	REFUSAL_NO_PAYLOAD,      /* neither a command nor a checkout to run */
	REFUSAL_NO_SUCH_POD,
	REFUSAL_LIVE_PORT,
	REFUSAL_PORT_BUSY,
	REFUSAL_PORT_BAND_FULL,
	REFUSAL_NO_MANAGER,
	REFUSAL_BUSY,
	REFUSAL_NOT_A_POD,
	REFUSAL_NOT_THE_POD,     /* home replaced by another directory */
	REFUSAL_UNSAFE_PATH,     /* link, foreign owner, world-writable parent */
	REFUSAL_HOME,            /* home or os-home cannot be built */
	REFUSAL_SEED,
	REFUSAL_SEED_INCOMPLETE,
	REFUSAL_AGENT_DEAD,
	REFUSAL_VALUE,           /* a value that cannot be carried */
	REFUSAL_IN_USE,          /* a home that somebody holds */
	REFUSAL_PORT_KEPT,       /* another port for a pod that runs */
	REFUSAL_BACKEND_KEPT,    /* another backend for one whose manager has not ended it */
	REFUSAL_SERVER_EXISTS,   /* an MCP server of that name, with other words */
	REFUSAL_EXISTS,          /* a pod of that name, where a new one is asked for */
	REFUSAL_OWNER,           /* no such process, or nobody could watch it */
	REFUSAL_COUNT_,
};

struct refusal_entry {
	const char *code;       /* JSON and note: "not-provisioned" */
	enum exit_status status;
	bool terminal;          /* at boot: no restart can help */
	const char *sentence;   /* "the payload is missing or cannot be executed" */
	const char *remedy;
};
const struct refusal_entry *refusal_entry(enum refusal refusal);

/* Fills *err with the entry's sentence, then ": " and the detail (format may be NULL, at most 767 bytes); returns -EPERM. */
int refuse(struct err *err, enum refusal refusal, const char *subject, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Exit status for a failed call: the refusal's, else EXIT_FAILED. */
enum exit_status err_exit_status(const struct err *err);
/* "what: why; remedy" in one line, raw bytes, into out. */
void err_sentence(const struct err *err, char *out, unsigned long size);
