#include "pod/system/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "pod/system/keeper_group.h"
#include "pod/system/keeper_inner.h"
#include "pod/system/logfile.h"
#include "pod/system/spawn.h"
#include "pod/system/records.h"

#define CGROUP_REMOVE_MS 5000 /* a process that wait(2) has told of may still be on its way out of the group */
#define POLLED (4 + KEEPER_CLIENTS)
#define DESCRIPTORS (POLLED + 16)

/* The descriptor on which `start` listens, if it does: it was put there by number, so it must at least be a socket. */
static int take_report(void)
{
	const char *text = getenv(KEEPER_ENV_REPORT);
	struct stat st;
	int fd = text ? atoi(text) : -1;
	(void)unsetenv(KEEPER_ENV_REPORT);
	if (fd < 3 || fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return fd;
}

/* 1: told to go on. 0: who made this keeper has ended, or has no use for it. */
static int hear_word(int fd, struct err *err)
{
	char word;
	ssize_t n;
	do
		n = read(fd, &word, 1);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_code(err, -errno, "keeper", "word to go on") : (int)n;
}

/* When the pod has a record, and a `down` meets this keeper: else the log would be left. */
static int enter_log(const struct keeper *keeper, struct err *err)
{
	AUTO_CLOSE int log = -1;
	int r = logfile_begin(keeper->context->plane, keeper->name, &log, err);
	if (r == 0 && (dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0))
		r = err_code(err, -errno, "log", keeper->name->text);
	return r;
}

/* False: whoever asked for the start is not there any more. */
static bool report(int *fd, const struct keeper *keeper, const struct err *why)
{
	char message[KEEPER_MESSAGE_MAX];
	struct keeper_reply reply = {.answer = why ? KEEPER_SAYS_NO : KEEPER_SAYS_STATE};
	if (why) {
		reply.code = why->code < 0 ? why->code : -EIO;
		(void)snprintf(reply.text, sizeof reply.text, "%.100s%s%s", why->subject, *why->subject ? ": " : "", why->text);
	} else {
		keeper_state_tell(keeper, &reply.state);
	}
	int len = keeper_reply_encode(&reply, message);
	bool heard = *fd < 0 || (len > 0 && write_all(*fd, message, (size_t)len) == 0);
	if (!why) /* else it is open until the end of this process, for which is waited so */
		close_quietly(take_fd(fd));
	return heard;
}

/* poll(2) refuses more entries than descriptors are allowed, used or not. */
static int reserve_descriptors(struct err *err)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_code(err, -errno, "descriptors", NULL);
	if (limit.rlim_cur >= DESCRIPTORS)
		return 0;
	limit.rlim_cur = DESCRIPTORS;
	if (limit.rlim_max < DESCRIPTORS || setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_set(err, -EMFILE, "descriptors", NULL, "a keeper needs %d descriptors and may have %llu", DESCRIPTORS,
			       (unsigned long long)limit.rlim_max);
	return 0;
}

static int open_signals(struct err *err)
{
	sigset_t wanted;
	spawn_reset_signals(NULL);
	(void)sigemptyset(&wanted);
	(void)sigaddset(&wanted, SIGCHLD);
	(void)sigaddset(&wanted, SIGTERM);
	(void)sigaddset(&wanted, SIGINT);
	(void)sigaddset(&wanted, SIGHUP);
	(void)sigaddset(&wanted, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &wanted, NULL);
	(void)sigdelset(&wanted, SIGHUP);
	(void)sigdelset(&wanted, SIGPIPE);
	int fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_code(err, -errno, "signalfd", NULL) : fd;
}

/* Read when everybody can find this keeper: a `down` that has not met it has taken the record away by then. */
static int take_record(struct keeper *keeper, struct err *err)
{
	int r = record_id(keeper->context->pods_dir, keeper->name, keeper->group.pod_id, err);
	(void)snprintf(keeper->group.pod_name, sizeof keeper->group.pod_name, "%s", keeper->name->text);
	if (r < 0 || *keeper->group.pod_id)
		return r;
	struct stat st;
	if (fstatat(keeper->context->pods_dir->fd, pod_file_record(keeper->name).text, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return err_set(err, -ENOENT, "keeper", keeper->name->text, "it has no record (any more)");
	return 0;
}

static int begin(struct keeper *keeper, struct err *err)
{
	int r = reserve_descriptors(err);
	if (r < 0)
		return r;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_code(err, -errno, "subreaper", NULL);
	keeper->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	keeper->signals = open_signals(err);
	if (keeper->signals < 0)
		return keeper->signals;
	r = channel_publish(keeper->context->pods_dir, keeper->name, &keeper->channel, err);
	if (r == 0)
		r = take_record(keeper, err);
	return r < 0 ? r : keeper_guard(keeper, err);
}

static void hear_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;
	while (read(keeper->signals, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo != SIGCHLD) {
			keeper->grace_ms = KEEPER_GRACE_MS;
			keeper_dispatch(keeper, KEEPER_ON_STOP);
		}
}

static void pretend_ready(const struct keeper *keeper, struct pollfd polled[POLLED])
{
	struct backoff backoff = {.ms = 50};
	backoff_sleep(&backoff, keeper->timer);
	for (size_t i = 0; i < POLLED; i++)
		polled[i].revents = polled[i].fd >= 0 ? POLLIN : 0;
}

static void wait_for_something(struct keeper *keeper)
{
	struct pollfd polled[POLLED] = {{.fd = keeper->signals, .events = POLLIN}, {.fd = keeper->channel.fd, .events = POLLIN}};
	struct deadline until = deadline_earlier(keeper->timer, keeper->again);
	polled[2] = (struct pollfd){.fd = keeper->vigil.owner, .events = POLLIN};
	polled[3] = (struct pollfd){.fd = keeper->vigil.timer, .events = POLLIN};
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		polled[4 + i] = (struct pollfd){.fd = keeper->clients[i].fd, .events = POLLIN};
	int ready = poll(polled, POLLED, deadline_poll_ms(until));
	bool deaf = ready < 0 && errno != EINTR;
	if (deadline_passed(keeper->again) || (ready > 0 && (polled[2].revents || polled[3].revents)))
		keeper_guard_hear(keeper);
	if (ready <= 0 && !deaf)
		return;
	if (deaf) /* none of them waits: what cannot be waited for is asked again and again */
		pretend_ready(keeper, polled);
	if (polled[0].revents)
		hear_signals(keeper);
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (polled[4 + i].revents && polled[4 + i].fd == keeper->clients[i].fd)
			keeper_client_hear(keeper, &keeper->clients[i]);
	if (polled[1].revents)
		keeper_clients_accept(keeper);
}

/* Nobody can ask a keeper whose name was taken away, so it must not bring its pod back. */
static enum keeper_event timer_event(const struct keeper *keeper)
{
	bool reachable = channel_is_published(keeper->context->pods_dir, keeper->name, &keeper->channel);
	return keeper->state == KEEPER_WAITING && !reachable ? KEEPER_ON_STOP : KEEPER_ON_TIMER;
}

static bool is_lost_and_idle(const struct keeper *keeper)
{
	bool idle = keeper->state == KEEPER_STOPPED || keeper->state == KEEPER_FAILED;
	return idle && !channel_is_published(keeper->context->pods_dir, keeper->name, &keeper->channel);
}

static void loop(struct keeper *keeper)
{
	while (keeper->state != KEEPER_GONE) {
		wait_for_something(keeper);
		keeper_reap(keeper);
		if (is_lost_and_idle(keeper))
			keeper_dispatch(keeper, KEEPER_ON_STOP);
		if (keeper->state != KEEPER_GONE && deadline_passed(keeper->timer)) {
			keeper->timer = DEADLINE_NEVER;
			keeper_dispatch(keeper, timer_event(keeper));
		}
	}
}

/* Everything that others could find is gone before those who wait hear of it. */
static void end(struct keeper *keeper)
{
	close_quietly(take_fd(&keeper->cgroup_fd));
	if (*keeper->group.cgroup)
		(void)keeper_cgroup_remove(keeper->group.cgroup, deadline_in_ms(CGROUP_REMOVE_MS));
	if (keeper->channel.fd >= 0)
		channel_withdraw(keeper->context->pods_dir, keeper->name, &keeper->channel);
	keeper_clients_tell_gone(keeper);
	keeper_guard_end(keeper);
	close_quietly(keeper->signals);
	close_quietly(keeper->spare);
	close_quietly(keeper->main_pidfd);
}

int keeper_run(const struct service_context *context, const struct pod_name *name, const struct keeper_limits *limits, struct err *err)
{
	struct keeper keeper = {.context = context, .name = name, .limits = *limits, .timer = DEADLINE_NEVER, .cgroup_fd = -1, .drained = true};
	keeper.signals = keeper.spare = keeper.main_pidfd = keeper.ender = -1;
	keeper.vigil = VIGIL_NONE;
	keeper_clients_init(&keeper);
	keeper.again = DEADLINE_NEVER;
	keeper.channel = CHANNEL_NONE;
	int report_fd = take_report();
	struct err why = {0};
	int told = report_fd >= 0 ? hear_word(report_fd, err) : 1;
	if (told <= 0)
		return told;
	int r = context->pods_dir ? begin(&keeper, &why) : err_set(&why, -ENOENT, "keeper", name->text, "there is no pods dir");
	if (r == 0 && report_fd >= 0)
		r = enter_log(&keeper, &why);
	if (r == 0) {
		keeper_dispatch(&keeper, KEEPER_ON_START);
		if (keeper.state != KEEPER_RUNNING)
			r = err_set(&why, -EIO, "keeper", NULL, "%s", keeper.trouble);
	}
	if (!report(&report_fd, &keeper, r < 0 ? &why : NULL))
		keeper_dispatch(&keeper, KEEPER_ON_STOP); /* it gave up waiting and has said so */
	(void)malloc_trim(0);
	if (r == 0)
		loop(&keeper);
	end(&keeper);
	if (r < 0 && err)
		*err = why;
	return r;
}

int keeper_main(const struct service_context *context, const struct pod_name *name, struct err *err)
{
	return keeper_run(context, name, &keeper_limits_default, err);
}
