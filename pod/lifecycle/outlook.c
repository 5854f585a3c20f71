#include "pod/lifecycle/outlook.h"

#include <errno.h>

#include "fsops/cleanup.h"

#define ON_ITS_WAY_MS 1000
#define SETTLED_MS 30000
#define BLIND_MS 2000
#define SETTLE_MS 100

static int watch_services(struct session *session, struct outlook *outlook, struct err *err)
{
	struct service *usual = NULL;
	/* A backend that cannot be reached is told by the look. */
	int r = session_service(session, BACKEND_AUTO, &usual, NULL) < 0 || !usual->ops->watch ? 0 : usual->ops->watch(usual, &outlook->watch, err);
	for (size_t i = 0; r == 0 && i < sizeof session->services / sizeof *session->services; i++) {
		struct service *service = session->services[i];
		if (service && service != usual && service->ops->watch)
			r = service->ops->watch(service, &outlook->watch, err);
	}
	return r;
}

int outlook_open(struct session *session, int output, struct outlook *ret_outlook, struct err *err)
{
	AUTO_OUTLOOK struct outlook outlook = OUTLOOK_NONE;
	const struct pin *directories[] = {&session->root, &session->pods_dir};
	int r = 0;
	if (session->root.fd >= 0 && session->pods_dir.fd >= 0)
		outlook.directories = watch_directories(directories, 2, NULL);
	if (outlook.directories >= 0)
		r = watch_add(&outlook.watch, outlook.directories) < 0 ? err_code(err, -ENOMEM, "watch", NULL) : 0;
	if (r == 0 && watch_is_pipe(output)) {
		outlook.output = output;
		r = watch_add(&outlook.watch, output) < 0 ? err_code(err, -ENOMEM, "watch", NULL) : 0;
	}
	if (r == 0)
		r = watch_services(session, &outlook, err);
	if (r < 0)
		return r;
	*ret_outlook = outlook;
	outlook = OUTLOOK_NONE;
	return 0;
}

void outlook_close(struct outlook *outlook)
{
	watch_free(&outlook->watch);
	close_quietly(take_fd(&outlook->directories));
}

static bool units_changed(struct session *session)
{
	bool changed = false;
	for (size_t i = 0; i < sizeof session->services / sizeof *session->services; i++) {
		struct service *service = session->services[i];
		if (service && service->ops->changed && service->ops->changed(service))
			changed = true;
	}
	return changed;
}

static int64_t patience_ms(const struct outlook *outlook, const struct sights *seen)
{
	for (size_t i = 0; i < seen->n; i++) {
		const struct sight *sight = &seen->v[i];
		if (sight->state == POD_STARTING || sight->state == POD_RESTARTING || sight->facts.life_end != LIFE_LASTS)
			return ON_ITS_WAY_MS;
	}
	return outlook->directories < 0 ? BLIND_MS : SETTLED_MS;
}

/* One change seldom comes alone. */
static void settle(void)
{
	struct deadline until = deadline_in_ms(SETTLE_MS);
	struct backoff backoff = {.ms = SETTLE_MS};
	while (!deadline_passed(until))
		backoff_sleep(&backoff, until);
}

int outlook_await(struct session *session, const struct outlook *outlook, const struct sights *seen, struct err *err)
{
	struct deadline until = deadline_in_ms(patience_ms(outlook, seen));
	while (!units_changed(session)) {
		int r = watch_await(&outlook->watch, until, err);
		if (r != 1)
			return r < 0 ? r : 0;
		if (watch_has_no_reader(outlook->output))
			return -EPIPE;
		if (watch_is_readable(outlook->directories))
			break;
	}
	settle();
	return 0;
}
