#include "pod/system/systemd_install.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "fsops/folder.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_text.h"
#include "pod/system/journal.h"
#include "pod/system/logfile.h"
#include "pod/system/systemd_files.h"

/* One install under way: what is to be, what was, and where. */
struct install {
	const struct service_unit *unit; /* its name NULL: only the template, which every pod of the plane shares */
	const struct pod_name *name;	 /* the instance that is loaded to see what became of it */
	char template_name[POD_FILE_MAX], drop_in_directory[POD_FILE_MAX + 8];
	char fragment[PLANE_PATH_MAX], drop_in_path[PLANE_PATH_MAX];
	char *template, *drop_in; /* texts; drop_in NULL: none */
	struct pin directory, drop_ins;
	struct unit_file template_file, drop_in_file;
	bool loaded; /* the manager has read them: taking them back would make disk and manager differ */
};

static void install_free(struct install *install)
{
	free(install->template);
	free(install->drop_in);
	unit_file_free(&install->template_file);
	unit_file_free(&install->drop_in_file);
	pin_close(&install->directory);
	pin_close(&install->drop_ins);
}
#define AUTO_INSTALL CLEANUP(install_free)

static void drop_in_directory_name(const char *prefix, const struct pod_name *name, char *out, size_t size)
{
	(void)snprintf(out, size, "%s.d", pod_file_unit(prefix, name).text);
}

static int install_names(const struct plane *plane, struct install *install, struct err *err)
{
	(void)snprintf(install->template_name, sizeof install->template_name, "%s@.service", plane->prefix);
	drop_in_directory_name(plane->prefix, install->name, install->drop_in_directory, sizeof install->drop_in_directory);
	int a = snprintf(install->fragment, sizeof install->fragment, "%s/systemd/user/%s", plane->config_home, install->template_name);
	int b = snprintf(install->drop_in_path, sizeof install->drop_in_path, "%s/systemd/user/%s/" DROP_IN_NAME, plane->config_home,
			 install->drop_in_directory);
	if (a < 0 || b < 0 || (size_t)a >= sizeof install->fragment || (size_t)b >= sizeof install->drop_in_path)
		return err_set(err, -ENAMETOOLONG, "unit", plane->config_home, "the path of the unit directory is too long");
	return 0;
}

static int install_render(const struct systemd *systemd, struct install *install, struct err *err)
{
	const struct plane *plane = systemd->context.plane;
	struct unit_input input = {
		.plane = plane,
		.program = systemd->context.program,
		.log_directory = journal_readable() ? NULL : plane->artifacts,
		.config_file = systemd->context.config_file,
		.stop_secs = STOP_SECS_DEFAULT, /* of all pods; a drop-in has one of its own */
	};
	int r = unit_text_template(&input, &install->template, err);
	if (r < 0 || !install->unit->name)
		return r;
	r = unit_text_drop_in(install->unit->spec, &install->drop_in, err);
	if (r < 0 || !input.log_directory)
		return r;
	/* systemd makes the file of append:, but not its folder. */
	AUTO_CLOSE int fd = -1;
	return logfile_begin(plane, install->unit->name, &fd, err);
}

static int install_open(const struct plane *plane, struct install *install, struct err *err)
{
	int r = unit_directory_open(plane, true, &install->directory, err);
	if (r == 0)
		r = unit_file_read(&install->directory, install->template_name, &install->template_file, err);
	if (r < 0 || !install->unit->name)
		return r;
	struct err why = {0};
	r = drop_in_directory_open(&install->directory, install->drop_in_directory, install->drop_in != NULL, &install->drop_ins, &why);
	if (r == -ENOENT && !install->drop_in)
		return 0;
	if (r < 0) {
		*err = why;
		return r;
	}
	return unit_file_read(&install->drop_ins, DROP_IN_NAME, &install->drop_in_file, err);
}

static int refuse_other_plane(struct systemd *systemd, const struct install *install, struct err *err)
{
	const char *before = install->template_file.before;
	if (!before || unit_text_same_plane(before, install->template))
		return 0;
	char pattern[PLANE_PREFIX_MAX + 16];
	AUTO_UNIT_ENTRIES struct unit_entries entries = {0};
	(void)snprintf(pattern, sizeof pattern, "%s@*.service", systemd->context.plane->prefix);
	int r = manager_list(&systemd->manager, pattern, &entries, err);
	for (size_t i = 0; i < entries.n && r == 0; i++)
		if (strcmp(entries.v[i].properties.active_state, "inactive") != 0)
			r = refuse(err, REFUSAL_BAD_CONFIG, install->fragment,
				   "another plane uses this unit prefix, and its %s is loaded; choose another KIROCREW_POD_UNIT_PREFIX", entries.v[i].unit);
	return r;
}

static int install_write(struct install *install, struct err *err)
{
	int r = unit_file_write(&install->template_file, install->template, err);
	if (r == 0 && install->drop_in_file.name)
		r = unit_file_write(&install->drop_in_file, install->drop_in, err);
	return r;
}

