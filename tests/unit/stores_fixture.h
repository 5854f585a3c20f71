/* A data home with a store, a pod's home to stage it into, and what was said about it. */
#pragma once

#include "tests/unit/database_fixture.h"

#include "pod/model/name.h"
#include "pod/model/refusal.h"
#include "pod/system/homes.h"
#include "pod/system/stores.h"

#define ID "0123abcd-0000-4000-8000-0123456789ab"
#define STAGED "to/a/os-home/.local/share/kiro-cli"

struct scene {
	struct place *place;
	struct pin home;
	struct plane plane; /* data_home is <place>/from */
	struct store_report report;
};

static inline struct scene *scene_of(void **state)
{
	return *state;
}

static inline int scene_make(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	struct pod_name name;
	void *place = NULL;
	assert_int_equal(place_make(&place), 0);
	scene->place = place;
	assert_int_equal(pod_name_parse("a", 1, &name, NULL), 0);
	assert_int_equal(home_make(&scene->place->to, &name, ID, &scene->home, NULL), 0);
	assert_int_equal(home_furnish(&scene->home, NULL), 0);
	(void)snprintf(scene->plane.data_home, sizeof scene->plane.data_home, "%s/from", scene->place->path);
	(void)snprintf(scene->plane.home, sizeof scene->plane.home, "%s", scene->place->path);
	assert_int_equal(mkdir(in_place(scene->place, "from/kiro-cli"), 0700), 0);
	*state = scene;
	return 0;
}

static inline int scene_drop(void **state)
{
	struct scene *scene = *state;
	void *place = scene->place;
	store_report_free(&scene->report);
	pin_close(&scene->home);
	free(scene);
	return place_drop(&place);
}

static inline int stage_with(struct scene *scene, bool kirocrew, const struct ini_identity *identities, size_t count, struct err *err)
{
	store_report_free(&scene->report);
	return stores_stage(&scene->home, &scene->plane, kirocrew, identities, count, &scene->report, err);
}

static inline void stage(struct scene *scene)
{
	struct err err = {0};
	if (stage_with(scene, true, NULL, 0, &err) < 0)
		fail_msg("%s: %s", err.subject, err.text);
	for (size_t i = 0; i < scene->report.count; i++)
		assert_null(strchr(scene->report.lines[i], '\n'));
}

static inline bool said(const struct scene *scene, const char *part)
{
	for (size_t i = 0; i < scene->report.count; i++)
		if (strstr(scene->report.lines[i], part))
			return true;
	for (size_t i = 0; i < scene->report.count; i++)
		print_message("line: %s\n", scene->report.lines[i]);
	return false;
}

static inline void put(const struct scene *scene, const char *name, const char *text)
{
	char path[300];
	(void)snprintf(path, sizeof path, "from/kiro-cli/%s", name);
	write_file(in_place(scene->place, path), text, strlen(text));
}

static const char *staged(const struct scene *scene, const char *name)
{
	char path[400];
	(void)snprintf(path, sizeof path, STAGED "/%s", name);
	return in_place(scene->place, path);
}

static const char *source(const struct scene *scene, const char *name)
{
	char path[400];
	(void)snprintf(path, sizeof path, "from/kiro-cli/%s", name);
	return in_place(scene->place, path);
}

static inline bool holds(const char *path, const char *text)
{
	char bytes[256] = "";
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && read(fd, bytes, sizeof bytes - 1) == (ssize_t)strlen(text) && strcmp(bytes, text) == 0;
}

static inline mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static inline void put_database(const struct scene *scene, const char *name)
{
	sqlite3 *db = database_open(source(scene, name));
	sql(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static inline int64_t rows_in(const char *path)
{
	sqlite3 *db = database_open(path);
	int64_t rows = is_sound(db) ? ask_integer(db, "SELECT count(*) FROM t") : -2;
	(void)sqlite3_close(db);
	return rows;
}

static inline bool nothing_staged(const struct scene *scene)
{
	return !is_there(in_place(scene->place, STAGED)) || entries_in(in_place(scene->place, STAGED)) == 0;
}

static inline bool no_draft_left(const struct scene *scene)
{
	size_t expected = is_there(in_place(scene->place, "to/a/os-home/.local")) ? 2 : 1; /* .aws */
	return entries_in(in_place(scene->place, "to/a/os-home")) == expected;
}
