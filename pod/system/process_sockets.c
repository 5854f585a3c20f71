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

/* Called for each socket: 1 enough, 0 go on. */
typedef int take_socket(void *context, uint64_t inode);

static int each_socket(int directory, take_socket *take, void *context)
{
	int fd = openat(directory, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *fds = fd < 0 ? NULL : fdopendir(fd);
	if (!fds) {
		int r = -errno;
		close_quietly(fd);
		return r == -ENOENT ? -ESRCH : r;
	}
	const struct dirent *entry;
	int r, enough = 0;
	while (!enough && (r = listing_next(fds, &entry)) > 0) {
		bool is_socket = false;
		uint64_t inode = 0;
		r = socket_inode(fd, entry->d_name, &is_socket, &inode);
		if (r == 0 && is_socket)
			r = enough = take(context, inode);
		if (r < 0)
			break;
	}
	(void)closedir(fds);
	return r == -ENOENT ? -ESRCH : r < 0 ? r : 0;
}

static int add_socket(void *context, uint64_t inode)
{
	return add(context, inode);
}

int process_sockets_read(const struct process *process, struct process_sockets *ret_sockets)
{
	struct process_sockets sockets = {0};
	AUTO_CLOSE int directory = process_open(process);
	int r = directory < 0 ? directory : each_socket(directory, add_socket, &sockets);
	if (r < 0) {
		free(sockets.v);
		return r;
	}
	*ret_sockets = sockets;
	return 0;
}

struct search {
	uint64_t inode;
	bool found;
};

static int is_it(void *context, uint64_t inode)
{
	struct search *search = context;
	return search->found = inode == search->inode;
}

int process_has_socket(int directory, uint64_t inode, bool *ret_has)
{
	struct search search = {.inode = inode};
	int r = each_socket(directory, is_it, &search);
	if (r == 0)
		*ret_has = search.found;
	return r;
}
