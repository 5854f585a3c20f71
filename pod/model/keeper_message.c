#include "pod/model/keeper_message.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "kirocrew-keeper 1\n"
#define HEAD_ANY "kirocrew-keeper "
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const verbs[] = {
	[KEEPER_ASK_STATUS] = "status", [KEEPER_ASK_WATCH] = "watch", [KEEPER_ASK_START] = "start", [KEEPER_ASK_STOP] = "stop",
	[KEEPER_ASK_GUARD] = "guard"};
static const char *const answers[] = {[KEEPER_SAYS_STATE] = "state", [KEEPER_SAYS_GONE] = "gone", [KEEPER_SAYS_NO] = "no"};
static const char *const actives[] = {[UNIT_UNKNOWN] = "unknown", [UNIT_ABSENT] = "absent", [UNIT_INACTIVE] = "inactive",
				      [UNIT_STARTING] = "starting", [UNIT_ACTIVE] = "active", [UNIT_RESTARTING] = "restarting",
				      [UNIT_STOPPING] = "stopping", [UNIT_FAILED] = "failed"};
static const char *const ends[] = {[UNIT_END_NONE] = "none", [UNIT_END_EXITED] = "exited", [UNIT_END_SIGNALED] = "signaled",
				   [UNIT_END_TIMEOUT] = "timeout", [UNIT_END_START_LIMIT] = "start-limit", [UNIT_END_OTHER] = "other"};
_Static_assert(COUNT(verbs) == KEEPER_VERBS && COUNT(answers) == KEEPER_ANSWERS, "one word each");

static int word_index(const char *const *words, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], word) == 0)
			return (int)i;
	return -1;
}

struct writer {
	char *out;
	size_t len;
	bool full;
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	size_t room = KEEPER_MESSAGE_MAX - w->len;
	int n = vsnprintf(w->out + w->len, room, format, arguments);
	va_end(arguments);
	if (n < 0 || (size_t)n >= room)
		w->full = true;
	else
		w->len += (size_t)n;
}

/* Raw bytes on one line: what is not plain text, and '%', as %XX. */
static void put_bytes(struct writer *w, const char *key, const char *bytes)
{
	if (!*bytes)
		return;
	put(w, "%s ", key);
	for (const unsigned char *p = (const unsigned char *)bytes; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || *p == '%')
			put(w, "%%%02X", *p);
		else
			put(w, "%c", *p);
	put(w, "\n");
}

static int written(const struct writer *w)
{
	return w->full ? -EMSGSIZE : (int)w->len;
}

int keeper_request_encode(const struct keeper_request *request, char *out)
{
	if ((size_t)request->verb >= COUNT(verbs) || request->grace_ms < 0 || request->grace_ms > KEEPER_GRACE_MAX_MS)
		return -EINVAL;
	struct writer w = {.out = out};
	put(&w, HEAD "%s", verbs[request->verb]);
	if (request->verb == KEEPER_ASK_STOP)
		put(&w, " %lld", (long long)request->grace_ms);
	put(&w, "\n");
	return written(&w);
}

int keeper_reply_encode(const struct keeper_reply *reply, char *out)
{
	const struct unit_state *state = &reply->state;
	if ((size_t)reply->answer >= COUNT(answers) || (size_t)state->active >= COUNT(actives) || (size_t)state->end >= COUNT(ends))
		return -EINVAL;
	struct writer w = {.out = out};
	put(&w, HEAD "%s\n", answers[reply->answer]);
	if (reply->answer == KEEPER_SAYS_NO) {
		put(&w, "code %d\n", reply->code);
		put_bytes(&w, "text", reply->text);
		return written(&w);
	}
	put(&w, "active %s\nmain %d\nend %s\nstatus %d\nrestarts %u\nsince %lld\n", actives[state->active], (int)state->main_pid, ends[state->end],
	    state->status, state->restarts, (long long)state->since_usec);
	put_bytes(&w, "cgroup", state->group.cgroup);
	put_bytes(&w, "id", state->group.pod_id);
	put_bytes(&w, "detail", state->detail);
	return written(&w);
}

