/* The keeper's watch for the end of its pod's life. It cannot take the pod down itself, because that ends with its own end. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/keeper_inner.h"
#include "pod/system/logfile.h"
#include "pod/system/records.h"
#include "pod/system/spawn.h"

#define FAILED_MS 1000    /* until the next try, when no process was to be had */
#define UNENDED_MS 10000  /* until it is seen whether the process that was started still tries */

int keeper_guard(struct keeper *keeper, struct err *err)
{
	AUTO_RECORD struct record record = {0};
	AUTO_SPEC struct spec spec = {0};
	struct vigil vigil = VIGIL_NONE;
	int r = record_load(keeper->context->pods_dir, keeper->name, &record, NULL);
	if (r == 0)
		r = spec_from_record(&record, &spec, NULL);
	if (r == 0 && life_is_bounded(&spec.life))
		r = vigil_open(&spec.life, &vigil, err);
	else
		r = 0; /* the boot will say what is wrong with the record */
	if (r < 0)
		return r;
	vigil_close(&keeper->vigil);
	keeper->vigil = vigil;
	keeper->again = DEADLINE_NEVER;
	return 0;
}

static bool runs(int pidfd)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	return pidfd >= 0 && poll(&ended, 1, 0) == 0;
}

/* Not a child of this process, which as a subreaper would take it for a part of the pod. */
static int start_ender(struct keeper *keeper, struct err *err)
{
	AUTO_CLOSE int log = -1;
	int r = logfile_open(keeper->context->plane, keeper->name, &log, err);
	if (r < 0)
		return r;
	const char *config = keeper->context->config_file;
	const char *with[] = {keeper->context->program, "--config", config, "_watch", keeper->name->text, keeper->group.pod_id, NULL};
	const char *without[] = {keeper->context->program, "_watch", keeper->name->text, keeper->group.pod_id, NULL};
	struct spawn request = SPAWN_DEFAULT;
	request.program = keeper->context->program;
	request.argv = (char *const *)(config ? with : without);
	request.cwd = "/";
	request.stdio[1] = request.stdio[2] = log;
	request.session = SPAWN_SESSION;
	request.sibling = true;
	struct spawned spawned = {.pidfd = -1};
	r = spawn(&request, &spawned, err);
	if (r == 0)
		keeper->ender = spawned.pidfd;
	return r;
}

void keeper_guard_hear(struct keeper *keeper)
{
	struct err why = {0};
	keeper->again = DEADLINE_NEVER;
	if (!life_is_bounded(&keeper->vigil.life) || vigil_look(&keeper->vigil) == LIFE_LASTS)
		return;
	/* They stay readable, and there is nothing to learn from them any more. */
	close_quietly(take_fd(&keeper->vigil.owner));
	close_quietly(take_fd(&keeper->vigil.timer));
	keeper->again = deadline_in_ms(UNENDED_MS);
	if (runs(keeper->ender))
		return;
	close_quietly(take_fd(&keeper->ender));
	if (start_ender(keeper, &why) < 0) {
		(void)logfile_line(keeper->context->plane, keeper->name, why.text, NULL);
		keeper->again = deadline_in_ms(FAILED_MS);
	}
}

void keeper_guard_end(struct keeper *keeper)
{
	vigil_close(&keeper->vigil);
	close_quietly(take_fd(&keeper->ender));
}
