/* Loopback sockets: whose a port is, whether it is free, and whether a pod answers. sock_diag(7), inet_diag. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fsops/deadline.h"
#include "fsops/err.h"
#include "pod/model/facts.h"
#include "pod/model/port.h"

/* bind test on 127.0.0.1 with SO_REUSEADDR. -EACCES: a port that we may not bind. */
int port_is_free(int port, bool *ret_free, struct err *err);

/* One dump of all TCP listeners (both families) that would answer on 127.0.0.1, asked once and looked up often. From sock_diag, and where
 * that is refused from /proc/net/tcp and tcp6, which tell neither the cgroup nor whether a [::] listener is IPv6 only (it is taken to answer). */
struct listeners;
int listeners_read(int port, struct listeners **ret_listeners, struct err *err); /* only those on that port, 0: all */
void listeners_free(struct listeners **listeners);
#define AUTO_LISTENERS __attribute__((cleanup(listeners_free)))
bool listeners_any(const struct listeners *listeners, int port);

struct listening {
	int port;
	uid_t uid;
	uint64_t inode;
	uint64_t cgroup; /* kernfs id of the cgroup that it was made in, 0 unknown */
};
const struct listening *listeners_on(const struct listeners *listeners, int port, size_t *ret_count); /* borrowed */
size_t listeners_count(const struct listeners *listeners);

/* Both sources, unsorted; malloc'ed. A port other than 0: the kernel is asked for that one only. */
int listening_from_sock_diag(int port, struct listening **ret_v, size_t *ret_count, struct err *err);
int listening_from_proc(struct listening **ret_v, size_t *ret_count, struct err *err);

/* Processes with the socket open, as far as we may see; a process whose descriptors are closed to us holds nothing. All of them are looked for
 * once, when the first is asked for, and kept. Borrowed pids and start times. */
struct socket_holder {
	uint64_t inode, start;
	pid_t pid;
};
int listeners_holders(const struct listeners *listeners, uint64_t inode, const struct socket_holder **ret_v, size_t *ret_count, struct err *err);

/* Whose port: OURS only if every listener on it was made in the group (its creation cgroup is the group's or a descendant's) and is
 * held by a process of the group; without a cgroup, held by the group's processes only. Any other: FOREIGN with its pid where it can be known.
 * A listener made in the group's cgroup is ours, too, when all we lack is the right to look into a member. UNKNOWN: a listener of this user
 * that nobody holds whom we may see (it has just been closed, or its process is not dumpable). */
int listener_of(const struct listeners *listeners, int port, const struct unit_group *group, struct listener *ret_listener, struct err *err);

/* Health of many pods at once within the deadline; each answer bounded in time and bytes. Only 127.0.0.1. Connected, for tcp, or for
 * http: status 200, 401, 403 of a KiroCrew gateway, any 2xx or 3xx of another. NO_ANSWER: silent until the deadline, or closed without a word.
 * An error is returned only when nothing could be asked. */
struct health_question {
	struct health health;
	int port;
	struct health_result result;
};
int health_ask(struct health_question *questions, size_t count, struct deadline until, struct err *err);