/* Plain decimal, whole word. */
static bool number(const char *word, long long low, long long high, long long *ret_number)
{
	size_t digits = strspn(word + (*word == '-'), "0123456789");
	if (digits == 0 || digits > 18 || word[(*word == '-') + digits])
		return false;
	long long n = strtoll(word, NULL, 10);
	if (n < low || n > high)
		return false;
	*ret_number = n;
	return true;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool text(const char *word, char *out, size_t size)
{
	size_t n = 0;
	for (; *word; word++) {
		int byte = (unsigned char)*word;
		if (byte == '%') {
			int high = hex(word[1]), low = high < 0 ? -1 : hex(word[2]);
			byte = low < 0 ? 0 : high * 16 + low;
			word += 2;
			if (byte == 0)
				return false;
		}
		if (n + 1 >= size)
			return false;
		out[n++] = (char)byte;
	}
	out[n] = 0;
	return true;
}

/* The message as a string of its own, behind the head; every line ends with a newline, there is no NUL in it. */
static int open_message(const char *bytes, size_t len, char *copy, char **ret_body, struct err *err)
{
	if (len == 0 || len >= KEEPER_MESSAGE_MAX || memchr(bytes, 0, len) || bytes[len - 1] != '\n')
		return err_set(err, -EBADMSG, "keeper", NULL, "a message that is not of this protocol");
	memcpy(copy, bytes, len);
	copy[len] = 0;
	if (strncmp(copy, HEAD, strlen(HEAD)) == 0) {
		*ret_body = copy + strlen(HEAD);
		return 0;
	}
	if (strncmp(copy, HEAD_ANY, strlen(HEAD_ANY)) == 0)
		return err_set(err, -EPROTONOSUPPORT, "keeper", NULL, "it speaks another version of the keeper's protocol");
	return err_set(err, -EBADMSG, "keeper", NULL, "a message that is not of this protocol");
}

int keeper_request_decode(const char *bytes, size_t len, struct keeper_request *ret_request, struct err *err)
{
	char copy[KEEPER_MESSAGE_MAX], *body = NULL;
	int r = open_message(bytes, len, copy, &body, err);
	if (r < 0)
		return r;
	body[strcspn(body, "\n")] = 0;
	bool one_line = body + strlen(body) + 1 == copy + len;
	char *argument = strchr(body, ' ');
	if (argument)
		*argument++ = 0;
	int verb = word_index(verbs, COUNT(verbs), body);
	long long grace = 0;
	bool wants = verb == KEEPER_ASK_STOP;
	if (!one_line || verb < 0 || wants != (argument != NULL) || (wants && !number(argument, 0, KEEPER_GRACE_MAX_MS, &grace)))
		return err_set(err, -EBADMSG, "keeper", NULL, "a request that is not understood");
	*ret_request = (struct keeper_request){.verb = (enum keeper_verb)verb, .grace_ms = grace};
	return 0;
}

/* One "key value" line; an unknown key is passed over. */
static bool take_line(struct keeper_reply *reply, const char *key, const char *value)
{
	struct unit_state *state = &reply->state;
	long long n = 0;
	int i = 0;
	if (strcmp(key, "active") == 0)
		return (i = word_index(actives, COUNT(actives), value)) >= 0 && (state->active = (enum unit_active)i, true);
	if (strcmp(key, "end") == 0)
		return (i = word_index(ends, COUNT(ends), value)) >= 0 && (state->end = (enum unit_end)i, true);
	if (strcmp(key, "main") == 0)
		return number(value, 0, INT_MAX, &n) && (state->main_pid = (pid_t)n, true);
	if (strcmp(key, "status") == 0)
		return number(value, 0, 255, &n) && (state->status = (int)n, true);
	if (strcmp(key, "restarts") == 0)
		return number(value, 0, UINT_MAX, &n) && (state->restarts = (unsigned)n, true);
	if (strcmp(key, "since") == 0)
		return number(value, 0, LLONG_MAX, &n) && (state->since_usec = n, true);
	if (strcmp(key, "code") == 0)
		return number(value, -4095, -1, &n) && (reply->code = (int)n, true);
	if (strcmp(key, "cgroup") == 0)
		return text(value, state->group.cgroup, sizeof state->group.cgroup);
	if (strcmp(key, "id") == 0)
		return text(value, state->group.pod_id, sizeof state->group.pod_id);
	if (strcmp(key, "detail") == 0)
		return text(value, state->detail, sizeof state->detail);
	if (strcmp(key, "text") == 0)
		return text(value, reply->text, sizeof reply->text);
	return true;
}

int keeper_reply_decode(const char *bytes, size_t len, struct keeper_reply *ret_reply, struct err *err)
{
	char copy[KEEPER_MESSAGE_MAX], *body = NULL;
	int r = open_message(bytes, len, copy, &body, err);
	if (r < 0)
		return r;
	struct keeper_reply reply = {0};
	bool first = true, good = *body != 0;
	for (char *line = body; good && *line;) {
		char *end = strchr(line, '\n'), *value = NULL;
		*end = 0;
		if (first) {
			int answer = word_index(answers, COUNT(answers), line);
			good = answer >= 0;
			reply.answer = good ? (enum keeper_answer)answer : KEEPER_SAYS_NO;
		} else {
			good = (value = strchr(line, ' ')) && (*value++ = 0, take_line(&reply, line, value));
		}
		first = false;
		line = end + 1;
	}
	if (!good || (reply.answer == KEEPER_SAYS_NO && reply.code == 0))
		return err_set(err, -EBADMSG, "keeper", NULL, "a reply that is not understood");
	*ret_reply = reply;
	return 0;
}
