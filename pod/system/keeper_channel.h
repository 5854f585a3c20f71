/* The keeper's socket, from both sides: <pods dir>/<name>.sock, SOCK_SEQPACKET, 0600. It is reached through descriptors only, so that neither the
 * length of the pods dir's path nor a link in its place matters; both ends must belong to the same user. Liveness is an answer, nothing else.
 * unix(7), SO_PEERCRED in socket(7). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/keeper_message.h"
#include "pod/model/name.h"

/* A published socket: the listening descriptor (non-blocking) and the identity of the name. */
struct channel {
	int fd; /* -1 none */
	dev_t dev;
	ino_t ino;
};
#define CHANNEL_NONE ((struct channel){.fd = -1})

/* Listens under the pod's name: published only when it can be connected to, so a socket that refuses belongs to nobody. -EEXIST when the name is
 * taken, by whatever. */
int channel_publish(const struct pin *pods_dir, const struct pod_name *name, struct channel *ret_channel, struct err *err);
/* Is the name still this socket? */
bool channel_is_published(const struct pin *pods_dir, const struct pod_name *name, const struct channel *channel);
/* Takes the name away if it still is; then closes. */
void channel_withdraw(const struct pin *pods_dir, const struct pod_name *name, struct channel *channel);

/* A connection whose other end runs as this user; *ret_keeper is its pid (SO_PEERCRED). Never waits. -ENOENT: no socket. -ECONNREFUSED: a socket
 * that nobody listens on (stale). -ENOTSOCK: something else stands in its place. -EAGAIN: it is there but takes no more callers now. -EPERM:
 * another user's. */
int channel_connect(const struct pin *pods_dir, const struct pod_name *name, pid_t *ret_keeper, struct err *err);

/* Removes a socket of this user that nobody listens on. The caller holds the name lock. A name that is not there is success; what answers is
 * -EADDRINUSE, what is no socket is refused (REFUSAL_UNSAFE_PATH) and left. */
int channel_clean(const struct pin *pods_dir, const struct pod_name *name, struct err *err);

/* The next caller, of this user and close-on-exec, non-blocking; -EAGAIN none, -EPERM another user's (already closed). */
int channel_accept(int listener);

int channel_send(int fd, const struct keeper_request *request, struct err *err);
/* -ETIME at the deadline; -ECONNRESET when the keeper has gone. */
int channel_receive(int fd, struct deadline until, struct keeper_reply *ret_reply, struct err *err);
