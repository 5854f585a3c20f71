/* A start: an answering keeper is asked, else one is made and waited for. The caller holds the name lock, so nobody else does the same. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/model/environment.h"
#include "pod/system/embedded.h"
#include "pod/system/keeper.h"
#include "pod/system/logfile.h"
#include "pod/system/spawn.h"

#define DEAF_MS 1000 /* in which a keeper has made its first start, heard or not */

/* The plane as this process has resolved it, so that another directory or HOME cannot change it in the keeper. NULL: unset. */
static const char *plane_value(const struct plane *plane, enum plane_setting setting, char number[16])
{
	int value = -1;
	const char *text = NULL;
	switch (setting) {
	case PLANE_ROOT: text = plane->root; break;
	case PLANE_ENV_DIR: text = plane->pods_dir; break;
	case PLANE_ARTIFACTS_DIR: text = plane->artifacts; break;
	case PLANE_BASE_PORT: value = plane->base_port; break;
	case PLANE_PORT_SPAN: value = plane->port_span; break;
	case PLANE_LIVE_PORT: value = plane->live_port; break;
	case PLANE_UNIT_PREFIX: text = plane->prefix; break;
	case PLANE_PATH: text = plane->path; break;
	case PLANE_REPO: text = plane->repo; break;
	case PLANE_WORKTREES_ROOT: text = plane->worktrees_root; break;
	case PLANE_HEALTH_SECS: value = plane->health_secs; break;
	case PLANE_KIRO_BIN: text = plane->kiro_bin; break;
	case PLANE_BACKEND: text = backend_name(plane->backend); break;
	case PLANE_SETTINGS: break;
	}
	if (value >= 0) {
		(void)snprintf(number, 16, "%d", value);
		return number;
	}
	return text && *text ? text : NULL;
}

static int keeper_environment(const struct plane *plane, int report, struct environment *ret, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	char number[16];
	int r = environment_copy(environ, &environment, err);
	for (int setting = 0; r == 0 && setting < PLANE_SETTINGS; setting++) {
		const char *value = plane_value(plane, (enum plane_setting)setting, number);
		if (value)
			r = environment_set(&environment, plane_settings[setting].variable, value, err);
		else
			environment_unset(&environment, plane_settings[setting].variable);
	}
	if (r < 0)
		return r;
	/* `up` may run inside another pod: its marks are not this pod's. */
	environment_unset(&environment, KEEPER_ENV_KEEPER);
	environment_unset(&environment, KEEPER_ENV_ID);
	environment_unset(&environment, KEEPER_ENV_INVOCATION);
	(void)snprintf(number, sizeof number, "%d", report);
	r = environment_set(&environment, KEEPER_ENV_REPORT, number, err);
	if (r < 0)
		return r;
	*ret = environment;
	environment = (struct environment){0};
	return 0;
}

static int spawn_keeper(const struct embedded *e, const struct pod_name *name, int log, int report, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	int r = keeper_environment(e->context.plane, report, &environment, err);
	if (r < 0)
		return r;
	const char *with[] = {e->context.program, "--config", e->context.config_file, "_keep", name->text, NULL};
	const char *without[] = {e->context.program, "_keep", name->text, NULL};
	struct spawn request = SPAWN_DEFAULT;
	request.program = e->context.program;
	request.argv = (char *const *)(e->context.config_file ? with : without);
	request.envp = environment.v;
	request.cwd = "/";
	request.stdio[1] = request.stdio[2] = log;
	request.keep = &report;
	request.keep_count = 1;
	request.daemon = true;
	struct spawned spawned;
	return spawn(&request, &spawned, err);
}

/* 1: there is more to come. 0: that was its end. */
static int read_some(int fd, char *message, size_t size, size_t *len, struct deadline until)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};
	int ready = poll(&wanted, 1, deadline_poll_ms(until));
	ssize_t n = ready > 0 ? read(fd, message + *len, size - *len) : -1;
	if (n > 0)
		*len += (size_t)n;
	if (n >= 0)
		return n > 0;
	return ready == 0 ? -ETIME : -errno;
}

static int ended_early(const struct pod_name *name, struct err *err)
{
	return err_set(err, -ECHILD, "keeper", name->text, "the keeper ended before it had made a start; its log says why");
}

/* One message and the end of the file, or the deadline. Who cannot listen tries again: the keeper has begun, and left alone it would be met by what the
 * caller does next. */
static int read_report(int fd, const struct pod_name *name, struct deadline until, struct keeper_reply *ret_reply, struct err *err)
{
	char message[KEEPER_MESSAGE_MAX];
	struct deadline deaf_until = until;
	bool deaf = false;
	struct backoff backoff = {0};
	size_t len = 0;
	int r = 1;
	while (r != 0) {
		r = read_some(fd, message, sizeof message, &len, until);
		if (r == -ETIME)
			return err_set(err, -ETIME, "keeper", name->text, "the keeper has not made its first start in time");
		if (r >= 0 || r == -EINTR)
			continue;
		if (r == -ECONNRESET)
			return r;
		if (!deaf)
			deaf_until = deadline_earlier(until, deadline_in_ms(DEAF_MS));
		deaf = true;
		if (deadline_passed(deaf_until))
			return err_code(err, r, "keeper", name->text);
		backoff_sleep(&backoff, deaf_until);
	}
	if (len == 0)
		return ended_early(name, err);
	return keeper_reply_decode(message, len, ret_reply, err);
}

