#include "pod/system/systemd_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_text.h"

/* systemd would load for us what somebody else wrote here. */
static int check_ours(const struct pin *pin, const char *name, struct err *err)
{
	struct stat st;
	if (fstat(pin->fd, &st) < 0)
		return err_code(err, -errno, "unit directory", name);
	if (st.st_uid != geteuid())
		return refuse(err, REFUSAL_UNSAFE_PATH, name, "the directory belongs to uid %u", (unsigned)st.st_uid);
	if (st.st_mode & (S_IWOTH))
		return refuse(err, REFUSAL_UNSAFE_PATH, name, "everybody may write to the directory");
	return 0;
}

/* An existing directory keeps its mode: it is the operator's. */
static int step(const struct pin *at, const char *name, bool make, struct pin *ret_pin, struct err *err)
{
	AUTO_PIN struct pin pin = PIN_NONE;
	struct err why = {0};
	int r = pin_child(at, name, &pin, &why);
	if (r == -ENOENT && make)
		r = pin_make_child(at, name, 0755, NULL, &pin, &why);
	if (r == -ELOOP || r == -ENOTDIR)
		return refuse(err, REFUSAL_UNSAFE_PATH, name, "%s", r == -ELOOP ? "a link stands where a unit directory belongs" : "not a directory");
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	r = check_ours(&pin, name, err);
	if (r == 0)
		*ret_pin = pin_take(&pin);
	return r;
}

int unit_directory_open(const struct plane *plane, bool make, struct pin *ret_directory, struct err *err)
{
	AUTO_PIN struct pin config = PIN_NONE, systemd = PIN_NONE;
	int r = make ? pin_make_path(plane->config_home, 0700, &config, err) : pin_open(plane->config_home, &config, err);
	if (r == 0)
		r = step(&config, "systemd", make, &systemd, err);
	return r < 0 ? r : step(&systemd, "user", make, ret_directory, err);
}

int drop_in_directory_open(const struct pin *directory, const char *name, bool make, struct pin *ret_drop_ins, struct err *err)
{
	return step(directory, name, make, ret_drop_ins, err);
}

void unit_file_free(struct unit_file *file)
{
	free(file->before);
	*file = (struct unit_file){0};
}

int unit_file_read(const struct pin *at, const char *name, struct unit_file *ret_file, struct err *err)
{
	struct unit_file file = {.at = at, .name = name};
	struct err why = {0};
	int r = file_read(at, name, UNIT_FILE_BYTES_MAX, &file.before, &file.before_len, &why);
	if (r == -ELOOP || r == -EINVAL || r == -EFBIG)
		return refuse(err, REFUSAL_UNSAFE_PATH, name, "the unit file is not ours to replace: %s", r == -ELOOP ? "it is a link, perhaps a mask" : why.text);
	if (r < 0 && r != -ENOENT) {
		if (err)
			*err = why;
		return r;
	}
	*ret_file = file;
	return 0;
}

int unit_file_write(struct unit_file *file, const char *text, struct err *err)
{
	size_t len = text ? strlen(text) : 0;
	if (text ? file->before && file->before_len == len && memcmp(file->before, text, len) == 0 : !file->before)
		return 0;
	int r = text ? file_replace(file->at, file->name, text, len, 0644, err) : file_remove(file->at, file->name, NULL, err);
	file->written = file->written || r == 0;
	return r;
}

void unit_file_restore(struct unit_file *file, struct err *err)
{
	struct err why = {0};
	if (!file->written)
		return;
	int r = file->before ? file_replace(file->at, file->name, file->before, file->before_len, 0644, &why) :
			       file_remove(file->at, file->name, NULL, &why);
	file->written = r < 0;
	if (r < 0 && err)
		(void)err_prepend(err, "%s could not be taken back (%s)", file->name, why.text);
}

bool unit_template_exists(const struct plane *plane)
{
	AUTO_PIN struct pin directory = PIN_NONE;
	char name[PLANE_PREFIX_MAX + 16];
	struct stat st;
	(void)snprintf(name, sizeof name, "%s@.service", plane->prefix);
	return unit_directory_open(plane, false, &directory, NULL) == 0 && fstatat(directory.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
}

static bool same_directory(const char *a, const char *b)
{
	struct stat one, other;
	if (strcmp(a, b) == 0)
		return true;
	return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool unit_template_is_others(const struct plane *plane)
{
	AUTO_PIN struct pin directory = PIN_NONE;
	AUTO_UNIT_FILE struct unit_file file = {0};
	char name[PLANE_PREFIX_MAX + 16], pods_dir[PLANE_PATH_MAX];
	(void)snprintf(name, sizeof name, "%s@.service", plane->prefix);
	if (unit_directory_open(plane, false, &directory, NULL) < 0 || unit_file_read(&directory, name, &file, NULL) < 0 || !file.before)
		return false;
	return unit_text_pods_dir(file.before, pods_dir) == 0 && !same_directory(pods_dir, plane->pods_dir);
}
