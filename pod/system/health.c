#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fsops/cleanup.h"
#include "pod/model/http.h"
#include "pod/system/network.h"

#define ANSWER_MAX (64U << 10)
#define REQUEST_MAX 4096
#define AT_ONCE 512

enum step { STEP_CONNECT, STEP_SEND, STEP_READ };

struct conversation {
	struct health_question *question;
	enum step step;
	char request[REQUEST_MAX];
	size_t request_len, sent, received;
	struct http_status_reader reader;
};

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool end(struct conversation *conversation, enum health_answer answer, int status)
{
	conversation->question->result = (struct health_result){answer, status};
	return true;
}

/* A port in the ephemeral range where nobody listens may connect to itself. */
static bool talks_to_itself(int fd, int port)
{
	struct sockaddr_in own;
	socklen_t len = sizeof own;
	return getsockname(fd, (struct sockaddr *)&own, &len) == 0 && ntohs(own.sin_port) == port;
}

/* The steps return whether the conversation has ended. */
static bool connected(struct conversation *conversation, int fd)
{
	int error = 0;
	socklen_t len = sizeof error;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error == ECONNREFUSED || (!error && talks_to_itself(fd, conversation->question->port)))
		return end(conversation, HEALTH_REFUSED_CONNECTION, 0);
	if (error)
		return end(conversation, HEALTH_NO_ANSWER, 0);
	if (conversation->question->health.kind == HEALTH_TCP)
		return end(conversation, HEALTH_OK, 0);
	conversation->step = STEP_SEND;
	return false;
}

static bool send_some(struct conversation *conversation, int fd)
{
	ssize_t n = send(fd, conversation->request + conversation->sent, conversation->request_len - conversation->sent, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? false : end(conversation, HEALTH_NO_ANSWER, 0);
	conversation->sent += (size_t)n;
	if (conversation->sent == conversation->request_len)
		conversation->step = STEP_READ;
	return false;
}

static bool healthy(const struct health *health, int status)
{
	return health->kirocrew ? status == 200 || status == 401 || status == 403 : status >= 200 && status <= 399;
}

static bool end_with_status(struct conversation *conversation)
{
	int status = conversation->reader.status;
	return end(conversation, healthy(&conversation->question->health, status) ? HEALTH_OK : HEALTH_BAD_STATUS, status);
}

static bool read_some(struct conversation *conversation, int fd)
{
	char bytes[4096];
	ssize_t n = recv(fd, bytes, sizeof bytes, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
		return end(conversation, conversation->received ? HEALTH_GARBAGE : HEALTH_NO_ANSWER, 0);
	conversation->received += (size_t)n;
	switch (http_status_feed(&conversation->reader, bytes, (size_t)n)) {
	case HTTP_STATUS:
		return end_with_status(conversation);
	case HTTP_GARBAGE:
		return end(conversation, HEALTH_GARBAGE, 0);
	case HTTP_MORE:
		break;
	}
	return conversation->received > ANSWER_MAX ? end(conversation, HEALTH_GARBAGE, 0) : false;
}

static bool proceed(struct conversation *conversation, int fd)
{
	switch (conversation->step) {
	case STEP_CONNECT:
		return connected(conversation, fd);
	case STEP_SEND:
		return send_some(conversation, fd);
	case STEP_READ:
		return read_some(conversation, fd);
	}
	return true;
}

/* What is being asked now: polls[i] belongs to v[i]. */
struct asking {
	struct conversation *v;
	struct pollfd *polls;
	size_t n, room;
};

static void asking_free(struct asking *asking)
{
	for (size_t i = 0; i < asking->n; i++)
		close_quietly(asking->polls[i].fd);
	free(asking->v);
	free(asking->polls);
}

/* 1: begun (or answered at once); 0: no descriptor is free until another conversation has ended. */
static int begin(struct asking *asking, struct health_question *question)
{
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return (errno == EMFILE || errno == ENFILE) && asking->n ? 0 : -errno;
	struct conversation *conversation = &asking->v[asking->n];
	*conversation = (struct conversation){.question = question};
	if (question->health.kind == HEALTH_HTTP) {
		conversation->request_len =
		    http_request(question->health.path, question->port, conversation->request, sizeof conversation->request);
		if (!conversation->request_len)
			return 1; /* a path that cannot be asked for is not answered */
	}
	struct sockaddr_in address = loopback(question->port);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EINPROGRESS) {
		(void)end(conversation, errno == ECONNREFUSED ? HEALTH_REFUSED_CONNECTION : HEALTH_NO_ANSWER, 0);
		return 1;
	}
	asking->polls[asking->n++].fd = take_fd(&fd);
	return 1;
}

static void finish(struct asking *asking, size_t i)
{
	close_quietly(asking->polls[i].fd);
	asking->n--;
	if (i != asking->n) {
		asking->v[i] = asking->v[asking->n];
		asking->polls[i] = asking->polls[asking->n];
	}
}

static int round_of_polls(struct asking *asking, struct deadline until)
{
	for (size_t i = 0; i < asking->n; i++) {
		asking->polls[i].events = asking->v[i].step == STEP_READ ? POLLIN : POLLOUT;
		asking->polls[i].revents = 0;
	}
	int r = poll(asking->polls, (nfds_t)asking->n, deadline_poll_ms(until));
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t i = asking->n; i-- > 0;)
		if (asking->polls[i].revents && proceed(&asking->v[i], asking->polls[i].fd))
			finish(asking, i);
	return 0;
}

/* The next question that needs the network. */
static size_t skip_unasked(struct health_question *questions, size_t count, size_t next)
{
	while (next < count && questions[next].health.kind == HEALTH_NONE)
		next++;
	return next;
}

int health_ask(struct health_question *questions, size_t count, struct deadline until, struct err *err)
{
	size_t room = count < AT_ONCE ? count : AT_ONCE;
	CLEANUP(asking_free)
	struct asking asking = {.v = calloc(room + 1, sizeof *asking.v), .polls = calloc(room + 1, sizeof *asking.polls), .room = room};
	if (!asking.v || !asking.polls)
		return err_code(err, -ENOMEM, "health", NULL);
	for (size_t i = 0; i < count; i++) /* until told otherwise */
		questions[i].result =
		    (struct health_result){questions[i].health.kind == HEALTH_NONE ? HEALTH_NOT_ASKED : HEALTH_NO_ANSWER, 0};
	size_t next = skip_unasked(questions, count, 0);
	do {
		int r = 1;
		while (r == 1 && next < count && asking.n < asking.room)
			if ((r = begin(&asking, &questions[next])) == 1)
				next = skip_unasked(questions, count, next + 1);
		if (r >= 0 && asking.n)
			r = round_of_polls(&asking, until);
		if (r < 0)
			return err_code(err, r, "health", NULL);
	} while ((asking.n || next < count) && !deadline_passed(until));
	return 0;
}
