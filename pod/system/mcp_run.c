#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/mcp_probe.h"

#define PREPARE_MS 10000
#define END_MS 10000

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};

static void signals_of(sigset_t *ret)
{
	(void)sigemptyset(ret);
	for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
		(void)sigaddset(ret, passed_on[i]);
}

/* For as long as the server runs: that is what was asked for. */
static void pass_signals(const struct sandbox *sandbox, int signals)
{
	struct pollfd p[] = {{.fd = sandbox->pidfd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	for (;;) {
		struct signalfd_siginfo what;
		int ready = poll(p, 2, -1);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready < 0 || p[0].revents)
			return;
		if (p[1].revents && read(signals, &what, sizeof what) == (ssize_t)sizeof what)
			(void)sandbox_signal(sandbox, (int)what.ssi_signo, NULL);
	}
}

static void tell(const struct mcp_prepared *p, const char *server, void (*warn)(const char *text, void *to), void *to)
{
	char line[2048];
	for (size_t i = 0; i < p->declaration.n; i++)
		if (p->declaration.v[i].answer.cause != CONTAIN_CLEAR) {
			temp_warning(server, &p->declaration.v[i], line, sizeof line);
			warn(line, to);
		}
	if (*p->temp_problem)
		warn(p->temp_problem, to);
}

static int run(const struct mcp_context *context, struct mcp_prepared *p, int signals, int *ret_status, struct err *err)
{
	struct sandbox sandbox = SANDBOX_NONE;
	struct sandbox_request request = mcp_request(context, p);
	int status = 0;
	for (int i = 0; i < 3; i++)
		request.stdio[i] = i;
	int r = sandbox_start(&request, deadline_in_ms(PREPARE_MS), &sandbox, err);
	if (r < 0)
		return r;
	(void)scratch_own(&p->scratch, sandbox.pid, NULL);
	pass_signals(&sandbox, signals);
	r = sandbox_end(&sandbox, deadline_in_ms(END_MS), &status, err);
	if (r == 0)
		*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return r;
}

int mcp_run(const struct mcp_context *context, const struct mcp_server *server, void (*warn)(const char *text, void *to), void *to, int *ret_status,
	    struct err *err)
{
	struct mcp_prepared p;
	sigset_t signals, before;
	(void)scratch_sweep(context->home, deadline_in_ms(PREPARE_MS), NULL, NULL);
	int r = mcp_prepare(context, server, deadline_in_ms(PREPARE_MS), &p, err);
	if (r < 0)
		return r;
	tell(&p, server->name, warn, to);
	signals_of(&signals);
	(void)pthread_sigmask(SIG_BLOCK, &signals, &before);
	AUTO_CLOSE int fd = signalfd(-1, &signals, SFD_CLOEXEC);
	r = fd < 0 ? err_code(err, -errno, "signals", NULL) : run(context, &p, fd, ret_status, err);
	struct err why = {0};
	int removed = scratch_remove(&p.scratch, deadline_in_ms(END_MS), &why);
	mcp_prepared_free(&p);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0 && removed < 0)
		warn(why.text, to);
	return r;
}