static void install_take_back(struct install *install, struct err *err)
{
	unit_file_restore(&install->template_file, err);
	bool made = install->drop_in_file.written && !install->drop_in_file.before;
	unit_file_restore(&install->drop_in_file, err);
	/* Fails when something else is in it, and then it stays. */
	if (made)
		(void)unlinkat(install->directory.fd, install->drop_in_directory, AT_REMOVEDIR);
}

/* Loaded is what is on disk: reload until it is so, once. */
static int install_load(struct systemd *systemd, struct install *install, struct unit_definition *definition, const struct unit_expected *expected,
			struct err *err)
{
	int r = 0;
	bool written = install->template_file.written || install->drop_in_file.written;
	if (written)
		r = manager_reload(&systemd->manager, err);
	install->loaded = r == 0;
	if (r == 0)
		r = manager_definition(&systemd->manager, expected->unit, definition, err);
	if (r == 0 && !written && !unit_definition_current(definition, expected)) {
		r = manager_reload(&systemd->manager, err);
		if (r == 0)
			r = manager_definition(&systemd->manager, expected->unit, definition, err);
	}
	return r;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* An answer from before counts only for the files that were there then: what was read now may be newer than what the manager has loaded. */
static void judge_ahead(struct systemd *systemd, const struct install *install)
{
	struct stat now;
	bool same = fstatat(install->directory.fd, install->template_name, &now, AT_SYMLINK_NOFOLLOW) == 0 && same_file(&now, &systemd->template_seen);
	if (!same || install->drop_in || install->drop_ins.fd >= 0)
		manager_forget_ahead(&systemd->manager);
}

void systemd_prepare(struct systemd *systemd, const struct pod_name *name)
{
	const char *prefix = systemd->context.plane->prefix;
	AUTO_PIN struct pin directory = PIN_NONE;
	char template[POD_FILE_MAX];
	(void)snprintf(template, sizeof template, "%s@.service", prefix);
	if (systemd->manager.bus && unit_directory_open(systemd->context.plane, false, &directory, NULL) == 0 &&
	    fstatat(directory.fd, template, &systemd->template_seen, AT_SYMLINK_NOFOLLOW) == 0)
		manager_definition_ahead(&systemd->manager, pod_file_unit(prefix, name).text);
}

int systemd_install(struct systemd *systemd, const struct service_unit *unit, struct err *err)
{
	static const struct pod_name any = {"install"};
	AUTO_INSTALL struct install install = {.unit = unit, .name = unit->name ? unit->name : &any, .directory = PIN_NONE, .drop_ins = PIN_NONE};
	AUTO_FREE struct unit_definition *definition = calloc(1, sizeof *definition);
	const struct plane *plane = systemd->context.plane;
	struct err why = {0};
	int r = definition ? install_names(plane, &install, &why) : err_code(&why, -ENOMEM, "unit", install.name->text);
	if (r == 0)
		r = install_render(systemd, &install, &why);
	if (r == 0)
		r = install_open(plane, &install, &why);
	if (r == 0)
		judge_ahead(systemd, &install);
	if (r == 0)
		r = refuse_other_plane(systemd, &install, &why);
	if (r == 0)
		r = install_write(&install, &why);
	struct pod_file file = pod_file_unit(plane->prefix, install.name);
	const struct unit_expected expected = {
		.unit = file.text,
		.fragment = install.fragment,
		.drop_in = install.drop_in ? install.drop_in_path : NULL,
		.program = systemd->context.program,
		.template = install.template,
		.name = install.name,
	};
	if (r == 0)
		r = install_load(systemd, &install, definition, &expected, &why);
	if (r == 0)
		r = unit_definition_check(definition, &expected, &why);
	/* A manager that looks elsewhere has read nothing of ours. */
	if (r < 0 && (!install.loaded || strcmp(definition->load_state, "not-found") == 0))
		install_take_back(&install, &why);
	if (r < 0 && err)
		*err = why;
	return r;
}

static int remove_drop_in(const struct plane *plane, const struct pod_name *name, bool *ret_removed, struct err *err)
{
	static const char *const drop_in[] = {DROP_IN_NAME};
	AUTO_PIN struct pin directory = PIN_NONE;
	char entry[POD_FILE_MAX + 8];
	struct err why = {0};
	int r = unit_directory_open(plane, false, &directory, &why);
	if (r == -ENOENT)
		return 0;
	drop_in_directory_name(plane->prefix, name, entry, sizeof entry);
	if (r == 0)
		r = folder_forget(&directory, entry, drop_in, 1, ret_removed, &why);
	if (r < 0 && err)
		*err = why;
	return r;
}

int systemd_forget(struct systemd *systemd, const struct pod_name *name, struct err *err)
{
	bool removed = false;
	struct err why = {0};
	int r = remove_drop_in(systemd->context.plane, name, &removed, err);
	if (r == 0 && removed)
		r = manager_reload(&systemd->manager, err);
	if (r < 0)
		return r;
	r = manager_reset_failed(&systemd->manager, pod_file_unit(systemd->context.plane->prefix, name).text, &why);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && err)
		*err = why;
	return r;
}
