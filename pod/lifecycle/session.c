#include "pod/lifecycle/session.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pod/lifecycle/progress.h"
#include "pod/model/refusal.h"
#include "pod/system/home_look.h"

#define PLANE_LOCK_WAIT_MS 30000

static int pin_if_there(const char *path, struct pin *ret_pin, struct err *err)
{
	*ret_pin = PIN_NONE;
	struct err why = {0};
	int r = pin_open(path, ret_pin, &why);
	if (r == 0 || r == -ENOENT)
		return 0;
	return err_set(err, r, "plane", path, "it cannot be read: %s; `kirocrew-pod doctor` tells what to do", why.text);
}

static int check_apart(const struct session *s, struct err *err)
{
	bool one = s->root.fd >= 0 && s->pods_dir.fd >= 0 && s->root.dev == s->pods_dir.dev && s->root.ino == s->pods_dir.ino;
	return one ? refuse(err, REFUSAL_BAD_CONFIG, s->around.plane.pods_dir, "it is the pods root as well; each needs a directory of its own") : 0;
}

int session_open(const char *config, struct session *ret_session, struct err *err)
{
	struct session *s = ret_session;
	memset(s, 0, sizeof *s);
	s->root = PIN_NONE;
	s->pods_dir = PIN_NONE;
	int r = surroundings_read(config, &s->around, err);
	if (r == 0)
		r = pin_if_there(s->around.plane.root, &s->root, err);
	if (r == 0)
		r = pin_if_there(s->around.plane.pods_dir, &s->pods_dir, err);
	if (r == 0)
		r = check_apart(s, err);
	s->context = (struct service_context){
		.plane = &s->around.plane,
		.pods_dir = s->pods_dir.fd >= 0 ? &s->pods_dir : NULL,
		.program = s->around.program,
		.config_file = config ? s->around.config_file : NULL,
	};
	return r;
}

void session_close(struct session *session)
{
	for (size_t i = 0; i < sizeof session->services / sizeof *session->services; i++)
		service_close(&session->services[i]);
	pin_close(&session->root);
	pin_close(&session->pods_dir);
	surroundings_free(&session->around);
}

static int make_one(const char *path, struct pin *pin, struct err *err)
{
	if (pin->fd >= 0)
		return 0;
	struct err why = {0};
	int r = pin_make_path(path, 0700, pin, &why);
	return r < 0 ? err_set(err, r, "plane", path, "it cannot be made: %s; `kirocrew-pod doctor` tells what to do", why.text) : 0;
}

int session_make_plane(struct session *session, struct err *err)
{
	int r = root_parent_check(session->around.plane.root, err);
	if (r == 0)
		r = make_one(session->around.plane.root, &session->root, err);
	return r < 0 ? r : session_make_pods_dir(session, err);
}

int session_make_pods_dir(struct session *session, struct err *err)
{
	int r = make_one(session->around.plane.pods_dir, &session->pods_dir, err);
	session->context.pods_dir = session->pods_dir.fd >= 0 ? &session->pods_dir : NULL;
	return r < 0 ? r : check_apart(session, err);
}

int session_service(struct session *session, enum backend wanted, struct service **ret_service, struct err *err)
{
	if (wanted == BACKEND_AUTO)
		wanted = session->around.plane.backend;
	struct service **slot = &session->services[wanted];
	if (!*slot) {
		int r = service_open(wanted, &session->context, slot, err);
		if (r < 0)
			return r;
	}
	*ret_service = *slot;
	return 0;
}

static int lock_file(struct session *session, const char *file, const char *subject, int64_t wait_ms, struct lock *ret_lock, struct err *err)
{
	struct err why = {0};
	struct stat st;
	if (fstat(session->pods_dir.fd, &st) == 0 && st.st_uid != geteuid()) /* a lock file of ours would shut its owner out */
		return refuse(err, REFUSAL_UNSAFE_PATH, session->around.plane.pods_dir, "the pods dir belongs to another user (uid %u)", (unsigned)st.st_uid);
	progress_say(session, "%s: waits for another kirocrew-pod that works on it", subject);
	int r = lock_take(&session->pods_dir, file, LOCK_MODE_EXCLUSIVE, deadline_in_ms(wait_ms), ret_lock, &why);
	if (r == -EWOULDBLOCK)
		return refuse(err, REFUSAL_BUSY, subject, "its lock %s is held", file);
	if (r < 0) {
		*err = why;
		return err_prepend(err, "the lock cannot be had");
	}
	progress_say(session, "%s: is looked at", subject);
	return 0;
}

int session_lock_name(struct session *session, const struct pod_name *name, int64_t wait_ms, struct lock *ret_lock, struct err *err)
{
	return lock_file(session, pod_file_lock(session->around.plane.prefix, name).text, name->text, wait_ms, ret_lock, err);
}

int session_lock_plane(struct session *session, struct lock *ret_lock, struct err *err)
{
	return lock_file(session, pod_file_plane_lock(session->around.plane.prefix).text, "plane", PLANE_LOCK_WAIT_MS, ret_lock, err);
}

int session_check_root(struct session *session, const char *recorded, struct err *err)
{
	if (!*recorded)
		return 0;
	if (session->root.fd < 0)
		return err_set(err, -ENOENT, "root", session->around.plane.root,
			       "the pods root is gone, but there are records of pods in it; bring it back, or set KIROCREW_POD_ROOT and KIROCREW_POD_ENV_DIR "
			       "together; nothing was changed");
	int r = *session->root_identity ? 0 : directory_identity(&session->root, session->root_identity, err);
	if (r < 0)
		return r;
	if (strcmp(session->root_identity, recorded) != 0)
		return err_set(err, -ESTALE, "root", session->around.plane.root,
			       "the pods root is not the directory where the pods were made (renamed, replaced or covered by a mount, or "
			       "KIROCREW_POD_ROOT was set without KIROCREW_POD_ENV_DIR); nothing was changed");
	return 0;
}
