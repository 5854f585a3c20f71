#include "pod/system/home_look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/model/refusal.h"
#include "pod/system/home_stat.h"

#define MARKER ".kirocrew-pod"

static void identity_text(const struct home_stat *st, char out[64])
{
	if (st->has_birth)
		(void)snprintf(out, 64, "%" PRIu64 ":%" PRId64 ".%09u", st->ino, st->birth_secs, st->birth_nsecs);
	else
		(void)snprintf(out, 64, "%" PRIu64 ":-", st->ino);
}

int directory_identity(const struct pin *pin, char out[64], struct err *err)
{
	struct home_stat st;
	int r = home_stat(pin->fd, "", &st);
	if (r < 0)
		return err_code(err, r, "identity", NULL);
	identity_text(&st, out);
	return 0;
}

static bool is_identity(const struct home_stat *st, const char *identity)
{
	char now[64];
	identity_text(st, now);
	return strcmp(now, identity) == 0;
}

static bool has_marker(const struct pin *root, const struct pod_name *name)
{
	static const char *const signs[] = {MARKER, "os-home"}; /* the second is made by KiroCrew's own tool as well */
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		char path[POD_NAME_MAX + 32];
		struct stat st;
		(void)snprintf(path, sizeof path, "%s/%s", name->text, signs[i]);
		if (fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

int home_look(const struct pin *root, const struct pod_name *name, const char *identity, bool recorded, enum home_kind *ret_kind,
	      int64_t *ret_made, struct err *err)
{
	struct home_stat st;
	int r = root->fd < 0 ? -ENOENT : home_stat(root->fd, name->text, &st);
	if (r < 0) {
		if (r != -ENOENT)
			return err_code(err, r, "home", name->text);
		*ret_kind = HOME_ABSENT;
		*ret_made = 0;
		return 0;
	}
	*ret_made = st.has_birth ? st.birth_secs : st.changed_secs;
	bool mount = st.mount && root->mount && st.mount != root->mount;
	if (!S_ISDIR(st.mode) || st.uid != geteuid() || mount)
		*ret_kind = HOME_ODD;
	else if (*identity)
		*ret_kind = is_identity(&st, identity) ? HOME_POD : HOME_REPLACED;
	else
		*ret_kind = recorded || has_marker(root, name) ? HOME_POD : HOME_NOT_A_POD;
	return 0;
}

static void cleanup_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int has_identity(const struct pin *root, const char *entry, const char *identity, bool *ret_has)
{
	struct home_stat st;
	int r = home_stat(root->fd, entry, &st);
	if (r < 0)
		return r;
	*ret_has = S_ISDIR(st.mode) && is_identity(&st, identity);
	return 0;
}

int home_find(const struct pin *root, const char *identity, char **ret_entry, struct err *err)
{
	int fd = openat(root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	__attribute__((cleanup(cleanup_dir))) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int code = -errno;
		close_quietly(fd);
		return err_code(err, code, "home", NULL);
	}
	const struct dirent *entry;
	int r, unseen = 0;
	while ((r = listing_next(dir, &entry)) > 0) {
		bool found = false;
		int code = has_identity(root, entry->d_name, identity, &found);
		unseen = code < 0 && code != -ENOENT ? code : unseen;
		if (found)
			return (*ret_entry = strdup(entry->d_name)) ? 0 : err_code(err, -ENOMEM, "home", NULL);
	}
	if (r < 0 || unseen < 0) /* one that could not be looked at may be it */
		return err_code(err, r < 0 ? r : unseen, "home", NULL);
	*ret_entry = NULL;
	return 0;
}

int home_stands(const struct pin *root, const char *entry, bool *ret_stands, struct err *err)
{
	struct stat st;
	int r = fstatat(root->fd, entry, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ? -errno : 0;
	if (r < 0 && r != -ENOENT)
		return err_code(err, r, "home", entry);
	*ret_stands = r == 0;
	return 0;
}

int root_parent_check(const char *root, struct err *err)
{
	char parent[PLANE_PATH_MAX];
	(void)snprintf(parent, sizeof parent, "%s", root);
	struct stat st;
	/* The nearest ancestor that exists is where the first new component would be made. */
	for (;;) {
		char *slash = strrchr(parent, '/');
		if (!slash)
			return 0;
		slash[slash == parent] = '\0';
		if (stat(parent, &st) == 0)
			break;
		if (errno != ENOENT)
			return err_code(err, -errno, "root", parent);
		if (strcmp(parent, "/") == 0)
			return 0;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return refuse(err, REFUSAL_UNSAFE_PATH, parent, "the parent of the pods root belongs to another user (uid %u)", (unsigned)st.st_uid);
	if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
		return refuse(err, REFUSAL_UNSAFE_PATH, parent, "the parent of the pods root is writable by everybody and has no sticky bit");
	return 0;
}
