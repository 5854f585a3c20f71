#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fsops/cleanup.h"
#include "pod/system/network.h"

#define ANSWER_BYTES 65536 /* a dump comes in messages of at most 32 KiB */

struct found {
	struct listening *v;
	size_t n, room;
};

static int ask(int fd, int family, int port)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {
	    .header = {.nlmsg_len = sizeof message, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	    .request = {.sdiag_family = (uint8_t)family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1U << TCP_LISTEN,
			.id.idiag_sport = htons((uint16_t)port)},
	};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	return sendto(fd, &message, sizeof message, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0 ? -errno : 0;
}

/* Would a connection to 127.0.0.1 reach it? An IPv6 socket speaks IPv4 when it is bound to [::] and not IPv6 only, or to a mapped address.
 */
static bool answers_loopback(const struct inet_diag_msg *message, bool v6_only)
{
	const uint32_t *source = message->id.idiag_src;
	if (message->id.idiag_if && message->id.idiag_if != if_nametoindex("lo"))
		return false;
	if (message->idiag_family == AF_INET)
		return source[0] == htonl(INADDR_ANY) || source[0] == htonl(INADDR_LOOPBACK);
	if (source[0] || source[1])
		return false;
	if (source[2] == htonl(0xffff))
		return source[3] == htonl(INADDR_ANY) || source[3] == htonl(INADDR_LOOPBACK);
	return !source[2] && !source[3] && !v6_only;
}

static int found_add(struct found *found, const struct listening *listening)
{
	if (found->n == found->room) {
		size_t room = found->room ? 2 * found->room : 64;
		struct listening *grown = realloc(found->v, room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		found->v = grown;
		found->room = room;
	}
	found->v[found->n++] = *listening;
	return 0;
}

static int take_message(const struct nlmsghdr *header, struct found *found)
{
	const struct inet_diag_msg *message = NLMSG_DATA(header);
	struct listening listening = {.port = ntohs(message->id.idiag_sport), .uid = message->idiag_uid, .inode = message->idiag_inode};
	bool v6_only = false;
	if (header->nlmsg_len < NLMSG_LENGTH(sizeof *message))
		return -EBADMSG;
	size_t left = header->nlmsg_len - NLMSG_LENGTH(sizeof *message);
	for (const struct rtattr *attribute = (const struct rtattr *)(message + 1); RTA_OK(attribute, left);
	     attribute = RTA_NEXT(attribute, left)) {
		if (attribute->rta_type == INET_DIAG_CGROUP_ID && RTA_PAYLOAD(attribute) >= sizeof listening.cgroup)
			memcpy(&listening.cgroup, RTA_DATA(attribute), sizeof listening.cgroup);
		if (attribute->rta_type == INET_DIAG_SKV6ONLY && RTA_PAYLOAD(attribute) >= 1)
			v6_only = *(const uint8_t *)RTA_DATA(attribute);
	}
	return answers_loopback(message, v6_only) ? found_add(found, &listening) : 0;
}

/* What the kernel says at a dump's end: 0, or why it could not be made. */
static int code_of_end(const struct nlmsghdr *header)
{
	int code = 0;
	if (header->nlmsg_len >= NLMSG_LENGTH(sizeof code))
		memcpy(&code, NLMSG_DATA(header), sizeof code);
	return code < 0 ? code : 0;
}

/* 1: more to come; 0: the dump is complete. */
static int take_answer(const char *bytes, size_t len, struct found *found)
{
	for (const struct nlmsghdr *header = (const struct nlmsghdr *)(const void *)bytes; NLMSG_OK(header, len);
	     header = NLMSG_NEXT(header, len)) {
		if (header->nlmsg_type == NLMSG_DONE)
			return code_of_end(header);
		if (header->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *error = NLMSG_DATA(header);
			return header->nlmsg_len >= NLMSG_LENGTH(sizeof *error) && error->error < 0 ? error->error : -EBADMSG;
		}
		int r = header->nlmsg_type == SOCK_DIAG_BY_FAMILY ? take_message(header, found) : 0;
		if (r < 0)
			return r;
	}
	return 1;
}

/* The kernel puts the next part into the queue before it lets go of the last: an empty queue is a broken dump, not a wait. */
static int dump(int fd, int family, int port, struct found *found)
{
	AUTO_FREE char *bytes = malloc(ANSWER_BYTES);
	if (!bytes)
		return -ENOMEM;
	int r = ask(fd, family, port);
	if (r < 0)
		return r;
	do {
		ssize_t n = recv(fd, bytes, ANSWER_BYTES, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0)
			return -errno;
		if (n > ANSWER_BYTES)
			return -EMSGSIZE;
		r = take_answer(bytes, (size_t)n, found);
	} while (r == 1);
	return r;
}

int listening_from_sock_diag(int port, struct listening **ret_v, size_t *ret_count, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct found found = {0};
	int r = fd < 0 ? -errno : dump(fd, AF_INET, port, &found);
	int without_v6 = r == 0 ? dump(fd, AF_INET6, port, &found) : 0;
	if (without_v6 != -ENOENT) /* which says that this kernel has no IPv6; of IPv4, that it cannot be asked */
		r = r < 0 ? r : without_v6;
	if (r < 0) {
		free(found.v);
		return err_code(err, r, "sock_diag", NULL);
	}
	*ret_v = found.v;
	*ret_count = found.n;
	return 0;
}
