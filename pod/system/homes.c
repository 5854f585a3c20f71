#include "pod/system/homes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/draft.h"
#include "fsops/file.h"
#include "pod/model/refusal.h"

#define ID_LEN 36
#define MARKER_BYTES_MAX 128

static const char *const furniture[] = {"kiro/settings", HOME_WORKSPACE, "run", "os-home/.aws/sso/cache"};

int home_open(const struct pin *root, const struct pod_name *name, struct pin *ret_home, struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	struct err why = {0};
	struct stat st;
	int r = pin_child(root, name->text, &home, &why);
	if (r == -ENOENT)
		return err_set(err, r, "home", name->text, "there is no home");
	if (r < 0)
		return refuse(err, REFUSAL_HOME, name->text, "%s", why.text);
	if (fstat(home.fd, &st) < 0)
		return err_code(err, -errno, "home", name->text);
	if (st.st_uid != geteuid())
		return refuse(err, REFUSAL_HOME, name->text, "it belongs to another user (uid %u)", (unsigned)st.st_uid);
	*ret_home = pin_take(&home);
	return 0;
}

int home_marker_read(const struct pin *home, char ret_id[ID_LEN + 1], struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = file_read(home, HOME_MARKER, MARKER_BYTES_MAX, &text, &len, err);
	if (r < 0)
		return r;
	if (len != ID_LEN + 1 || text[ID_LEN] != '\n' || strspn(text, "0123456789abcdef-") != ID_LEN)
		return err_set(err, -EINVAL, "home", HOME_MARKER, "it holds no pod ID");
	memcpy(ret_id, text, ID_LEN);
	ret_id[ID_LEN] = '\0';
	return 0;
}

static int mark(const struct pin *home, const char *id, struct err *err)
{
	char text[ID_LEN + 2], now[ID_LEN + 1];
	int found = home_marker_read(home, now, NULL);
	if (found == 0 && strcmp(now, id) == 0)
		return 0;
	int n = snprintf(text, sizeof text, "%.*s\n", ID_LEN, id);
	/* The contents of a home are not synced: after a loss of power the pod is gone, and its record says what the directory is. */
	return found == -ENOENT ? file_create(home, HOME_MARKER, text, (size_t)n, 0600, err) :
				  file_replace(home, HOME_MARKER, text, (size_t)n, 0600, err);
}

struct making {
	const struct pin *root;
	const struct pod_name *name;
	const char *id;
	home_claim *claim; /* NULL: nobody's */
	void *context;
	bool unclaimed; /* afterwards: that failed */
};

static int mark_and_claim(struct making *m, const struct pin *home, struct err *err)
{
	int r = mark(home, m->id, err);
	if (r < 0 || !m->claim)
		return r;
	r = m->claim(m->context, home, err);
	m->unclaimed = r < 0;
	return r;
}

/* One that is not empty otherwise stays. */
static int unmake(const struct making *m, const struct pin *home, const char *name, int cause)
{
	(void)unlinkat(home->fd, HOME_MARKER, 0);
	(void)unlinkat(m->root->fd, name, AT_REMOVEDIR);
	return cause;
}

static int take_or_make(struct making *m, struct pin *ret_home, struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	bool made = false;
	int r = pin_make_child(m->root, m->name->text, 0700, &made, &home, err);
	if (r < 0)
		return r;
	r = mark_and_claim(m, &home, err);
	if (r < 0)
		return made ? unmake(m, &home, m->name->text, r) : r;
	*ret_home = pin_take(&home);
	return 0;
}

/* Without its marker it would be taken for somebody's directory. So it is made under the name of one on its way out, which is seen as unfinished and
 * completed by the next `up` or `down` if this call is killed, and gets its own with the marker in it. */
