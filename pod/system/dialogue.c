#include "pod/system/dialogue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fsops/cleanup.h"

#define LATE_MOST 1000 /* steps: what it had said by then is still heard */
#define DRAIN_MS 1000
#define SILENCE_MS 250
#define OUTPUT_MAX (4u << 20)

static void tail_add(struct tail *tail, const char *bytes, size_t len)
{
	if (len > TAIL_BYTES) {
		bytes += len - TAIL_BYTES;
		len = TAIL_BYTES;
	}
	if (tail->len + len > sizeof tail->bytes) {
		size_t kept = TAIL_BYTES < tail->len ? TAIL_BYTES : tail->len;
		memmove(tail->bytes, tail->bytes + tail->len - kept, kept);
		tail->len = kept;
	}
	memcpy(tail->bytes + tail->len, bytes, len);
	tail->len += len;
}

static int open_pipe(int *ours, int *theirs, bool we_write, struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_code(err, -errno, "pipe", NULL);
	*ours = ends[we_write];
	*theirs = ends[!we_write];
	return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? err_code(err, -errno, "pipe", NULL) : 0;
}

static void release(struct dialogue *d)
{
	close_quietly(d->to);
	close_quietly(d->from);
	close_quietly(d->errors);
	d->to = d->from = d->errors = -1;
	jsonrpc_reader_free(&d->reader);
	free(d->output);
	d->output = NULL;
	d->output_at = d->output_len = d->input_len = 0;
}

/* False when there is nothing more now; a closed stream becomes -1. */
static bool take(int *fd, char *bytes, size_t size, size_t *ret_len)
{
	ssize_t n = *fd < 0 ? 0 : read(*fd, bytes, size);
	*ret_len = n > 0 ? (size_t)n : 0;
	if (n > 0)
		return true;
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		close_quietly(*fd);
		*fd = -1;
	}
	return false;
}

static bool take_errors(struct dialogue *d)
{
	char bytes[16384];
	size_t len;
	bool some = take(&d->errors, bytes, sizeof bytes, &len);
	tail_add(&d->complained, bytes, len);
	return some;
}

static bool take_input(struct dialogue *d)
{
	d->input_at = 0;
	bool some = take(&d->from, d->input, sizeof d->input, &d->input_len);
	tail_add(&d->said, d->input, d->input_len);
	return some;
}

bool dialogue_failure_is_ours(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -EAGAIN;
}

int dialogue_start(const struct sandbox_request *request, struct deadline until, struct dialogue *d, struct err *err)
{
	struct sandbox_request with = *request;
	int theirs[3] = {-1, -1, -1};
	*d = (struct dialogue){.sandbox = SANDBOX_NONE, .to = -1, .from = -1, .errors = -1};
	int r = open_pipe(&d->to, &theirs[0], true, err);
	if (r == 0)
		r = open_pipe(&d->from, &theirs[1], false, err);
	if (r == 0)
		r = open_pipe(&d->errors, &theirs[2], false, err);
	memcpy(with.stdio, theirs, sizeof theirs);
	struct stat st;
	if (r == 0 && fstat(d->from, &st) == 0)
		d->pipe = st.st_ino;
	if (r == 0)
		r = sandbox_start(&with, until, &d->sandbox, err);
	for (int i = 0; i < 3; i++)
		close_quietly(theirs[i]);
	if (r < 0) {
		while (d->errors >= 0 && take_errors(d))
			;
		release(d);
	}
	return r;
}

/* A thread that writes to a pipe without a reader gets SIGPIPE; whoever we are called by may not expect it. */
static ssize_t write_without_signal(int fd, const char *bytes, size_t len)
{
	sigset_t pipe_only, before;
	struct timespec now = {0};
	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	ssize_t n = write(fd, bytes, len);
	int code = errno;
	if (n < 0 && code == EPIPE && !sigismember(&before, SIGPIPE))
		(void)sigtimedwait(&pipe_only, NULL, &now);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = code;
	return n;
}

static void give_output(struct dialogue *d)
{
	while (d->to >= 0 && d->output_at < d->output_len) {
		ssize_t n = write_without_signal(d->to, d->output + d->output_at, d->output_len - d->output_at);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			close_quietly(d->to);
			d->to = -1;
			return;
		}
		d->output_at += (size_t)n;
	}
}

