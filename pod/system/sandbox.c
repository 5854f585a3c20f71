#include "pod/system/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/process.h"
#include "pod/system/sandbox_parts.h"
#include "pod/system/spawn.h"

#define SETUP_MS 10000
#define INFO_BYTES_MAX 1024
#define END_MS 10000
#define BY_ITSELF_MS 1000

static int pidfd_kill(int pidfd, int signal)
{
	return pidfd < 0 ? 0 : (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0U);
}

static bool has_ended(int pidfd, struct deadline until)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int r = 0;
	do
		r = pidfd < 0 ? 1 : poll(&p, 1, deadline_poll_ms(until));
	while (r < 0 && errno == EINTR);
	return r > 0;
}

static int stat_pinned(const char *path, const struct pin *pin, const char *what, struct err *err)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return err_set(err, -EXDEV, "seal", path, "%s is not there any more: %s", what, strerrordesc_np(errno));
	if (st.st_dev != pin->dev || st.st_ino != pin->ino)
		return err_set(err, -EXDEV, "seal", path, "%s was replaced by another directory", what);
	return 0;
}

int sandbox_still_in_place(const struct pin *home, const char *home_path, struct err *err)
{
	AUTO_PIN struct pin run = PIN_NONE;
	char path[PLANE_PATH_MAX + 8];
	(void)snprintf(path, sizeof path, "%s/run", home_path);
	int r = stat_pinned(home_path, home, "the home", err);
	if (r == 0 && (r = pin_child(home, "run", &run, err)) == 0)
		r = stat_pinned(path, &run, "run", err);
	return r < 0 ? -EXDEV : 0;
}

static int canonical(const struct pin *pin, char *out, struct err *err)
{
	char name[40];
	(void)snprintf(name, sizeof name, "/proc/self/fd/%d", pin->fd);
	ssize_t n = readlink(name, out, PLANE_PATH_MAX);
	if (n < 0)
		return err_code(err, -errno, "seal", name);
	if (n >= PLANE_PATH_MAX || *out != '/')
		return err_set(err, -ENAMETOOLONG, "seal", NULL, "a path of the home is too long");
	out[n] = '\0';
	return stat_pinned(out, pin, "the home", err);
}

static int find_places(const struct sandbox_request *request, struct deadline until, struct sandbox_places *places, struct err *err)
{
	int r = pin_make_child(request->home, "run", 0700, NULL, &places->run, err);
	if (r == 0)
		r = sandbox_still_in_place(request->home, request->home_path, err);
	if (r == 0)
		r = canonical(request->home, places->home, err);
	if (r == 0)
		r = canonical(&places->run, places->run_path, err);
	if (r == 0 && request->scratch)
		r = canonical(&request->scratch->tmp, places->scratch, err);
	(void)snprintf(places->run_lexical, sizeof places->run_lexical, "%s/run", request->home_path);
	return r < 0 ? r : sandbox_links_check(&places->run, until, err);
}

/* The four ends that bwrap and we talk through. It holds our end of `block` too (sync), so that our death is no go-ahead. */
struct talk {
	int info, info_theirs, block, block_theirs;
};
#define TALK_NONE ((struct talk){-1, -1, -1, -1})

static void talk_close(struct talk *talk)
{
	close_quietly(talk->info);
	close_quietly(talk->info_theirs);
	close_quietly(talk->block);
	close_quietly(talk->block_theirs);
	*talk = TALK_NONE;
}

static int talk_open(struct talk *ret_talk, struct err *err)
{
	int info[2], block[2];
	if (pipe2(info, O_CLOEXEC) < 0)
		return err_code(err, -errno, "pipe", NULL);
	if (pipe2(block, O_CLOEXEC) < 0) {
		int code = -errno;
		close_quietly(info[0]);
		close_quietly(info[1]);
		return err_code(err, code, "pipe", NULL);
	}
	*ret_talk = (struct talk){.info = info[0], .info_theirs = info[1], .block = block[1], .block_theirs = block[0]};
	return 0;
}

