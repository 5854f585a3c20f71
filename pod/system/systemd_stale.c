#include "pod/system/systemd_stale.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/model/unit_map.h"
#include "pod/model/unit_text.h"
#include "pod/system/systemd_files.h"

static void cleanup_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static bool stands(int at, const char *path)
{
	struct stat st;
	return at >= 0 && fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* "<prefix>@<name>.service.d" with our file in it, of a pod that nobody knows. */
static bool is_stale(const struct plane *plane, const struct pin *directory, const struct pin *pods_dir, const char *entry)
{
	struct pod_name name;
	char unit[256], file[320];
	size_t len = strlen(entry);
	if (len < 3 || len >= sizeof unit || strcmp(entry + len - 2, ".d") != 0)
		return false;
	(void)snprintf(unit, sizeof unit, "%.*s", (int)len - 2, entry);
	(void)snprintf(file, sizeof file, "%s/" DROP_IN_NAME, entry);
	return unit_name_split(plane->prefix, unit, &name) == 0 && stands(directory->fd, file) &&
	       !stands(pods_dir->fd, pod_file_record(&name).text);
}

static void look_drop_ins(const struct plane *plane, const struct pin *directory, const struct pin *pods_dir, struct leftovers *left)
{
	int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(cleanup_dir) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		close_quietly(fd);
		return;
	}
	for (const struct dirent *entry; listing_next(dir, &entry) > 0;) {
		if (!is_stale(plane, directory, pods_dir, entry->d_name))
			continue;
		if (left->count < LEFTOVERS_NAMED)
			(void)snprintf(left->named[left->count], sizeof left->named[0], "%s/systemd/user/%s", plane->config_home,
				       entry->d_name);
		left->count++;
	}
}

static void look_template(const struct plane *plane, const struct pin *directory, struct host_facts *facts)
{
	AUTO_UNIT_FILE struct unit_file file = {0};
	char name[PLANE_PREFIX_MAX + 16];
	(void)snprintf(name, sizeof name, "%s@.service", plane->prefix);
	facts->template_of_others = unit_template_is_others(plane);
	if (unit_file_read(directory, name, &file, NULL) < 0 || !file.before || unit_text_program(file.before, facts->template_program) < 0)
		return;
	facts->template_program_missing = access(facts->template_program, X_OK) < 0;
}

void units_look(const struct plane *plane, const struct pin *pods_dir, struct host_facts *facts)
{
	AUTO_PIN struct pin directory = PIN_NONE;
	if (unit_directory_open(plane, false, &directory, NULL) < 0)
		return;
	look_drop_ins(plane, &directory, pods_dir, &facts->drop_ins);
	look_template(plane, &directory, facts);
}
