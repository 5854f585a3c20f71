#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/network.h"
#include "pod/system/process.h"

/* Made by the first of the threads that asks for it. */
struct holder_index {
	pthread_mutex_t lock;
	bool made;
	struct socket_holder *v;
	size_t n, room;
};

struct listeners {
	struct listening *v; /* by port */
	size_t n;
	struct holder_index *holders;
};

static int by_port(const void *a, const void *b)
{
	const struct listening *left = a, *right = b;
	if (left->port != right->port)
		return left->port < right->port ? -1 : 1;
	return (left->inode > right->inode) - (left->inode < right->inode);
}

/* A dump that runs beside changes may tell a socket twice. */
static size_t sort_once(struct listening *v, size_t n)
{
	size_t kept = n ? 1 : 0;
	if (n)
		qsort(v, n, sizeof *v, by_port);
	for (size_t i = 1; i < n; i++)
		if (by_port(&v[i], &v[kept - 1]))
			v[kept++] = v[i];
	return kept;
}

int listeners_read(int port, struct listeners **ret_listeners, struct err *err)
{
	AUTO_LISTENERS struct listeners *listeners = calloc(1, sizeof *listeners);
	if (!listeners || !(listeners->holders = calloc(1, sizeof *listeners->holders)))
		return err_code(err, -ENOMEM, "listeners", NULL);
	(void)pthread_mutex_init(&listeners->holders->lock, NULL);
	struct err why = {0};
	int r = listening_from_sock_diag(port, &listeners->v, &listeners->n, &why);
	if (r < 0 && r != -ENOMEM)
		r = listening_from_proc(&listeners->v, &listeners->n, err);
	if (r < 0)
		return r == -ENOMEM ? err_code(err, r, "listeners", NULL) : err_prepend(err, "sock_diag is refused (%s)", why.text);
	listeners->n = sort_once(listeners->v, listeners->n);
	*ret_listeners = TAKE_PTR(listeners);
	return 0;
}

void listeners_free(struct listeners **slot)
{
	struct listeners *listeners = *slot;
	if (!listeners)
		return;
	if (listeners->holders) {
		(void)pthread_mutex_destroy(&listeners->holders->lock);
		free(listeners->holders->v);
	}
	free(listeners->holders);
	free(listeners->v);
	free(listeners);
	*slot = NULL;
}

static size_t first_on(const struct listeners *listeners, int port)
{
	size_t low = 0, high = listeners->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (listeners->v[middle].port < port)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct listening *listeners_on(const struct listeners *listeners, int port, size_t *ret_count)
{
	size_t first = first_on(listeners, port);
	*ret_count = first_on(listeners, port + 1) - first;
	return listeners->v ? listeners->v + first : NULL;
}

bool listeners_any(const struct listeners *listeners, int port)
{
	size_t count;
	(void)listeners_on(listeners, port, &count);
	return count > 0;
}

size_t listeners_count(const struct listeners *listeners)
{
	return listeners->n;
}

static int by_number(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
	return (left > right) - (left < right);
}

static int by_inode(const void *a, const void *b)
{
	const struct socket_holder *left = a, *right = b;
	return by_number(&left->inode, &right->inode);
}

static int index_add(struct holder_index *index, const struct process *process, uint64_t inode)
{
	if (index->n == index->room) {
		size_t room = index->room ? 2 * index->room : 64;
		struct socket_holder *grown = realloc(index->v, room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		index->v = grown;
		index->room = room;
	}
	index->v[index->n++] = (struct socket_holder){.inode = inode, .pid = process->pid, .start = process->start};
	return 0;
}

/* Of all sockets in the world only the listening ones are kept. `inodes` is sorted. */
static int index_process(struct holder_index *index, const struct process *process, const uint64_t *inodes, size_t count)
{
	struct process_sockets sockets = {0};
	int r = process_sockets_read(process, &sockets);
	for (size_t i = 0; r == 0 && i < sockets.n; i++)
		if (bsearch(&sockets.v[i], inodes, count, sizeof *inodes, by_number))
			r = index_add(index, process, sockets.v[i]);
	free(sockets.v);
	return r == -ESRCH || r == -EACCES ? 0 : r;
}

static int index_make(const struct listeners *listeners, struct err *err)
{
	struct holder_index *index = listeners->holders;
	AUTO_PROCESSES struct process_list all = {0};
	AUTO_FREE uint64_t *inodes = calloc(listeners->n + 1, sizeof *inodes);
	if (!inodes)
		return err_code(err, -ENOMEM, "listeners", NULL);
	for (size_t i = 0; i < listeners->n; i++)
		inodes[i] = listeners->v[i].inode;
	qsort(inodes, listeners->n, sizeof *inodes, by_number);
	int r = process_scan(&all, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < all.n; i++)
		r = index_process(index, &all.v[i], inodes, listeners->n);
	if (r < 0)
		return err_code(err, r, "listeners", "/proc");
	if (index->n)
		qsort(index->v, index->n, sizeof *index->v, by_inode);
	index->made = true;
	return 0;
}

int listeners_holders(const struct listeners *listeners, uint64_t inode, const struct socket_holder **ret_v, size_t *ret_count,
		      struct err *err)
{
	struct holder_index *index = listeners->holders;
	(void)pthread_mutex_lock(&index->lock);
	int r = index->made ? 0 : index_make(listeners, err);
	(void)pthread_mutex_unlock(&index->lock);
	if (r < 0)
		return r;
	size_t low = 0, high = index->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (index->v[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	size_t count = 0;
	while (low + count < index->n && index->v[low + count].inode == inode)
		count++;
	*ret_v = index->v ? index->v + low : NULL;
	*ret_count = count;
	return 0;
}
