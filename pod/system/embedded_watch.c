/* Changes of one pod, and a look at all of them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/embedded.h"

#define ASKED_AT_ONCE 60 /* beside these, a look at the disk has descriptors open */

void embedded_forget_watch(struct embedded *e)
{
	close_quietly(take_fd(&e->watch));
	e->knows = false;
}

void embedded_remember(struct embedded *e, const struct pod_name *name, const struct unit_state *state)
{
	if (strcmp(e->watched.text, name->text) != 0)
		embedded_forget_watch(e);
	e->watched = *name;
	e->known = *state;
	e->knows = true;
}

static bool changed(const struct unit_state *a, const struct unit_state *b)
{
	return a->active != b->active || a->main_pid != b->main_pid || a->restarts != b->restarts || a->end != b->end || a->status != b->status;
}

/* The next message of the kept connection, which is made if there is none. */
static int next_state(struct embedded *e, const struct pod_name *name, struct deadline until, struct keeper_reply *ret_reply, struct err *err)
{
	if (e->watch < 0) {
		struct keeper_request request = {.verb = KEEPER_ASK_WATCH};
		const struct pin *pods_dir = embedded_pods_dir(e);
		int fd = pods_dir ? channel_connect(pods_dir, name, &e->watched_keeper, err) : -ENOENT;
		if (fd < 0)
			return fd;
		e->watch = fd;
		int r = channel_send(fd, &request, err);
		if (r < 0)
			return r;
	}
	return channel_receive(e->watch, until, ret_reply, err);
}

/* Without a keeper to hear from, a look now and then. */
static int look(struct embedded *e, const struct pod_name *name, struct unit_state *ret_state, struct err *err)
{
	struct unit_state before = e->known;
	bool knew = e->knows;
	close_quietly(take_fd(&e->watch));
	int r = embedded_query(&e->service, name, ret_state, err);
	e->known = before; /* the caller has not been told yet */
	e->knows = knew;
	return r;
}

int embedded_wait(struct service *service, const struct pod_name *name, struct deadline until, struct unit_state *ret_state, struct err *err)
{
	struct embedded *e = embedded_of(service);
	struct backoff backoff = {0};
	struct unit_state state = {0};
	bool seen = false;
	if (strcmp(e->watched.text, name->text) != 0)
		embedded_forget_watch(e);
	e->watched = *name;
	for (;;) {
		struct keeper_reply reply;
		int r = next_state(e, name, until, &reply, NULL);
		if (r == -ETIME)
			break;
		if (r == 0 && reply.answer == KEEPER_SAYS_STATE) {
			state = reply.state;
			embedded_complete(e, name, e->watched_keeper, &state);
		} else {
			r = look(e, name, &state, err);
			if (r < 0)
				return r;
		}
		seen = true;
		if (!e->knows)
			embedded_remember(e, name, &state);
		if (changed(&state, &e->known) || deadline_passed(until))
			break;
		if (e->watch < 0)
			backoff_sleep(&backoff, until);
	}
	if (!seen)
		return e->knows ? (*ret_state = e->known, 0) : embedded_query(service, name, ret_state, err);
	embedded_remember(e, name, &state);
	*ret_state = state;
	return 0;
}

struct asked {
	int fd, code; /* code: negative errno of the question, 0 answered */
	pid_t keeper;
	struct keeper_reply reply;
	struct err why;
};

static int read_names(const struct pin *pods_dir, struct service_listing *listing)
{
	int fd = openat(pods_dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int code = -errno;
		close_quietly(fd);
		return code;
	}
	const struct dirent *entry;
	int r;
	while ((r = listing_next(dir, &entry)) > 0) {
		struct service_listed unit = {0};
		if (pod_name_from_file(entry->d_name, ".sock", &unit.name) < 0)
			continue;
		struct service_listed *grown = realloc(listing->units, (listing->count + 1) * sizeof *grown);
		if (!grown) {
			r = -ENOMEM;
			break;
		}
		listing->units = grown;
		listing->units[listing->count++] = unit;
	}
	(void)closedir(dir);
	return r;
}

static void ask(const struct embedded *e, const struct pod_name *name, struct asked *asked)
{
	struct keeper_request request = {.verb = KEEPER_ASK_STATUS};
	int fd = channel_connect(embedded_pods_dir(e), name, &asked->keeper, &asked->why);
	asked->fd = fd;
	asked->code = fd < 0 ? (fd == -EAGAIN ? -ETIME : fd) : channel_send(fd, &request, &asked->why);
}

