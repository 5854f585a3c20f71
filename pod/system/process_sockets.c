#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/process.h"

/* A descriptor that was closed meanwhile is no socket. */
static int socket_inode(int at, const char *name, bool *ret_is, uint64_t *ret_inode)
{
	char text[64];
	ssize_t n = readlinkat(at, name, text, sizeof text - 1);
	if (n < 0)
		return errno == ENOENT || errno == ENAMETOOLONG ? 0 : -errno; /* a socket has a short name */
	text[n] = '\0';
	*ret_is = sscanf(text, "socket:[%" SCNu64 "]", ret_inode) == 1;
	return 0;
}

static int add(struct process_sockets *sockets, uint64_t inode)
{
	if ((sockets->n & (sockets->n - 1)) == 0) {
		uint64_t *grown = realloc(sockets->v, (sockets->n ? 2 * sockets->n : 1) * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		sockets->v = grown;
	}
	sockets->v[sockets->n++] = inode;
	return 0;
}

int process_sockets_read(const struct process *process, struct process_sockets *ret_sockets)
{
	AUTO_CLOSE int directory = process_open(process);
	return directory < 0 ? directory : process_sockets_below(directory, ret_sockets);
}

int process_sockets_below(int directory, struct process_sockets *ret_sockets)
{
	int fd = openat(directory, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *fds = fd < 0 ? NULL : fdopendir(fd);
	if (!fds) {
		int r = -errno;
		close_quietly(fd);
		return r == -ENOENT ? -ESRCH : r;
	}
	struct process_sockets sockets = {0};
	const struct dirent *entry;
	int r;
	while ((r = listing_next(fds, &entry)) > 0) {
		bool is_socket = false;
		uint64_t inode = 0;
		r = socket_inode(fd, entry->d_name, &is_socket, &inode);
		if (r == 0 && is_socket)
			r = add(&sockets, inode);
		if (r < 0)
			break;
	}
	(void)closedir(fds);
	if (r < 0) {
		free(sockets.v);
		return r == -ENOENT ? -ESRCH : r;
	}
	*ret_sockets = sockets;
	return 0;
}