static int start_bwrap(const struct sandbox_request *request, const struct sandbox_places *places, const struct talk *talk,
		       struct spawned *ret_child, struct err *err)
{
	AUTO_WORDS struct words argv = {0};
	AUTO_ENVIRONMENT struct environment environment = {0};
	bool has_scratch = request->scratch != NULL;
	struct sandbox_plan plan = {
		.program = request->program->path, .by_descriptor = request->program->by_descriptor, .new_session = request->new_session,
		.home = places->home, .run = places->run_lexical, .run_canonical = places->run_path,
		.scratch = has_scratch ? request->scratch->path : NULL, .scratch_canonical = places->scratch,
		.home_fd = request->home->fd, .run_fd = places->run.fd, .scratch_fd = has_scratch ? request->scratch->tmp.fd : -1,
		.info_fd = talk->info_theirs, .block_fd = talk->block_theirs, .sync_fd = talk->block,
		.cwd = request->cwd, .argv = request->argv, .environment = request->environment,
	};
	int r = sandbox_plan_bwrap(&plan, &argv, &environment, err);
	if (r < 0)
		return r;
	int keep[] = {plan.info_fd, plan.block_fd, plan.sync_fd, plan.home_fd, plan.run_fd, plan.scratch_fd};
	size_t keep_count = sizeof keep / sizeof *keep - (has_scratch ? 0 : 1);
	struct spawn spec = SPAWN_DEFAULT;
	spec.program = plan.program;
	spec.argv = argv.v;
	spec.envp = environment.v;
	spec.keep = keep;
	spec.keep_count = plan.by_descriptor ? keep_count : 3;
	memcpy(spec.stdio, request->stdio, sizeof spec.stdio);
	spec.session = request->new_session ? SPAWN_SESSION : SPAWN_GROUP;
	spec.death_signal = SIGKILL;
	/* Between the start of bwrap's own child and its --die-with-parent, nobody else would end that child with us. */
	return sandbox_adopt_start(&spec, ret_child, err);
}

/* {"child-pid": N, …}; all of it comes in one write. */
static int read_inner(struct sandbox *sandbox, int info, struct deadline until, struct err *err)
{
	char text[INFO_BYTES_MAX] = "";
	size_t len = 0;
	struct pollfd p = {.fd = info, .events = POLLIN};
	int pid = 0;
	while (!strchr(text, '}') && len + 1 < sizeof text) {
		int r = poll(&p, 1, deadline_poll_ms(until));
		if (r == 0)
			return err_set(err, -ETIMEDOUT, "sandbox", NULL, "bwrap says nothing");
		ssize_t n = r < 0 ? -1 : read(info, text + len, sizeof text - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, -ENOTSUP, "sandbox", NULL, "bwrap cannot be heard: %s", strerrordesc_np(errno));
		if (n == 0)
			return err_set(err, -ENOTSUP, "sandbox", NULL, "bwrap cannot make a sandbox here");
		len += (size_t)n;
		text[len] = '\0';
	}
	const char *key = strstr(text, "\"child-pid\"");
	if (!key || sscanf(key, "\"child-pid\" : %d", &pid) != 1 || pid <= 1)
		return err_set(err, -ENOTSUP, "sandbox", NULL, "bwrap does not say who it started");
	sandbox->inner_pidfd = (int)syscall(SYS_pidfd_open, pid, 0U);
	if (sandbox->inner_pidfd < 0)
		return err_set(err, -ENOTSUP, "sandbox", NULL, "what bwrap started cannot be watched: %s", strerrordesc_np(errno));
	sandbox->inner = pid;
	return 0;
}

static int prove_and_release(struct sandbox *sandbox, const struct sandbox_request *request, const struct sandbox_places *places, struct talk *talk,
			     struct deadline until, struct err *err)
{
	close_quietly(take_fd(&talk->info_theirs));
	close_quietly(take_fd(&talk->block_theirs));
	int r = read_inner(sandbox, talk->info, until, err);
	if (r == 0)
		r = sandbox_seal_wait(sandbox->inner, sandbox->inner_pidfd, request, places, until, err);
	if (r < 0)
		return r;
	return write(talk->block, "x", 1) == 1 ? 0 : err_set(err, -ENOTSUP, "sandbox", NULL, "bwrap has ended");
}