/* All of them are asked before the first answer is read: together they wait no longer than one. */
static int ask_some(struct embedded *e, struct service_listed *units, size_t count, struct asked *asked, struct err *err)
{
	struct deadline until = deadline_in_ms(EMBEDDED_ANSWER_MS);
	for (size_t i = 0; i < count; i++)
		ask(e, &units[i].name, &asked[i]);
	int r = 0;
	for (size_t i = 0; i < count; i++) {
		struct asked *a = &asked[i];
		if (a->code == 0)
			a->code = channel_receive(a->fd, until, &a->reply, &a->why);
		if (a->code == 0 && a->reply.answer != KEEPER_SAYS_STATE)
			a->code = -EPROTO;
		close_quietly(take_fd(&a->fd));
	}
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct asked *a = &asked[i];
		units[i].state = a->reply.state;
		if (a->code == 0)
			embedded_complete(e, &units[i].name, a->keeper, &units[i].state);
		else if (a->code == -ECONNRESET)
			r = embedded_look(e, &units[i].name, &units[i].state, err);
		else
			r = embedded_state_without_answer(e, &units[i].name, a->code, a->why.text, a->keeper, &units[i].state, err);
	}
	return r;
}

int embedded_list(struct service *service, struct service_listing *ret_listing, struct err *err)
{
	struct embedded *e = embedded_of(service);
	const struct pin *pods_dir = embedded_pods_dir(e);
	struct service_listing listing = {0};
	int r = pods_dir ? read_names(pods_dir, &listing) : 0;
	if (r < 0)
		(void)err_code(err, r, "pods dir", e->context.plane->pods_dir);
	for (size_t from = 0; r == 0 && from < listing.count; from += ASKED_AT_ONCE) {
		size_t count = listing.count - from < ASKED_AT_ONCE ? listing.count - from : ASKED_AT_ONCE;
		AUTO_FREE struct asked *asked = calloc(count, sizeof *asked);
		r = asked ? ask_some(e, listing.units + from, count, asked, err) : err_code(err, -ENOMEM, "embedded", NULL);
	}
	if (r < 0) {
		free(listing.units);
		return r;
	}
	*ret_listing = listing;
	return 0;
}

/* ---- changes of all of them ---- */

void embedded_close_all(struct embedded *e)
{
	for (size_t i = 0; i < e->all_count; i++)
		close_quietly(e->all[i]);
	free(e->all);
	e->all = NULL;
	e->all_count = 0;
}

/* Asked for every change; -1 for a keeper that is not there, whose coming and going the pods dir tells of. */
static int attend(const struct embedded *e, const struct pod_name *name)
{
	struct keeper_request request = {.verb = KEEPER_ASK_WATCH};
	pid_t keeper = 0;
	AUTO_CLOSE int fd = channel_connect(embedded_pods_dir(e), name, &keeper, NULL);
	return fd >= 0 && channel_send(fd, &request, NULL) == 0 ? take_fd(&fd) : -1;
}

int embedded_watch_all(struct service *service, struct watch_set *watch, struct err *err)
{
	struct embedded *e = embedded_of(service);
	const struct pin *pods_dir = embedded_pods_dir(e);
	struct service_listing listing = {0};
	struct keeper_reply reply;
	struct deadline until = deadline_in_ms(EMBEDDED_ANSWER_MS);
	embedded_close_all(e);
	int r = pods_dir ? read_names(pods_dir, &listing) : 0;
	e->all = r < 0 ? NULL : calloc(listing.count + 1, sizeof *e->all);
	if (r == 0 && !e->all)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < listing.count; i++)
		if ((e->all[e->all_count] = attend(e, &listing.units[i].name)) >= 0)
			e->all_count++;
	service_listing_free(&listing);
	/* The first answer is how it is now, and no change. */
	for (size_t i = 0; r == 0 && i < e->all_count; i++) {
		(void)channel_receive(e->all[i], until, &reply, NULL);
		r = watch_add(watch, e->all[i]);
	}
	return r < 0 ? err_code(err, r, "embedded", NULL) : 0;
}

/* A keeper has nothing else to say. */
bool embedded_changed(struct service *service)
{
	const struct embedded *e = embedded_of(service);
	for (size_t i = 0; i < e->all_count; i++)
		if (watch_is_readable(e->all[i]))
			return true;
	return false;
}
