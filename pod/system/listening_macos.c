/* TCP listeners of the processes that we may look into, from libproc: there is no list of all. The kernel's address of a socket stands for its
 * inode number. A listener of another user is not seen; a port that is taken by one still shows when it is bound. */
#include <arpa/inet.h>
#include <errno.h>
#include <libproc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/proc_info.h>

#include "fsops/cleanup.h"
#include "pod/system/network.h"
#include "pod/system/process.h"

struct found {
	struct listening *v;
	size_t n, room;
};

/* Would it answer on 127.0.0.1? */
static bool is_reachable(const struct in_sockinfo *in)
{
	if (in->insi_vflag & INI_IPV4) {
		in_addr_t address = in->insi_laddr.ina_46.i46a_addr4.s_addr;
		return address == htonl(INADDR_ANY) || address == htonl(INADDR_LOOPBACK);
	}
	return IN6_IS_ADDR_UNSPECIFIED(&in->insi_laddr.ina_6);
}

static int add(struct found *found, const struct socket_info *socket, uid_t uid)
{
	const struct in_sockinfo *in = &socket->soi_proto.pri_tcp.tcpsi_ini;
	if (socket->soi_kind != SOCKINFO_TCP || socket->soi_proto.pri_tcp.tcpsi_state != TSI_S_LISTEN || !is_reachable(in))
		return 0;
	if (found->n == found->room) {
		size_t room = found->room ? 2 * found->room : 16;
		struct listening *grown = realloc(found->v, room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		found->v = grown;
		found->room = room;
	}
	found->v[found->n++] = (struct listening){.port = ntohs((uint16_t)in->insi_lport), .uid = uid, .inode = socket->soi_so};
	return 0;
}

static int add_of(struct found *found, pid_t pid)
{
	struct proc_bsdinfo who;
	int bytes = proc_pidinfo(pid, PROC_PIDLISTFDS, 0, NULL, 0);
	if (bytes <= 0 || proc_pidinfo(pid, PROC_PIDTBSDINFO, 0, &who, sizeof who) != (int)sizeof who)
		return 0;
	AUTO_FREE struct proc_fdinfo *fds = malloc((size_t)bytes);
	if (!fds)
		return -ENOMEM;
	bytes = proc_pidinfo(pid, PROC_PIDLISTFDS, 0, fds, bytes);
	int r = 0;
	for (size_t i = 0; r == 0 && bytes > 0 && i < (size_t)bytes / sizeof *fds; i++) {
		struct socket_fdinfo info;
		if (fds[i].proc_fdtype == PROX_FDTYPE_SOCKET &&
		    proc_pidfdinfo(pid, fds[i].proc_fd, PROC_PIDFDSOCKETINFO, &info, sizeof info) == (int)sizeof info)
			r = add(found, &info.psi, who.pbi_uid);
	}
	return r;
}

static int by_port(const void *a, const void *b)
{
	return ((const struct listening *)a)->port - ((const struct listening *)b)->port;
}

int listening_from_proc(struct listening **ret_v, size_t *ret_count, struct err *err)
{
	AUTO_PROCESSES struct process_list all = {0};
	struct found found = {0};
	int r = process_scan(&all, err);
	for (size_t i = 0; r == 0 && i < all.n; i++)
		if (add_of(&found, all.v[i].pid) < 0)
			r = err_code(err, -ENOMEM, "listeners", NULL);
	if (r < 0) {
		free(found.v);
		return r;
	}
	if (found.n)
		qsort(found.v, found.n, sizeof *found.v, by_port);
	*ret_v = found.v;
	*ret_count = found.n;
	return 0;
}

/* The first source that is asked. */
int listening_from_sock_diag(int port, struct listening **ret_v, size_t *ret_count, struct err *err)
{
	(void)port;
	return listening_from_proc(ret_v, ret_count, err);
}
