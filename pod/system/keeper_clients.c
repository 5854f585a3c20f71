/* Those who ask: each at most one datagram at a time, none is waited for. A caller that does not read what it is told is dropped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/keeper_inner.h"

void keeper_clients_init(struct keeper *keeper)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		keeper->clients[i] = (struct keeper_client){.fd = -1};
}

static void drop(struct keeper_client *client)
{
	close_quietly(client->fd);
	*client = (struct keeper_client){.fd = -1};
}

static void say(struct keeper_client *client, const struct keeper_reply *reply)
{
	char message[KEEPER_MESSAGE_MAX];
	int len = keeper_reply_encode(reply, message);
	if (len < 0 || send(client->fd, message, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		drop(client);
}

static void say_state(const struct keeper *keeper, struct keeper_client *client, enum keeper_answer answer)
{
	struct keeper_reply reply = {.answer = answer};
	keeper_state_tell(keeper, &reply.state);
	say(client, &reply);
}

static void say_no(struct keeper_client *client, int code, const char *text)
{
	struct keeper_reply reply = {.answer = KEEPER_SAYS_NO, .code = code};
	(void)snprintf(reply.text, sizeof reply.text, "%s", text);
	say(client, &reply);
}

/* A free place, else the one of somebody who asked and went on listening without a wish, else of one who only watches: he looks again and comes back. */
static struct keeper_client *place(struct keeper *keeper)
{
	struct keeper_client *idle = NULL;
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct keeper_client *client = &keeper->clients[i];
		if (client->fd < 0)
			return client;
		if (!client->waits && (!idle || idle->watches))
			idle = client;
	}
	if (idle)
		drop(idle);
	return idle;
}

/* Without a descriptor to spare the caller cannot be taken, and the listener would be readable for ever. */
static void turn_away(struct keeper *keeper)
{
	close_quietly(take_fd(&keeper->spare));
	close_quietly(channel_accept(keeper->channel.fd));
	keeper->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void keeper_clients_accept(struct keeper *keeper)
{
	int fd = channel_accept(keeper->channel.fd);
	if (fd == -EMFILE || fd == -ENFILE)
		turn_away(keeper);
	if (fd < 0)
		return;
	struct keeper_client *client = place(keeper);
	if (client)
		*client = (struct keeper_client){.fd = fd};
	else
		close_quietly(fd);
}

static void answer_start(struct keeper *keeper, struct keeper_client *client)
{
	enum unit_active now = keeper_state_active(keeper->state);
	if (now == UNIT_STOPPING || keeper->state == KEEPER_GONE) {
		say_no(client, -EBUSY, "the pod is being stopped");
		return;
	}
	keeper_dispatch(keeper, KEEPER_ON_START);
	if (*keeper->trouble && keeper->state == KEEPER_WAITING)
		say_no(client, -EIO, keeper->trouble);
	else
		say_state(keeper, client, KEEPER_SAYS_STATE);
}

static void answer_guard(struct keeper *keeper, struct keeper_client *client)
{
	struct err why = {0};
	int r = keeper_guard(keeper, &why);
	if (r < 0)
		say_no(client, r, why.text);
	else
		say_state(keeper, client, KEEPER_SAYS_STATE);
}

static void answer(struct keeper *keeper, struct keeper_client *client, const struct keeper_request *request)
{
	switch (request->verb) {
	case KEEPER_ASK_STATUS:
		say_state(keeper, client, KEEPER_SAYS_STATE);
		break;
	case KEEPER_ASK_WATCH:
		client->watches = true;
		say_state(keeper, client, KEEPER_SAYS_STATE);
		break;
	case KEEPER_ASK_START:
		answer_start(keeper, client);
		break;
	case KEEPER_ASK_STOP:
		client->waits = true;
		keeper->grace_ms = request->grace_ms;
		keeper_dispatch(keeper, KEEPER_ON_STOP);
		break;
	case KEEPER_ASK_GUARD:
		answer_guard(keeper, client);
		break;
	case KEEPER_VERBS:
		break;
	}
}

void keeper_client_hear(struct keeper *keeper, struct keeper_client *client)
{
	char message[KEEPER_MESSAGE_MAX];
	struct keeper_request request;
	ssize_t n = recv(client->fd, message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(client);
		return;
	}
	struct err why = {0};
	int r = keeper_request_decode(message, (size_t)n, &request, &why);
	if (r < 0)
		say_no(client, r, why.text);
	else
		answer(keeper, client, &request);
}

void keeper_clients_tell_change(struct keeper *keeper)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (keeper->clients[i].fd >= 0 && keeper->clients[i].watches)
			say_state(keeper, &keeper->clients[i], KEEPER_SAYS_STATE);
}

void keeper_clients_tell_gone(struct keeper *keeper)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		struct keeper_client *client = &keeper->clients[i];
		if (client->fd >= 0 && (client->waits || client->watches))
			say_state(keeper, client, KEEPER_SAYS_GONE);
		if (client->fd >= 0)
			drop(client);
	}
}
