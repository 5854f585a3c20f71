#include "fuzz.h"

#include "pod/model/keeper_message.h"

static void check_request(const char *bytes, size_t size)
{
	struct keeper_request request = {.verb = KEEPER_VERBS}, again = {.verb = KEEPER_VERBS};
	struct err err = {0};
	char out[KEEPER_MESSAGE_MAX];
	int r = keeper_request_decode(bytes, size, &request, &err);
	if (r < 0) {
		MUST(request.verb == KEEPER_VERBS && err.code == r && *err.text);
		return;
	}
	MUST(request.verb < KEEPER_VERBS && request.grace_ms >= 0 && request.grace_ms <= KEEPER_GRACE_MAX_MS);
	int len = keeper_request_encode(&request, out);
	MUST(len > 0 && len <= KEEPER_MESSAGE_MAX);
	MUST(keeper_request_decode(out, (size_t)len, &again, NULL) == 0);
	MUST(again.verb == request.verb && again.grace_ms == request.grace_ms);
}

static void check_same_state(const struct unit_state *a, const struct unit_state *b)
{
	MUST(a->active == b->active && a->main_pid == b->main_pid && a->end == b->end && a->status == b->status);
	MUST(a->restarts == b->restarts && a->since_usec == b->since_usec);
	MUST(!strcmp(a->group.cgroup, b->group.cgroup) && !strcmp(a->group.pod_id, b->group.pod_id) && !strcmp(a->detail, b->detail));
}

static void check_reply(const char *bytes, size_t size)
{
	struct keeper_reply reply = {.answer = KEEPER_ANSWERS}, again = {.answer = KEEPER_ANSWERS};
	char out[KEEPER_MESSAGE_MAX];
	if (keeper_reply_decode(bytes, size, &reply, NULL) < 0) {
		MUST(reply.answer == KEEPER_ANSWERS);
		return;
	}
	MUST(reply.answer < KEEPER_ANSWERS && !reply.state.group.tree);
	int len = keeper_reply_encode(&reply, out);
	if (len < 0) /* escapes made it longer than a message may be */
		return;
	MUST(keeper_reply_decode(out, (size_t)len, &again, NULL) == 0 && again.answer == reply.answer);
	if (reply.answer == KEEPER_SAYS_NO)
		MUST(again.code == reply.code && !strcmp(again.text, reply.text));
	else
		check_same_state(&reply.state, &again.state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_request((const char *)data, size);
	check_reply((const char *)data, size);
	return 0;
}
