#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pod/model/keeper_message.h"

static void requests_come_back_as_they_went(void **unused)
{
	(void)unused;
	static const struct keeper_request requests[] = {{KEEPER_ASK_STATUS, 0}, {KEEPER_ASK_WATCH, 0}, {KEEPER_ASK_START, 0}, {KEEPER_ASK_STOP, 0},
							 {KEEPER_ASK_STOP, 15000}, {KEEPER_ASK_STOP, KEEPER_GRACE_MAX_MS}};
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		char bytes[KEEPER_MESSAGE_MAX];
		struct keeper_request back = {KEEPER_VERBS, -1};
		int len = keeper_request_encode(&requests[i], bytes);
		assert_true(len > 0);
		assert_int_equal(keeper_request_decode(bytes, (size_t)len, &back, NULL), 0);
		assert_int_equal(back.verb, requests[i].verb);
		assert_int_equal(back.grace_ms, requests[i].grace_ms);
	}
}

static void requests_out_of_range_are_not_written(void **unused)
{
	(void)unused;
	char bytes[KEEPER_MESSAGE_MAX];
	assert_int_equal(keeper_request_encode(&(struct keeper_request){KEEPER_VERBS, 0}, bytes), -EINVAL);
	assert_int_equal(keeper_request_encode(&(struct keeper_request){KEEPER_ASK_STOP, -1}, bytes), -EINVAL);
	assert_int_equal(keeper_request_encode(&(struct keeper_request){KEEPER_ASK_STOP, KEEPER_GRACE_MAX_MS + 1}, bytes), -EINVAL);
}

static int decode(const char *text)
{
	struct keeper_request request;
	return keeper_request_decode(text, strlen(text), &request, NULL);
}

