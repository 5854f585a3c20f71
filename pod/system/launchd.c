/* The service backend over the user's launchd. A pod's property list lies in the pods dir, so launchd knows it only from `up` to `down` and never
 * starts it at a login. launchd.plist(5), launchctl(1). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "fsops/file.h"
#include "pod/model/launchd_print.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_map.h"
#include "pod/model/unit_text.h"
#include "pod/system/launchd_ctl.h"
#include "pod/system/logfile.h"
#include "pod/system/records.h"
#include "pod/system/service.h"

#define ANSWER_MS 10000
/* After SIGKILL launchd has this long to notice. */
#define KILLED_MS 5000
/* A label that was just booted out may be refused for a moment. */
#define BOOTSTRAP_MS 5000
#define PLIST_BYTES_MAX (1UL << 20)
#define TARGET_MAX (LAUNCHD_LABEL_MAX + 32)

struct launchd {
	struct service service;
	struct service_context context;
	char launchctl[PLANE_PATH_MAX];
	struct pod_name last_name; /* whose state the caller was told last */
	struct unit_state last;
	char text[LAUNCHCTL_TEXT_MAX];
};

static struct launchd *launchd_of(struct service *service)
{
	return (struct launchd *)service;
}

static int backend_open(const struct service_context *context, struct service **ret_service, struct err *err)
{
	AUTO_FREE struct launchd *launchd = calloc(1, sizeof *launchd);
	struct err why = {0};
	if (!launchd)
		return err_code(err, -ENOMEM, "launchd", NULL);
	launchd->service.ops = &service_launchd;
	launchd->context = *context;
	if (launchctl_find(context->plane, launchd->launchctl, sizeof launchd->launchctl, &why) < 0)
		return refuse(err, REFUSAL_NO_MANAGER, "launchd", "%s", why.text);
	*ret_service = &TAKE_PTR(launchd)->service;
	return 0;
}

static void backend_close(struct service *service)
{
	free(launchd_of(service));
}

/* ---- names ---- */

struct target {
	char domain[32], service[TARGET_MAX], plist[LAUNCHD_LABEL_MAX + 8];
};

static void target_make(const struct launchd *launchd, const struct pod_name *name, struct target *target)
{
	char label[LAUNCHD_LABEL_MAX];
	launchd_label(launchd->context.plane->prefix, name, label);
	(void)snprintf(target->domain, sizeof target->domain, "gui/%u", (unsigned)getuid());
	(void)snprintf(target->service, sizeof target->service, "%s/%s", target->domain, label);
	(void)snprintf(target->plist, sizeof target->plist, "%s.plist", label);
}

static int pods_dir_of(const struct launchd *launchd, const struct pin **ret_pods_dir, struct err *err)
{
	*ret_pods_dir = launchd->context.pods_dir;
	return *ret_pods_dir ? 0 : err_set(err, -ENOENT, "launchd", launchd->context.plane->pods_dir, "there is no pods dir");
}

/* ---- state ---- */

static int query_until(struct launchd *launchd, const struct pod_name *name, struct deadline until, struct unit_state *ret_state, struct err *err)
{
	struct target target;
	int status;
	target_make(launchd, name, &target);
	int r = launchctl_run(launchd->launchctl, (const char *const[]){"print", target.service, NULL}, until, &status, launchd->text, err);
	if (r == 0)
		r = launchd_print_parse(status, launchd->text, ret_state, err);
	/* launchd tells a job's process, not what it has started: the id in their environment does. */
	if (r == 0)
		r = record_id(launchd->context.pods_dir, name, ret_state->group.pod_id, err);
	(void)snprintf(ret_state->group.pod_name, sizeof ret_state->group.pod_name, "%s", name->text);
	return r;
}

static int backend_query(struct service *service, const struct pod_name *name, struct unit_state *ret_state, struct err *err)
{
	struct launchd *launchd = launchd_of(service);
	int r = query_until(launchd, name, deadline_in_ms(ANSWER_MS), ret_state, err);
	if (r == 0) {
		launchd->last_name = *name;
		launchd->last = *ret_state;
	}
	return r;
}

static int backend_wait(struct service *service, const struct pod_name *name, struct deadline until, struct unit_state *ret_state, struct err *err)
{
	struct launchd *launchd = launchd_of(service);
	struct backoff pause = {0};
	bool known = strcmp(launchd->last_name.text, name->text) == 0;
	struct unit_state before = launchd->last;
	for (;;) {
		int r = backend_query(service, name, ret_state, err);
		if (r < 0 || (known && unit_state_differs(&before, ret_state)) || deadline_passed(until))
			return r;
		if (!known)
			before = *ret_state;
		known = true;
		backoff_sleep(&pause, until);
	}
}

