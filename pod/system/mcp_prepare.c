#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "fsops/contain.h"
#include "pod/system/mcp_probe.h"
#include "pod/system/command.h"

#define CHECK_MS 5000

void mcp_prepared_free(struct mcp_prepared *prepared)
{
	words_free(&prepared->argv);
	environment_free(&prepared->environment);
	temp_declaration_free(&prepared->declaration);
	scratch_leave(&prepared->scratch);
	*prepared = MCP_PREPARED_NONE;
}

static int join_environment(const struct mcp_context *context, const struct mcp_server *server, struct environment *ret, struct err *err)
{
	AUTO_ENVIRONMENT struct environment joined = {0};
	int r = environment_copy(context->environment->v, &joined, err);
	for (size_t i = 0; r == 0 && i < server->env.n; i++) {
		const char *equals = strchr(server->env.v[i], '=');
		AUTO_FREE char *name = strndup(server->env.v[i], (size_t)(equals - server->env.v[i]));
		r = name ? environment_set(&joined, name, equals + 1, err) : err_code(err, -ENOMEM, "environment", NULL);
	}
	if (r < 0)
		return r;
	*ret = joined;
	joined = (struct environment){0};
	return 0;
}

/* One deadline for all of them: a hung file system costs it once. */
static void classify(const struct mcp_context *context, struct deadline until, struct temp_declaration *declaration)
{
	char run[PLANE_PATH_MAX + 8];
	AUTO_PIN struct pin pin = PIN_NONE;
	(void)snprintf(run, sizeof run, "%s/run", context->home_path);
	bool pinned = pin_child(context->home, "run", &pin, NULL) == 0;
	struct contain_seal seal = {.path = run, .pin = pinned ? &pin : NULL};
	until = deadline_earlier(until, deadline_in_ms(CHECK_MS));
	for (size_t i = 0; i < declaration->n; i++)
		declaration->v[i].answer = contain_check(declaration->v[i].value, &seal, until);
}

static int settle_temp(const struct mcp_context *context, struct deadline until, struct mcp_prepared *p, struct err *err)
{
	char run[PLANE_PATH_MAX + 8];
	const char *path = NULL;
	struct err why = {0};
	(void)snprintf(run, sizeof run, "%s/run", context->home_path);
	bool managed = temp_needs_managed(&p->declaration) && scratch_make(context->home, run, until, &p->scratch, &why) == 0;
	if (temp_needs_managed(&p->declaration) && !managed) {
		char escaped[280];
		(void)text_escape(why.text, strlen(why.text), escaped, sizeof escaped);
		(void)snprintf(p->temp_problem, sizeof p->temp_problem, "no temp directory: %s", escaped);
	}
	int r = temp_apply(&p->environment, &p->declaration, managed ? p->scratch.path : NULL, &p->temp, &path, err);
	if (r == 0 && path)
		(void)snprintf(p->temp_path, sizeof p->temp_path, "%s", path);
	return r;
}

static int find_command(const struct mcp_context *context, const struct mcp_server *server, struct mcp_prepared *p, struct err *err)
{
	const char *path = environment_get(&p->environment, "PATH");
	const char *cwd = server->cwd ? server->cwd : context->cwd;
	int n = snprintf(p->cwd, sizeof p->cwd, "%s%s%s", *cwd == '/' ? "" : context->cwd, *cwd == '/' ? "" : "/", cwd);
	if (n < 0 || (size_t)n >= sizeof p->cwd)
		return err_code(err, -ENAMETOOLONG, "cwd", cwd);
	int r = command_find(server->command, path ? path : "/usr/bin:/bin", p->cwd, p->command, sizeof p->command, err);
	if (r < 0)
		return r;
	AUTO_FREE char **argv = calloc(server->args.n + 2, sizeof *argv);
	if (!argv)
		return err_code(err, -ENOMEM, "mcp", NULL);
	argv[0] = p->command;
	for (size_t i = 0; i < server->args.n; i++)
		argv[i + 1] = server->args.v[i];
	return words_copy(argv, server->args.n + 1, &p->argv, err);
}

int mcp_prepare(const struct mcp_context *context, const struct mcp_server *server, struct deadline until, struct mcp_prepared *ret_prepared,
		struct err *err)
{
	struct mcp_prepared p = MCP_PREPARED_NONE;
	if (*server->problem)
		return err_set(err, -EINVAL, "mcp.json", server->name, "%s", server->problem);
	int r = temp_declaration_read(&server->env, &p.declaration, err);
	if (r == 0) {
		/* Before anything else: the declaration must not be touched in any other way. */
		classify(context, until, &p.declaration);
		r = join_environment(context, server, &p.environment, err);
	}
	if (r == 0)
		r = find_command(context, server, &p, err);
	if (r == 0)
		r = settle_temp(context, until, &p, err);
	if (r < 0) {
		(void)scratch_remove(&p.scratch, deadline_in_ms(1000), NULL);
		mcp_prepared_free(&p);
		return r;
	}
	*ret_prepared = p;
	return 0;
}

struct sandbox_request mcp_request(const struct mcp_context *context, const struct mcp_prepared *prepared)
{
	return (struct sandbox_request){
		.program = context->sandbox, .home = context->home, .home_path = context->home_path,
		.scratch = prepared->scratch.parent.fd >= 0 ? &prepared->scratch : NULL, .command = prepared->command, .argv = prepared->argv.v,
		.environment = &prepared->environment, .cwd = prepared->cwd, .new_session = true,
	};
}