static void odd_requests_are_refused(void **unused)
{
	(void)unused;
	static const char *const bad[] = {
		"", "\n", "status\n", "kirocrew-keeper 1\n", "kirocrew-keeper 1\nstatus", "kirocrew-keeper 1\nstatus \n",
		"kirocrew-keeper 1\nstatus 1\n", "kirocrew-keeper 1\nstop\n", "kirocrew-keeper 1\nstop \n", "kirocrew-keeper 1\nstop -1\n",
		"kirocrew-keeper 1\nstop +1\n", "kirocrew-keeper 1\nstop 0x10\n", "kirocrew-keeper 1\nstop 1 \n", "kirocrew-keeper 1\nstop 1 2\n",
		"kirocrew-keeper 1\nstop 99999999999999999999999\n", "kirocrew-keeper 1\nstop 86400001\n", "kirocrew-keeper 1\nSTATUS\n",
		"kirocrew-keeper 1\nstatus\nstatus\n", "kirocrew-keeper 1\nkill\n", "kirocrew-keeper 1 \nstatus\n",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (decode(bad[i]) >= 0)
			fail_msg("understood: %s", bad[i]);
	assert_int_equal(decode("kirocrew-keeper 2\nstatus\n"), -EPROTONOSUPPORT);
	assert_int_equal(decode("kirocrew-keeper 10\nstatus\n"), -EPROTONOSUPPORT);
	struct keeper_request request;
	char nul[] = "kirocrew-keeper 1\nstat\0us\n";
	assert_int_equal(keeper_request_decode(nul, sizeof nul - 1, &request, NULL), -EBADMSG);
	char big[KEEPER_MESSAGE_MAX + 100];
	memset(big, '\n', sizeof big);
	assert_int_equal(keeper_request_decode(big, sizeof big, &request, NULL), -EBADMSG);
	assert_int_equal(keeper_request_decode(big, KEEPER_MESSAGE_MAX, &request, NULL), -EBADMSG);
}

static void replies_come_back_as_they_went(void **unused)
{
	(void)unused;
	struct keeper_reply reply = {.answer = KEEPER_SAYS_STATE,
				     .state = {.active = UNIT_RESTARTING,
					       .main_pid = 4711,
					       .end = UNIT_END_SIGNALED,
					       .status = 9,
					       .restarts = 4000000000U,
					       .since_usec = 1700000000000000LL,
					       .group = {.cgroup = "/sys/fs/cgroup/a b%/\xc3\xa4\n\x01", .pod_id = "0f8fad5b-d9cb-469f-a165-70867728950e"},
					       .detail = "waits \x1b[31m 100 %"}},
			    back = {0};
	char bytes[KEEPER_MESSAGE_MAX];
	int len = keeper_reply_encode(&reply, bytes);
	assert_true(len > 0);
	assert_null(memchr(bytes, '\x1b', (size_t)len));
	assert_int_equal(keeper_reply_decode(bytes, (size_t)len, &back, NULL), 0);
	assert_int_equal(back.state.active, UNIT_RESTARTING);
	assert_int_equal(back.state.main_pid, 4711);
	assert_int_equal(back.state.end, UNIT_END_SIGNALED);
	assert_int_equal(back.state.status, 9);
	assert_int_equal(back.state.restarts, 4000000000U);
	assert_int_equal(back.state.since_usec, 1700000000000000LL);
	assert_string_equal(back.state.group.cgroup, reply.state.group.cgroup);
	assert_string_equal(back.state.group.pod_id, reply.state.group.pod_id);
	assert_string_equal(back.state.detail, reply.state.detail);
	assert_int_equal(back.state.group.tree, 0);
}

static void a_no_has_its_reason(void **unused)
{
	(void)unused;
	struct keeper_reply no = {.answer = KEEPER_SAYS_NO, .code = -EBUSY, .text = "it is\nbeing stopped"}, back = {0};
	char bytes[KEEPER_MESSAGE_MAX];
	int len = keeper_reply_encode(&no, bytes);
	assert_int_equal(keeper_reply_decode(bytes, (size_t)len, &back, NULL), 0);
	assert_int_equal(back.answer, KEEPER_SAYS_NO);
	assert_int_equal(back.code, -EBUSY);
	assert_string_equal(back.text, no.text);
}

/* The longest texts of the worst bytes: either all of it or a plain error. */
static void a_reply_that_does_not_fit_is_not_cut(void **unused)
{
	(void)unused;
	struct keeper_reply reply = {.answer = KEEPER_SAYS_STATE}, back;
	char bytes[KEEPER_MESSAGE_MAX];
	memset(reply.state.group.cgroup, 'x', sizeof reply.state.group.cgroup - 1);
	memset(reply.state.detail, '\n', sizeof reply.state.detail - 1);
	int len = keeper_reply_encode(&reply, bytes);
	assert_true(len > 0);
	assert_int_equal(keeper_reply_decode(bytes, (size_t)len, &back, NULL), 0);
	assert_int_equal(strlen(back.state.group.cgroup), 511);
	memset(reply.state.group.cgroup, '\n', sizeof reply.state.group.cgroup - 1);
	assert_int_equal(keeper_reply_encode(&reply, bytes), -EMSGSIZE);
	assert_int_equal(keeper_reply_encode(&(struct keeper_reply){.answer = KEEPER_ANSWERS}, bytes), -EINVAL);
}

static void odd_replies_are_refused(void **unused)
{
	(void)unused;
	static const char *const bad[] = {
		"kirocrew-keeper 1\n\n", "kirocrew-keeper 1\nmaybe\n", "kirocrew-keeper 1\nstate\nactive\n", "kirocrew-keeper 1\nstate\nactive dead\n",
		"kirocrew-keeper 1\nstate\nmain -1\n", "kirocrew-keeper 1\nstate\nmain 99999999999\n", "kirocrew-keeper 1\nstate\nmain 1x\n",
		"kirocrew-keeper 1\nstate\nstatus 256\n", "kirocrew-keeper 1\nstate\nend killed\n", "kirocrew-keeper 1\nstate\nid %0\n",
		"kirocrew-keeper 1\nstate\nid %00\n", "kirocrew-keeper 1\nstate\nid %\n", "kirocrew-keeper 1\nstate\nid %zz\n",
		"kirocrew-keeper 1\nstate\nid 0f8fad5b-d9cb-469f-a165-70867728950e0\n", "kirocrew-keeper 1\nno\n", "kirocrew-keeper 1\nno\ncode 5\n",
		"kirocrew-keeper 1\nstate\n\n",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct keeper_reply reply;
		if (keeper_reply_decode(bad[i], strlen(bad[i]), &reply, NULL) >= 0)
			fail_msg("understood: %s", bad[i]);
	}
	struct keeper_reply reply;
	const char *later = "kirocrew-keeper 1\nstate\nactive active\nmood good\n";
	assert_int_equal(keeper_reply_decode(later, strlen(later), &reply, NULL), 0);
	assert_int_equal(reply.state.active, UNIT_ACTIVE);
}

/* Every cut and every changed byte of good messages: no crash, and nothing but 0 or an error. */
static void damaged_messages_are_survived(void **unused)
{
	(void)unused;
	const char *good[] = {"kirocrew-keeper 1\nstop 15000\n",
			      "kirocrew-keeper 1\nstate\nactive active\nmain 12\nend none\nstatus 0\nrestarts 0\nsince 5\ncgroup /a%20b\nid x\n"};
	unsigned refused = 0;
	for (size_t g = 0; g < 2; g++)
		for (size_t at = 0; at < strlen(good[g]); at++)
			for (int byte = 0; byte < 256; byte++) {
				char bytes[256];
				size_t len = strlen(good[g]);
				struct keeper_request request;
				struct keeper_reply reply;
				memcpy(bytes, good[g], len);
				bytes[at] = (char)byte;
				int a = keeper_request_decode(bytes, len, &request, NULL), b = keeper_reply_decode(bytes, len, &reply, NULL);
				int c = keeper_request_decode(bytes, at, &request, NULL), d = keeper_reply_decode(bytes, at, &reply, NULL);
				assert_true(a <= 0 && b <= 0 && c <= 0 && d <= 0);
				refused += a < 0;
			}
	assert_true(refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_come_back_as_they_went), cmocka_unit_test(requests_out_of_range_are_not_written),
		cmocka_unit_test(odd_requests_are_refused),        cmocka_unit_test(replies_come_back_as_they_went),
		cmocka_unit_test(a_no_has_its_reason),             cmocka_unit_test(a_reply_that_does_not_fit_is_not_cut),
		cmocka_unit_test(odd_replies_are_refused),         cmocka_unit_test(damaged_messages_are_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
