#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "pod/system/mcp_probe.h"
#include "pod/system/sandbox.h"

#define WHY "no sandbox of this system is supported yet, and without a child subreaper nothing can be run outside of one either"

void sandbox_find_in(const char *const *directories, struct sandbox_program *ret_program)
{
	(void)directories;
	*ret_program = (struct sandbox_program){.kind = SANDBOX_UNAVAILABLE};
	(void)snprintf(ret_program->detail, sizeof ret_program->detail, "%s", WHY);
}

void sandbox_find(struct sandbox_program *ret_program)
{
	sandbox_find_in(NULL, ret_program);
}

int sandbox_try(const struct sandbox_program *program, struct err *err)
{
	return err_set(err, -ENOTSUP, "sandbox", program->path, WHY);
}

struct sandbox_program sandbox_none(void)
{
	struct sandbox_program program;
	sandbox_find(&program);
	return program;
}

int sandbox_start(const struct sandbox_request *request, struct deadline until, struct sandbox *ret_sandbox, struct err *err)
{
	(void)until, (void)ret_sandbox;
	return err_set(err, -ENOTSUP, "sandbox", request->command, WHY);
}

/* Nothing was ever started. */
int sandbox_end(struct sandbox *sandbox, struct deadline until, int *ret_status, struct err *err)
{
	(void)until, (void)err;
	*sandbox = SANDBOX_NONE;
	if (ret_status)
		*ret_status = 0;
	return 0;
}

int sandbox_still_in_place(const struct pin *home, const char *home_path, struct err *err)
{
	(void)home, (void)home_path, (void)err;
	return 0;
}

int sandbox_signal(const struct sandbox *sandbox, int signal, struct err *err)
{
	(void)sandbox, (void)signal;
	return err_code(err, -ESRCH, "sandbox", NULL);
}

bool sandbox_holds_pipe(const struct sandbox *sandbox, ino_t pipe)
{
	(void)sandbox, (void)pipe;
	return false;
}

int mcp_run(const struct mcp_context *context, const struct mcp_server *server, void (*warn)(const char *text, void *to), void *to, int *ret_status,
	    struct err *err)
{
	(void)context, (void)warn, (void)to, (void)ret_status;
	return err_set(err, -ENOTSUP, "sandbox", server->name, WHY);
}
