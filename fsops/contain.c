#include "fsops/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/contain_child.h"
#include "fsops/contain_walk.h"

struct question {
	const char *path;
	const struct contain_seal *seal;
	char folded[CONTAIN_PATH_MAX], folded_seal[CONTAIN_PATH_MAX];
	struct contain_place at, seal_at;
};

static struct contain_answer answer(enum contain_cause cause, const char *format, ...) __attribute__((format(printf, 2, 3)));
static struct contain_answer answer(enum contain_cause cause, const char *format, ...)
{
	struct contain_answer ret = {.cause = cause};
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(ret.detail, sizeof ret.detail, format, arguments);
	va_end(arguments);
	return ret;
}

static bool has_identity(const struct contain_place *at, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < at->depth; i++)
		if (at->chain[i].dev == dev && at->chain[i].ino == ino)
			return true;
	return false;
}

static struct contain_answer judge(struct question *q)
{
	const struct contain_place *at = &q->at, *seal = &q->seal_at;
	contain_walk(q->path, &q->at);
	if (at->cause != CONTAIN_CLEAR)
		return answer(at->cause, "%s", at->detail);
	if (q->seal->pin && has_identity(at, q->seal->pin->dev, q->seal->pin->ino))
		return answer(CONTAIN_SEALED, "%s", "");
	contain_walk(q->seal->path, &q->seal_at);
	if (seal->cause != CONTAIN_CLEAR)
		return answer(CONTAIN_CHECK_FAILED, "the sealed directory: %.120s", *seal->detail ? seal->detail : contain_cause_name(seal->cause));
	if (contain_text_below(at->text, seal->text) || contain_text_below(at->text, q->folded_seal) || contain_text_below(q->folded, seal->text))
		return answer(CONTAIN_SEALED, "%s", "");
	const struct contain_identity *last = &seal->chain[seal->depth - 1];
	if (!seal->missing && has_identity(at, last->dev, last->ino))
		return answer(CONTAIN_SEALED, "%s", "");
	return answer(CONTAIN_CLEAR, "%s", "");
}

/* Nothing of ours stays open in the child: it may be stuck in the kernel for as long as the file system likes. */
static void look(struct question *q, int to)
{
	contain_child_close_others(to);
	struct contain_answer found = judge(q);
	ssize_t n = write(to, &found, sizeof found);
	_exit(n == (ssize_t)sizeof found ? 0 : 1);
}

static struct contain_answer await(int from, struct deadline until)
{
	struct contain_answer found;
	struct pollfd p = {.fd = from, .events = POLLIN};
	int r;
	do
		r = poll(&p, 1, deadline_poll_ms(until));
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return answer(CONTAIN_CHECK_FAILED, "the file system does not answer");
	if (r < 0 || read(from, &found, sizeof found) != (ssize_t)sizeof found)
		return answer(CONTAIN_CHECK_FAILED, "the look at the file system broke off");
	return found;
}

static struct contain_answer ask(struct question *q, struct deadline until)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return answer(CONTAIN_CHECK_FAILED, "no pipe: %s", strerrordesc_np(errno));
	AUTO_CLOSE int from = ends[0], to = ends[1];
	pid_t child = fork();
	if (child < 0)
		return answer(CONTAIN_CHECK_FAILED, "no process: %s", strerrordesc_np(errno));
	if (child == 0)
		look(q, to);
	AUTO_CLOSE int watch = contain_child_watch(child);
	close_quietly(take_fd(&to));
	struct contain_answer found = await(from, until);
	contain_child_end(child, watch);
	return found;
}

struct contain_answer contain_check(const char *path, const struct contain_seal *seal, struct deadline until)
{
	size_t len = strlen(path);
	enum contain_cause cause = contain_text(path, len);
	if (cause != CONTAIN_CLEAR)
		return answer(cause, "%s", "");
	if (contain_text(seal->path, strlen(seal->path)) != CONTAIN_CLEAR)
		return answer(CONTAIN_CHECK_FAILED, "the sealed directory: %s", "not an absolute path");
	AUTO_FREE struct question *q = malloc(sizeof *q);
	if (!q)
		return answer(CONTAIN_CHECK_FAILED, "out of memory");
	q->path = path;
	q->seal = seal;
	contain_text_fold(path, q->folded);
	contain_text_fold(seal->path, q->folded_seal);
	if (contain_text_below(q->folded, q->folded_seal))
		return answer(CONTAIN_SEALED, "%s", "");
	return ask(q, until);
}
