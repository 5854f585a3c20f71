#include "cmd/log_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cmd/print.h"
#include "fsops/cleanup.h"

/* print_text takes pieces that fit its buffer when every byte of them is escaped. */
#define PIECE 960

struct pending {
	char bytes[PIECE];
	size_t n;
};

static void print_piece(const char *bytes, size_t len)
{
	while (len) {
		size_t plain = 0;
		while (plain < len && bytes[plain] != '\n' && bytes[plain] != '\t')
			plain++;
		if (plain)
			print_text(bytes, plain);
		if (plain < len)
			print_out("%c", bytes[plain++]);
		bytes += plain;
		len -= plain;
	}
}

/* How much of it ends no character in the middle. */
static size_t whole_characters(const struct pending *p)
{
	size_t n = p->n;
	for (int back = 1; back <= 3 && (size_t)back < p->n; back++) {
		unsigned char byte = (unsigned char)p->bytes[p->n - (size_t)back];
		if (byte >= 0xc0)
			return p->n - (size_t)back;
		if (byte < 0x80)
			break;
	}
	return n;
}

static bool print_pending(struct pending *p, size_t n)
{
	print_piece(p->bytes, n);
	memmove(p->bytes, p->bytes + n, p->n - n);
	p->n -= n;
	return print_flush();
}

/* 1: there is more to read, 0: one of the two ends is gone. */
static int await(int from)
{
	struct pollfd ends[2] = {{.fd = from, .events = POLLIN}, {.fd = STDOUT_FILENO}};
	while (poll(ends, 2, -1) < 0)
		if (errno != EINTR)
			return 0;
	return !(ends[1].revents & (POLLERR | POLLNVAL));
}

static void *run(void *data)
{
	struct log_filter *filter = data;
	struct pending p = {.n = 0};
	ssize_t n = 1;
	while (await(filter->from) && (n = read(filter->from, p.bytes + p.n, sizeof p.bytes - p.n)) > 0) {
		p.n += (size_t)n;
		if (!print_pending(&p, whole_characters(&p)))
			break;
	}
	if (n == 0)
		(void)print_pending(&p, p.n);
	close_quietly(take_fd(&filter->from)); /* the writer's next byte fails */
	return NULL;
}

int log_filter_start(struct log_filter *filter, struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_code(err, -errno, "logs", NULL);
	*filter = (struct log_filter){.from = ends[0], .to = ends[1]};
	int r = pthread_create(&filter->thread, NULL, run, filter);
	if (r == 0)
		return 0;
	close_quietly(ends[0]);
	close_quietly(ends[1]);
	return err_code(err, -r, "logs", NULL);
}

void log_filter_end(struct log_filter *filter)
{
	close_quietly(take_fd(&filter->to));
	(void)pthread_join(filter->thread, NULL);
}