static int sealed_start(const struct sandbox_request *request, struct deadline until, struct sandbox *ret_sandbox, struct err *err)
{
	struct sandbox_places places = {.run = PIN_NONE};
	struct talk talk = TALK_NONE;
	struct sandbox sandbox = SANDBOX_NONE;
	struct spawned child = {.pidfd = -1};
	until = deadline_earlier(until, deadline_in_ms(SETUP_MS));
	int r = find_places(request, until, &places, err);
	if (r == 0)
		r = talk_open(&talk, err);
	if (r == 0)
		r = start_bwrap(request, &places, &talk, &child, err);
	if (r == 0) {
		sandbox = (struct sandbox){.kind = SANDBOX_BWRAP, .pid = child.pid, .pidfd = child.pidfd, .inner_pidfd = -1};
		r = prove_and_release(&sandbox, request, &places, &talk, until, err);
		if (r < 0) {
			int status;
			(void)sandbox_end(&sandbox, deadline_in_ms(END_MS), &status, NULL);
			r = r == -ESRCH || r == -ETIMEDOUT ? -ENOTSUP : r;
			if (err)
				err->code = r;
		}
	}
	talk_close(&talk);
	pin_close(&places.run);
	if (r == 0)
		*ret_sandbox = sandbox;
	return r;
}

static int open_start(const struct sandbox_request *request, struct sandbox *ret_sandbox, struct err *err)
{
	struct spawned adopter;
	struct spawn spec = SPAWN_DEFAULT;
	spec.program = request->command;
	spec.argv = request->argv;
	spec.envp = request->environment->v;
	spec.cwd = request->cwd;
	memcpy(spec.stdio, request->stdio, sizeof spec.stdio);
	spec.session = request->new_session ? SPAWN_SESSION : SPAWN_GROUP;
	spec.death_signal = SIGKILL;
	int r = sandbox_adopt_start(&spec, &adopter, err);
	if (r == 0)
		*ret_sandbox = (struct sandbox){.kind = SANDBOX_OFF, .pid = adopter.pid, .pidfd = adopter.pidfd, .inner_pidfd = -1};
	return r;
}

int sandbox_start(const struct sandbox_request *request, struct deadline until, struct sandbox *ret_sandbox, struct err *err)
{
	switch (request->program->kind) {
	case SANDBOX_OFF:
		return open_start(request, ret_sandbox, err);
	case SANDBOX_BWRAP:
		return sealed_start(request, until, ret_sandbox, err);
	default:
		return err_set(err, -ENOTSUP, "sandbox", NULL, "%s", request->program->detail);
	}
}

int sandbox_end(struct sandbox *sandbox, struct deadline until, int *ret_status, struct err *err)
{
	if (sandbox->pidfd < 0)
		return 0;
	(void)pidfd_kill(sandbox->inner_pidfd, SIGKILL);
	/* The first process of a pid namespace ends after all the others, and the rest by itself then. */
	if (!has_ended(sandbox->pidfd, deadline_earlier(until, deadline_in_ms(sandbox->inner_pidfd < 0 ? 0 : BY_ITSELF_MS))))
		(void)pidfd_kill(sandbox->pidfd, SIGTERM);
	bool gone = has_ended(sandbox->pidfd, until) && has_ended(sandbox->inner_pidfd, until);
	int status = gone ? spawn_reap(sandbox->pid) : 0;
	close_quietly(sandbox->pidfd);
	close_quietly(sandbox->inner_pidfd);
	pid_t pid = sandbox->pid;
	*sandbox = SANDBOX_NONE;
	if (!gone)
		return err_set(err, -EBUSY, "sandbox", NULL, "process %d does not end", (int)pid);
	*ret_status = status;
	return 0;
}

int sandbox_signal(const struct sandbox *sandbox, int signal, struct err *err)
{
	char path[64], text[32] = "";
	struct process command;
	pid_t parent = sandbox->inner ? sandbox->inner : sandbox->pid;
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		return err_set(err, -ESRCH, "signal", NULL, "the command has ended");
	int r = process_read((pid_t)strtol(text, NULL, 10), &command, err);
	if (r == 0 && command.parent != parent)
		r = err_set(err, -ESRCH, "signal", NULL, "the command has ended");
	return r < 0 ? r : process_signal(&command, signal, err);
}