/* A keeper that waits for the word to go on, and the connection for that and for its report. What it says before is lost without a log (-1). */
static int make_waiting(const struct embedded *e, const struct pod_name *name, int log, int *ret_fd, struct err *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_code(err, -errno, "keeper", name->text);
	AUTO_CLOSE int ours = ends[0];
	AUTO_CLOSE int low = ends[1];
	AUTO_CLOSE int its = fcntl(low, F_DUPFD_CLOEXEC, 3); /* 0 to 2 may have been free */
	if (its < 0)
		return err_code(err, -errno, "keeper", name->text);
	int r = spawn_keeper(e, name, log, its, err);
	if (r == 0)
		*ret_fd = take_fd(&ours);
	return r;
}

/* -ECONNRESET: it ended without having heard the word, so there was no start. */
static int let_go(int fd, const struct pod_name *name, struct deadline until, struct keeper_reply *ret_reply, struct err *err)
{
	ssize_t n;
	do
		n = send(fd, "", 1, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EPIPE || errno == ECONNRESET ? -ECONNRESET : err_code(err, -errno, "keeper", name->text);
	return read_report(fd, name, until, ret_reply, err);
}

static int make_keeper(struct embedded *e, const struct pod_name *name, struct deadline until, struct keeper_reply *ret_reply, struct err *err)
{
	AUTO_CLOSE int prepared = take_fd(&e->prepared);
	int r = prepared >= 0 ? let_go(prepared, name, until, ret_reply, err) : -ECONNRESET;
	if (r != -ECONNRESET)
		return r;
	AUTO_CLOSE int log = -1;
	AUTO_CLOSE int fd = -1;
	r = logfile_begin(e->context.plane, name, &log, err);
	if (r == 0)
		r = make_waiting(e, name, log, &fd, err);
	if (r == 0)
		r = let_go(fd, name, until, ret_reply, err);
	return r == -ECONNRESET ? ended_early(name, err) : r;
}

void embedded_prepare(struct service *service, const struct pod_name *name)
{
	struct embedded *e = embedded_of(service);
	embedded_dismiss(e);
	(void)make_waiting(e, name, SPAWN_NULL, &e->prepared, NULL);
}

/* Returns when it has ended. */
void embedded_dismiss(struct embedded *e)
{
	AUTO_CLOSE int fd = take_fd(&e->prepared);
	struct pollfd its_end = {.fd = fd, .events = POLLIN};
	if (fd >= 0 && shutdown(fd, SHUT_WR) == 0)
		(void)poll(&its_end, 1, DEAF_MS);
}

/* A keeper that was there, or none and nothing of an earlier one in the way (-ENOENT). */
static int ask_for_start(struct embedded *e, const struct pod_name *name, struct deadline until, struct keeper_reply *ret_reply, struct err *err)
{
	struct keeper_request request = {.verb = KEEPER_ASK_START};
	struct backoff backoff = {0};
	for (;;) {
		pid_t keeper = 0;
		struct err why = {0};
		int r = embedded_ask(e, name, &request, until, ret_reply, &keeper, &why);
		bool busy = r == 0 && ret_reply->answer == KEEPER_SAYS_NO && ret_reply->code == -EBUSY;
		if (r == 0 && !busy)
			return 0;
		if (r == -ECONNREFUSED) {
			r = embedded_end_remnants(e, name, NULL, 0, err);
			return r < 0 ? r : -ENOENT;
		}
		if (!busy && r != -ECONNRESET) {
			if (err)
				*err = why;
			return r;
		}
		if (deadline_passed(until))
			return err_set(err, -ETIME, "keeper", name->text, "the pod is still being stopped");
		backoff_sleep(&backoff, until);
	}
}

/* One that answers, or one that is made. */
static int start_once(struct embedded *e, const struct pod_name *name, struct deadline until, struct keeper_reply *ret_reply, struct err *err)
{
	struct err why = {0};
	int r = ask_for_start(e, name, until, ret_reply, &why);
	if (r == -ENOENT || r == -ENOTSOCK || r == -EPERM) {
		r = channel_clean(embedded_pods_dir(e), name, err);
		return r < 0 ? r : make_keeper(e, name, until, ret_reply, err);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int start_until(struct embedded *e, const struct service_unit *unit, struct deadline until, struct err *err)
{
	const struct pin *pods_dir = embedded_pods_dir(e);
	struct keeper_reply reply = {0};
	struct backoff backoff = {0};
	if (!pods_dir)
		return err_set(err, -ENOENT, "keeper", unit->name->text, "there is no pods dir");
	for (;;) {
		struct err why = {0};
		int r = start_once(e, unit->name, until, &reply, &why);
		/* The keeper of a killed `up` was under way, and had its name before ours: it is asked, or outlived. */
		bool forestalled = r == -EADDRINUSE || (r == 0 && reply.answer == KEEPER_SAYS_NO && reply.code == -EEXIST);
		if (r < 0 && (!forestalled || deadline_passed(until))) {
			if (err)
				*err = why;
			return r;
		}
		if (!forestalled || deadline_passed(until))
			break;
		backoff_sleep(&backoff, until);
	}
	if (reply.answer != KEEPER_SAYS_STATE)
		return err_set(err, reply.code ? reply.code : -EIO, "keeper", unit->name->text, "%s", reply.text);
	embedded_forget_watch(e);
	embedded_remember(e, unit->name, &reply.state);
	return 0;
}

int embedded_start(struct service *service, const struct service_unit *unit, struct deadline until, struct err *err)
{
	struct embedded *e = embedded_of(service);
	int r = start_until(e, unit, until, err);
	embedded_dismiss(e); /* not needed, where one was there */
	return r;
}
