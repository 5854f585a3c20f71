/* What a keeper and those who ask it say to each other: one bounded datagram of text lines each, the first of which names the protocol and its
 * version. Pure. A decoder refuses what it does not fully understand, except for unknown keys of a reply, which a later keeper may add. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "fsops/err.h"
#include "pod/model/facts.h"

#define KEEPER_MESSAGE_MAX 2048
#define KEEPER_GRACE_MAX_MS (24LL * 3600 * 1000)

enum keeper_verb {
	KEEPER_ASK_STATUS, /* answered at once */
	KEEPER_ASK_WATCH,  /* answered at once and at each change, until the connection is closed */
	KEEPER_ASK_START,  /* answered when the start was made; a start that is not needed is success */
	KEEPER_ASK_STOP,   /* answered when nothing is left */
	KEEPER_ASK_GUARD,  /* answered when the life that the record tells now is watched */
	KEEPER_VERBS,
};
struct keeper_request {
	enum keeper_verb verb;
	int64_t grace_ms; /* of STOP: 0..KEEPER_GRACE_MAX_MS */
};

enum keeper_answer {
	KEEPER_SAYS_STATE,
	KEEPER_SAYS_GONE, /* everything ended */
	KEEPER_SAYS_NO,   /* `code` and `text` */
	KEEPER_ANSWERS,
};
struct keeper_reply {
	enum keeper_answer answer;
	struct unit_state state; /* of STATE and GONE; group.tree is never carried: the socket's peer is the keeper */
	int code;                /* of NO: negative errno */
	char text[256];          /* of NO: raw bytes */
};

/* Bytes written into out (of KEEPER_MESSAGE_MAX), or -EMSGSIZE, -EINVAL. */
int keeper_request_encode(const struct keeper_request *request, char *out);
int keeper_reply_encode(const struct keeper_reply *reply, char *out);
/* -EPROTONOSUPPORT another version, -EBADMSG anything else that is not understood. */
int keeper_request_decode(const char *bytes, size_t len, struct keeper_request *ret_request, struct err *err);
int keeper_reply_decode(const char *bytes, size_t len, struct keeper_reply *ret_reply, struct err *err);