static bool plist_pod(const char *prefix, const char *entry, struct pod_name *ret_name)
{
	char label[LAUNCHD_LABEL_MAX];
	launchd_label(prefix, &(struct pod_name){""}, label);
	size_t len = strlen(label);
	return strncmp(entry, label, len) == 0 && pod_name_from_file(entry + len, ".plist", ret_name) == 0;
}

static int add_listed(struct service_listing *listing, const struct pod_name *name)
{
	struct service_listed *grown = realloc(listing->units, (listing->count + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	listing->units = grown;
	listing->units[listing->count++] = (struct service_listed){.name = *name};
	return 0;
}

static int read_plists(const struct pin *pods_dir, const char *prefix, struct service_listing *listing)
{
	int fd = openat(pods_dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int code = -errno;
		close_quietly(fd);
		return code;
	}
	const struct dirent *entry;
	struct pod_name name;
	int r;
	while ((r = listing_next(dir, &entry)) > 0)
		if (plist_pod(prefix, entry->d_name, &name) && (r = add_listed(listing, &name)) < 0)
			break;
	(void)closedir(dir);
	return r;
}

static int backend_list(struct service *service, struct service_listing *ret_listing, struct err *err)
{
	struct launchd *launchd = launchd_of(service);
	struct service_listing listing = {0};
	const struct pin *pods_dir = launchd->context.pods_dir;
	int r = pods_dir ? read_plists(pods_dir, launchd->context.plane->prefix, &listing) : 0;
	if (r < 0)
		(void)err_code(err, r, "pods dir", launchd->context.plane->pods_dir);
	for (size_t i = 0; r == 0 && i < listing.count; i++)
		r = query_until(launchd, &listing.units[i].name, deadline_in_ms(ANSWER_MS), &listing.units[i].state, err);
	if (r < 0) {
		service_listing_free(&listing);
		return r;
	}
	*ret_listing = listing;
	return 0;
}

/* ---- install, forget ---- */

static bool plist_is(const struct pin *pods_dir, const char *file, const char *text)
{
	AUTO_FREE char *before = NULL;
	size_t len = 0;
	return file_read(pods_dir, file, PLIST_BYTES_MAX, &before, &len, NULL) == 0 && len == strlen(text) && memcmp(before, text, len) == 0;
}

static int backend_install(struct service *service, const struct service_unit *unit, struct err *err)
{
	struct launchd *launchd = launchd_of(service);
	AUTO_FREE char *text = NULL;
	const struct pin *pods_dir;
	struct target target;
	if (!unit->name) /* every pod has a list of its own, and they share nothing */
		return 0;
	const struct unit_input input = {.plane = launchd->context.plane,
					 .program = launchd->context.program,
					 .config_file = launchd->context.config_file,
					 .stop_secs = spec_stop_secs(unit->spec)};
	target_make(launchd, unit->name, &target);
	int r = pods_dir_of(launchd, &pods_dir, err);
	if (r == 0)
		r = unit_text_plist(&input, unit->name, &text, err);
	if (r < 0 || plist_is(pods_dir, target.plist, text))
		return r;
	return file_replace(pods_dir, target.plist, text, strlen(text), 0600, err);
}

static int backend_forget(struct service *service, const struct pod_name *name, struct err *err)
{
	struct launchd *launchd = launchd_of(service);
	struct target target;
	if (!launchd->context.pods_dir)
		return 0;
	target_make(launchd, name, &target);
	const char *const plist = target.plist;
	int r = file_remove(launchd->context.pods_dir, plist, NULL, err);
	return r < 0 ? r : file_sweep(launchd->context.pods_dir, &plist, 1, err);
}

/* ---- stop ---- */

static int await_absent(struct launchd *launchd, const struct pod_name *name, struct deadline until, struct err *err)
{
	struct backoff pause = {0};
	for (;;) {
		struct unit_state state;
		int r = query_until(launchd, name, deadline_in_ms(ANSWER_MS), &state, err);
		if (r < 0 || state.active == UNIT_ABSENT)
			return r;
		if (deadline_passed(until))
			return err_set(err, -ETIME, "stop", name->text, "launchd still knows the job (%s)", state.detail);
		backoff_sleep(&pause, until);
	}
}

/* Its own success is no proof and its failure may mean that nothing was there: what launchd knows afterwards decides. */
static int ask_to_end(struct launchd *launchd, const struct pod_name *name, const char *const words[], struct deadline until, struct err *err)
{
	char said[256];
	struct err why = {0}, lost = {0};
	int status = 0;
	int asked = launchctl_run(launchd->launchctl, words, deadline_earlier(until, deadline_in_ms(ANSWER_MS)), &status, launchd->text, &lost);
	launchd_words(launchd->text, said, sizeof said);
	int r = await_absent(launchd, name, until, &why);
	if (r == 0)
		return 0;
	if (err)
		*err = why;
	if (asked < 0)
		return err_prepend(err, "%s", lost.text);
	return status ? err_prepend(err, "launchctl %s ended with status %d (%s)", words[0], status, said) : r;
}

static int backend_stop(struct service *service, const struct pod_name *name, int64_t grace_ms, struct unit_group *group, struct err *err)
{
	(void)group;
	struct launchd *launchd = launchd_of(service);
	struct target target;
	struct unit_state state;
	target_make(launchd, name, &target);
	int r = query_until(launchd, name, deadline_in_ms(ANSWER_MS), &state, err);
	if (r < 0 || state.active == UNIT_ABSENT)
		return r;
	struct err why = {0};
	r = ask_to_end(launchd, name, (const char *const[]){"bootout", target.service, NULL}, deadline_in_ms(grace_ms), &why);
	if (r == -ETIME)
		return ask_to_end(launchd, name, (const char *const[]){"kill", "SIGKILL", target.service, NULL}, deadline_in_ms(KILLED_MS), err);
	if (r < 0 && err)
		*err = why;
	return r;
}

/* ---- start ---- */

/* launchd opens the log itself, and makes no directory for it. */
static int make_log(const struct launchd *launchd, const struct pod_name *name, struct err *err)
{
	int fd;
	int r = logfile_begin(launchd->context.plane, name, &fd, err);
	if (r == 0)
		close_quietly(fd);
	return r;
}

/* EIO, EINPROGRESS and EALREADY of macOS: the label is still on its way out. */
static bool passes(int status)
{
	return status == 5 || status == 36 || status == 37;
}

static int bootstrap(struct launchd *launchd, const struct pod_name *name, struct deadline until, struct err *err)
{
	struct target target;
	struct backoff pause = {0};
	char path[PLANE_PATH_MAX + LAUNCHD_LABEL_MAX + 16], said[256];
	target_make(launchd, name, &target);
	(void)snprintf(path, sizeof path, "%s/%s", launchd->context.plane->pods_dir, target.plist);
	const char *const words[] = {"bootstrap", target.domain, path, NULL};
	struct deadline patience = deadline_earlier(until, deadline_in_ms(BOOTSTRAP_MS));
	for (;;) {
		int status;
		int r = launchctl_run(launchd->launchctl, words, deadline_in_ms(ANSWER_MS), &status, launchd->text, err);
		if (r < 0 || status == 0)
			return r;
		if (!passes(status) || deadline_passed(patience)) {
			launchd_words(launchd->text, said, sizeof said);
			return err_set(err, -EIO, "start", name->text, "launchctl bootstrap ended with status %d: %s", status, said);
		}
		backoff_sleep(&pause, patience);
	}
}

/* A job that is loaded and does not run is loaded anew: its definition may have changed, and launchd would hold it back after a failure. */
static int backend_start(struct service *service, const struct service_unit *unit, struct deadline until, struct err *err)
{
	struct launchd *launchd = launchd_of(service);
	struct unit_state state;
	int r = query_until(launchd, unit->name, deadline_in_ms(ANSWER_MS), &state, err);
	if (r < 0 || state.active == UNIT_ACTIVE)
		return r;
	if (state.active != UNIT_ABSENT)
		r = backend_stop(service, unit->name, KILLED_MS, NULL, err);
	if (r == 0)
		r = make_log(launchd, unit->name, err);
	return r < 0 ? r : bootstrap(launchd, unit->name, until, err);
}

static int backend_logs(struct service *service, const struct pod_name *name, unsigned lines, bool follow, int fd, struct err *err)
{
	return logfile_copy(launchd_of(service)->context.plane, name, lines, follow, fd, err);
}

const struct service_ops service_launchd = {
	.name = "launchd",
	.open = backend_open,
	.close = backend_close,
	.install = backend_install,
	.start = backend_start,
	.stop = backend_stop,
	.query = backend_query,
	.list = backend_list,
	.wait = backend_wait,
	.logs = backend_logs,
	.forget = backend_forget,
};