int dialogue_send(struct dialogue *d, char *line, struct err *err)
{
	size_t len = line ? strlen(line) : 0, waiting = d->output_len - d->output_at;
	bool flooded = waiting + len > OUTPUT_MAX;
	char *joined = line && !flooded ? malloc(waiting + len + 1) : NULL;
	if (joined && waiting)
		memcpy(joined, d->output + d->output_at, waiting);
	if (joined)
		memcpy(joined + waiting, line, len);
	free(line);
	if (!joined)
		return flooded ? err_set(err, -EMSGSIZE, "answer", NULL, "it asks without reading the answers") : err_code(err, -ENOMEM, "json-rpc", NULL);
	free(d->output);
	d->output = joined;
	d->output_at = 0;
	d->output_len = waiting + len;
	give_output(d);
	return 0;
}

/* 1: an event. */
static int next_line(struct dialogue *d, struct jsonrpc_event *ret_event, struct err *err)
{
	while (d->input_at < d->input_len) {
		size_t taken = 0;
		struct jsonrpc_event event;
		int r = jsonrpc_read(&d->reader, d->input + d->input_at, d->input_len - d->input_at, &taken, &event, err);
		if (r < 0)
			return r;
		d->input_at += taken;
		if (event.kind == JSONRPC_MORE || (event.kind == JSONRPC_TOO_LONG && d->too_long_told))
			continue;
		d->too_long_told |= event.kind == JSONRPC_TOO_LONG;
		*ret_event = event;
		return 1;
	}
	return 0;
}

static void wait_for_something(struct dialogue *d, struct deadline until)
{
	struct pollfd p[] = {
		{.fd = d->from, .events = POLLIN},
		{.fd = d->errors, .events = POLLIN},
		{.fd = d->output_at < d->output_len ? d->to : -1, .events = POLLOUT},
		{.fd = d->ended ? -1 : d->sandbox.pidfd, .events = POLLIN},
	};
	struct deadline silence = deadline_in_ms(SILENCE_MS);
	bool watched = d->from >= 0 && !d->ended;
	int n = poll(p, sizeof p / sizeof *p, deadline_poll_ms(watched ? deadline_earlier(silence, until) : until));
	/* The sandbox program keeps its copy of the pipe, so that an end of file never comes. */
	if (n == 0 && watched && !sandbox_holds_pipe(&d->sandbox, d->pipe))
		d->abandoned = true;
	if (n <= 0)
		return;
	if (p[2].revents)
		give_output(d);
	if (p[3].revents)
		d->ended = true;
}

int dialogue_next(struct dialogue *d, struct deadline until, enum dialogue_turn *ret_turn, struct jsonrpc_event *ret_event, struct err *err)
{
	struct deadline drained = {0};
	for (;;) {
		d->late = deadline_passed(until) ? d->late + 1 : 0;
		if (d->late > LATE_MOST) { /* it writes faster than its deadline could be seen between two lines */
			*ret_turn = DIALOGUE_TIMEOUT;
			return 0;
		}
		int r = next_line(d, ret_event, err);
		if (r != 0) {
			*ret_turn = DIALOGUE_EVENT;
			return r < 0 ? r : 0;
		}
		if (d->ended && !drained.at_ns)
			drained = deadline_in_ms(DRAIN_MS);
		(void)take_errors(d);
		if (take_input(d))
			continue;
		if (d->abandoned) {
			close_quietly(d->from);
			d->from = -1;
		}
		bool all_seen = d->from < 0 && d->errors < 0;
		if (d->ended && (all_seen || deadline_passed(drained)))
			*ret_turn = DIALOGUE_ENDED;
		else if (deadline_passed(until))
			*ret_turn = DIALOGUE_TIMEOUT;
		else if (d->from < 0 && !d->ended && !d->closed_told)
			*ret_turn = DIALOGUE_CLOSED;
		else {
			wait_for_something(d, d->ended ? deadline_earlier(until, drained) : until);
			continue;
		}
		d->closed_told |= *ret_turn == DIALOGUE_CLOSED;
		return 0;
	}
}

int dialogue_answer(struct dialogue *d, const struct jsonrpc_event *request, struct err *err)
{
	bool ping = !strcmp(request->method, "ping");
	return dialogue_send(d, ping ? jsonrpc_result(request->id, NULL) : jsonrpc_error(request->id, JSONRPC_METHOD_NOT_FOUND, "Method not found"), err);
}

int dialogue_end(struct dialogue *d, struct deadline until, int *ret_status, struct err *err)
{
	int status = 0;
	int r = sandbox_end(&d->sandbox, until, &status, err);
	while (d->errors >= 0 && take_errors(d))
		;
	release(d);
	if (r == 0)
		*ret_status = status;
	return r;
}
