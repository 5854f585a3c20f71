/* A JSON-RPC conversation with a sandboxed child on its standard streams: its lines come as events, its stderr is always drained and its end
 * kept, what it does not read is kept for it. Shared by the probes of agents and of MCP servers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "pod/model/jsonrpc.h"
#include "pod/system/sandbox.h"

#define TAIL_BYTES 4096

/* The last bytes of a stream. */
struct tail {
	char bytes[2 * TAIL_BYTES];
	size_t len;
};

struct dialogue {
	struct sandbox sandbox;
	int to, from, errors; /* -1: closed by the child */
	struct jsonrpc_reader reader;
	char input[65536];
	size_t input_at, input_len;
	char *output; /* not yet taken by the child */
	size_t output_at, output_len;
	struct tail said, complained; /* stdout and stderr, raw */
	bool closed_told, too_long_told, ended, abandoned;
	unsigned late; /* steps since the deadline */
	ino_t pipe; /* of stdout */
};

enum dialogue_turn {
	DIALOGUE_EVENT,
	DIALOGUE_CLOSED,  /* the child closed its stdout and lives; told once */
	DIALOGUE_ENDED,   /* it has ended and all of its output has been seen */
	DIALOGUE_TIMEOUT,
};

/* `request->stdio` is ignored. What sandbox_start says; what the sandbox program itself complained of is in `complained` then. Large:
 * allocate it. */
int dialogue_start(const struct sandbox_request *request, struct deadline until, struct dialogue *dialogue, struct err *err);
/* Is it the lack of memory, descriptors or processes of this side, and no word about the child? */
bool dialogue_failure_is_ours(int code);
/* Takes the line over; NULL is -ENOMEM. Never waits, never raises SIGPIPE; a child that does not read is no error. */
int dialogue_send(struct dialogue *dialogue, char *line, struct err *err);
int dialogue_next(struct dialogue *dialogue, struct deadline until, enum dialogue_turn *ret_turn, struct jsonrpc_event *ret_event, struct err *err);
/* Ends the child with all that it started and releases everything. *ret_status as of waitpid(2), of the command where it ended by itself. */
int dialogue_end(struct dialogue *dialogue, struct deadline until, int *ret_status, struct err *err);
/* "ping" is answered, anything else is not found: what both sides owe each other. */
int dialogue_answer(struct dialogue *dialogue, const struct jsonrpc_event *request, struct err *err);

/* The last `characters` of the tail, escaped, one line. */
void tail_text(const struct tail *tail, size_t characters, char *out, size_t size);
bool tail_mentions(const struct tail *tail, const char *text); /* whatever the case */
/* "exit status 3", "signal 11 (Segmentation fault)" of a wait status; a sandbox tells signals as 128 + number. */
void status_text(int status, char *out, size_t size);
/* Did the sandbox program fail to execute `program`? Then the cause in `out`, as spawn would have told it. */
bool exec_failed(const struct tail *complained, const char *program, char *out, size_t size);