static int make_marked(struct making *m, struct pin *ret_home, struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	struct pod_file making = pod_file_retired(m->name);
	bool made = false;
	int r = pin_make_child(m->root, making.text, 0700, &made, &home, err);
	if (r < 0 || !made) /* what an interrupted `down` has left bears the name: then it has to do without */
		return r < 0 ? r : take_or_make(m, ret_home, err);
	r = mark_and_claim(m, &home, err);
	if (r == 0)
		r = publish_new(m->root, making.text, m->root, m->name->text, err);
	if (r < 0)
		return unmake(m, &home, making.text, r);
	*ret_home = pin_take(&home);
	return 0;
}

static int home_made(struct making *m, struct pin *ret_home, struct err *err)
{
	struct stat st;
	if (fstatat(m->root->fd, m->name->text, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT ? make_marked(m, ret_home, err) : err_code(err, -errno, "home", m->name->text);
	return take_or_make(m, ret_home, err);
}

int home_make(const struct pin *root, const struct pod_name *name, const char *id, struct pin *ret_home, struct err *err)
{
	return home_make_claimed(root, name, id, NULL, NULL, ret_home, err);
}

int home_make_claimed(const struct pin *root, const struct pod_name *name, const char *id, home_claim *claim, void *context, struct pin *ret_home,
		      struct err *err)
{
	AUTO_PIN struct pin home = PIN_NONE;
	struct making making = {.root = root, .name = name, .id = id, .claim = claim, .context = context};
	struct err why = {0};
	int r = home_made(&making, &home, &why);
	if (making.unclaimed) {
		if (err)
			*err = why;
		return r;
	}
	if (r == -ENOENT)
		return err_set(err, r, "home", name->text, "the pods root is gone");
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM) { /* of this process, and no word about the home */
		if (err)
			*err = why;
		return r;
	}
	if (r < 0)
		return refuse(err, REFUSAL_HOME, strcmp(why.subject, HOME_MARKER) == 0 ? HOME_MARKER : name->text, "%s", why.text);
	*ret_home = pin_take(&home);
	return 0;
}

/* Each level through the pin of the one above. */
static int make_below(const struct pin *home, const char *relative, struct err *err)
{
	AUTO_PIN struct pin at = PIN_NONE;
	for (const char *rest = relative; *rest; rest += *rest == '/') {
		char name[64];
		struct err why = {0};
		struct pin next;
		size_t len = strcspn(rest, "/");
		(void)snprintf(name, sizeof name, "%.*s", (int)len, rest);
		rest += len;
		if (pin_make_child(at.fd < 0 ? home : &at, name, 0700, NULL, &next, &why) < 0) {
			char component[128];
			(void)snprintf(component, sizeof component, "%.*s", (int)(rest - relative), relative);
			return refuse(err, REFUSAL_HOME, component, "%s", why.text);
		}
		pin_close(&at);
		at = next;
	}
	return 0;
}

int home_furnish(const struct pin *home, struct err *err)
{
	for (size_t i = 0; i < sizeof furniture / sizeof *furniture; i++) {
		int r = make_below(home, furniture[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int home_room(const struct pin *home, const char *room, struct pin *ret_room, struct err *err)
{
	struct err why = {0};
	int r = pin_descend(home, room, ret_room, &why);
	if (r == -ENOENT)
		return err_code(err, r, "directory", room);
	return r < 0 ? refuse(err, REFUSAL_HOME, room, "%s", why.text) : 0;
}

int home_check_rooms(const struct pin *home, struct err *err)
{
	static const char *const rooms[] = {"kiro", HOME_WORKSPACE, "run", "os-home"};
	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
		AUTO_PIN struct pin room = PIN_NONE;
		struct err why = {0};
		int r = pin_child(home, rooms[i], &room, &why);
		if (r < 0 && r != -ENOENT)
			return refuse(err, REFUSAL_HOME, rooms[i], "%s", why.text);
	}
	return 0;
}

int home_retire(const struct pin *root, const char *home, const struct pod_name *name, bool *ret_moved, struct err *err)
{
	struct err why = {0};
	int r = publish_new(root, home, root, pod_file_retired(name).text, &why);
	if (r < 0 && r != -ENOENT) {
		if (err)
			*err = why;
		return r;
	}
	*ret_moved = r == 0;
	return 0;
}
