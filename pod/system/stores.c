#include "pod/system/stores.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/draft.h"
#include "pod/model/refusal.h"
#include "pod/system/store_parts.h"

#define STAGE_MS 120000
#define ROOM_SPARE (16u << 20)
#define OS_HOME "os-home"

/* Made empty at every boot: only what the pod mints itself ever lives there. */
#define OWN_CACHE ".aws/sso/cache"

static const struct known_store {
	const char *name, *below; /* below plane.data_home, or the home on macOS */
	const char *staged;
} known_stores[] = {
#ifdef __APPLE__
    {"kiro-cli", "Library/Application Support/kiro-cli", "Library/Application Support/kiro-cli"},
    {"amazon-q", "Library/Application Support/amazon-q", "Library/Application Support/amazon-q"},
#else
    {"kiro-cli", "kiro-cli", ".local/share/kiro-cli"},
    {"amazon-q", "amazon-q", ".local/share/amazon-q"},
#endif
};

void store_report_free(struct store_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		free(report->lines[i]);
	free(report->lines);
	*report = (struct store_report){0};
}

void report_line(struct store_report *report, const char *format, ...)
{
	va_list arguments;
	char *line = NULL;
	if (!report->lines)
		report->lines = calloc(STORE_REPORT_LINES, sizeof *report->lines);
	if (!report->lines || report->count == STORE_REPORT_LINES) {
		report->left_out++;
		return;
	}
	va_start(arguments, format);
	int n = vasprintf(&line, format, arguments);
	va_end(arguments);
	if (n < 0)
		report->left_out++;
	else
		report->lines[report->count++] = line;
}

/* --- the OS home's side -------------------------------------------------------------------------------------------------- */

struct staging {
	const struct store *store;
	const struct pin *os_home;
	struct store_report *report;
	struct deadline until;
};

/* The directory for `path` below the store's place, made on the way when `make`. -ENOENT: not there. Anything in the way is a refusal. */
static int staged_parent(const struct staging *staging, const char *path, bool make, struct pin *ret_parent, struct err *err)
{
	AUTO_FREE char *whole = NULL;
	if (asprintf(&whole, "%s/%s", staging->store->staged, path) < 0) {
		whole = NULL;
		return err_code(err, -ENOMEM, "store", path);
	}
	AUTO_PIN struct pin at = PIN_NONE;
	int r = pin_descend(staging->os_home, "", &at, err);
	for (char *rest = whole, *slash; r == 0 && (slash = strchr(rest, '/')); rest = slash + 1) {
		struct pin next;
		struct err why = {0};
		*slash = '\0';
		r = make ? pin_make_child(&at, rest, 0700, NULL, &next, &why) : pin_child(&at, rest, &next, &why);
		if (r == -ENOENT && !make)
			return r;
		if (r == -ELOOP || r == -ENOTDIR || r == -EXDEV || r == -EPERM || r == -EEXIST) {
			char component[256];
			(void)snprintf(component, sizeof component, OS_HOME "/%s", whole);
			return refuse(err, REFUSAL_HOME, component, "%s", why.text);
		}
		if (r < 0)
			return err_set(err, r, "store", rest, "%s: %s", rest, why.text);
		*slash = '/';
		pin_close(&at);
		at = next;
	}
	if (r == 0)
		*ret_parent = pin_take(&at);
	return r;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int something_stands(const struct pin *at, const char *name, mode_t *ret_mode, struct err *err)
{
	struct stat st = {0};
	if (fstatat(at->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
		return err_code(err, -errno, "store", name);
	*ret_mode = st.st_mode;
	return 0;
}

/* A WAL or journal of a database that is gone would be taken for the new one's. */
static int no_foreign_sidecar(const struct pin *at, const char *base, struct err *err)
{
	static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char name[300];
		mode_t mode = 0;
		(void)snprintf(name, sizeof name, "%s%s", base, suffixes[i]);
		int r = something_stands(at, name, &mode, err);
		if (r < 0)
			return r;
		if (mode)
			return err_set(err, -EEXIST, "store", name, "the pod has a %s of another database", name);
	}
	return 0;
}

/* Takes what the pod has out of the survey. */
static int drop_what_is_there(const struct staging *staging, struct survey *survey, size_t *ret_kept, struct err *err)
{
	size_t n = 0;
	for (size_t i = 0; i < survey->n; i++) {
		struct survey_file file = survey->v[i];
		AUTO_PIN struct pin parent = PIN_NONE;
		mode_t mode = 0;
		int r = staged_parent(staging, file.path, false, &parent, err);
		if (r == 0)
			r = something_stands(&parent, base_of(file.path), &mode, err);
		if (r < 0 && r != -ENOENT)
			return r;
		if (S_ISLNK(mode))
			return refuse(err, REFUSAL_HOME, file.path, "a link stands where a file of the store %s belongs",
				      staging->store->name);
		if (mode) {
			survey->bytes -= file.size;
			survey->v[i] = survey->v[n];
			survey->v[n] = file; /* still freed, before the part that is left */
			n++;
		}
	}
	for (size_t i = 0; i < n; i++)
		free(survey->v[i].path);
	survey->n -= n;
	if (n)
		memmove(survey->v, survey->v + n, survey->n * sizeof *survey->v);
	*ret_kept = n;
	return 0;
}

static int publish_one(const struct staging *staging, const struct pin *draft, size_t index, struct survey_file *file, struct err *err)
{
	AUTO_PIN struct pin parent = PIN_NONE;
	char name[24];
	scratch_name(index, name);
	int r = staged_parent(staging, file->path, true, &parent, err);
	if (r == 0 && file->database)
		r = no_foreign_sidecar(&parent, base_of(file->path), err);
	if (r == 0)
		r = publish_new(draft, name, &parent, base_of(file->path), err);
	file->published = r == 0;
	return r;
}

static void take_back(const struct staging *staging, struct survey *survey)
{
	for (size_t i = 0; i < survey->n; i++) {
		AUTO_PIN struct pin parent = PIN_NONE;
		if (survey->v[i].published && staged_parent(staging, survey->v[i].path, false, &parent, NULL) == 0)
			(void)unlinkat(parent.fd, base_of(survey->v[i].path), 0);
	}
}

static int publish_all(const struct staging *staging, const struct pin *draft, struct survey *survey, size_t *ret_count, struct err *err)
{
	size_t count = 0;
	for (size_t i = 0; i < survey->n; i++) {
		if (!survey->v[i].copied)
			continue;
		int r = publish_one(staging, draft, i, &survey->v[i], err);
		if (r < 0) {
			take_back(staging, survey);
			return r;
		}
		count++;
	}
	*ret_count = count;
	return 0;
}

/* --- one store ----------------------------------------------------------------------------------------------------------- */

static int within_limits(const struct staging *staging, const struct survey *survey, struct err *err)
{
	struct statvfs fs;
	if (survey->void_reason)
		return err_set(err, -EINVAL, "store", NULL, "%s", survey->void_reason);
	if (survey->bytes > STORE_BYTES_MAX)
		return err_set(err, -EFBIG, "store", NULL, "it holds %llu bytes, and no more than %llu are staged",
			       (unsigned long long)survey->bytes, STORE_BYTES_MAX);
	if (fstatvfs(staging->os_home->fd, &fs) < 0)
		return err_code(err, -errno, "store", NULL);
	uint64_t have = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (survey->bytes + ROOM_SPARE > have)
		return err_set(err, -ENOSPC, "store", NULL, "it holds %llu bytes and there is room for %llu",
			       (unsigned long long)survey->bytes, (unsigned long long)have);
	if (survey->files > STORE_FILES_MAX)
		report_line(staging->report, "%s: it holds %zu files, only %d of them are staged", staging->store->name, survey->files,
			    STORE_FILES_MAX);
	return 0;
}

static int stage_survey(const struct staging *staging, const struct pin *source, struct survey *survey, size_t *ret_count, struct err *err)
{
	AUTO_DRAFT struct draft draft = DRAFT_NONE;
	int r = draft_make(staging->os_home, &draft, err);
	if (r == 0)
		r = store_copy(staging->store, source, survey, &draft.dir, staging->until, staging->report, err);
	return r < 0 ? r : publish_all(staging, &draft.dir, survey, ret_count, err);
}

static int stage_from(const struct staging *staging, const struct pin *source, struct err *err)
{
	AUTO_SURVEY struct survey survey = {0};
	size_t kept = 0, staged = 0;
	int r = survey_make(staging->store, source, staging->until, staging->report, &survey, err);
	if (r == 0)
		r = drop_what_is_there(staging, &survey, &kept, err);
	if (r == 0 && survey.n)
		r = within_limits(staging, &survey, err);
	if (r == 0 && survey.n)
		r = stage_survey(staging, source, &survey, &staged, err);
	if (r < 0)
		return r;
	report_line(staging->report, "%s: %zu files staged, %zu kept as the pod has them", staging->store->name, staged, kept);
	return 0;
}

static int source_pin(const struct store *store, struct pin *ret_source, struct err *err)
{
	AUTO_PIN struct pin source = PIN_NONE;
	struct stat st;
	int r = pin_open(store->source, &source, err);
	if (r < 0)
		return r;
	if (fstat(source.fd, &st) < 0)
		return err_code(err, -errno, "store", store->source);
	if (st.st_uid != geteuid())
		return err_set(err, -EPERM, "store", store->source, "it belongs to another user");
	*ret_source = pin_take(&source);
	return 0;
}

/* Only what makes the pod's own tree unsafe, and lack of memory, goes beyond a line. */
static int stage_store(const struct staging *staging, struct err *err)
{
	AUTO_PIN struct pin source = PIN_NONE;
	struct err why = {0};
	const struct store *store = staging->store;
	int r = source_pin(store, &source, &why);
	if (r == -ENOENT) {
		report_line(staging->report, "%s: there is no %s, nothing is staged", store->name, store->source);
		return 0;
	}
	if (r == 0)
		r = stage_from(staging, &source, &why);
	if (r == 0)
		return 0;
	report_line(staging->report, "%s: nothing is staged: %s", store->name, why.text);
	if (!why.refusal && r != -ENOMEM)
		return 0;
	if (err)
		*err = why;
	return r;
}

/* --- all of them ------------------------------------------------------------------------------------------------------------ */

/* Relative, downward, and not where only the pod itself writes. */
static const char *staged_fault(const char *staged)
{
	if (!*staged || *staged == '/')
		return "it is not relative to the OS home";
	for (const char *at = staged; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		size_t len = strcspn(at, "/");
		if (len == 0 || (len == 1 && *at == '.') || (len == 2 && strncmp(at, "..", 2) == 0))
			return "it has an empty component, . or ..";
	}
	size_t own = strlen(OWN_CACHE);
	if (strncmp(staged, OWN_CACHE, own) == 0 && (staged[own] == '\0' || staged[own] == '/'))
		return "it is kept for what the pod mints itself";
	return NULL;
}

static int identity_store(const struct plane *plane, const struct ini_identity *identity, struct store *ret_store,
			  struct store_report *report)
{
	struct err why = {0};
	const char *fault = identity->source && identity->staged ? staged_fault(identity->staged) : "it needs both source and staged";
	*ret_store = (struct store){.name = identity->name, .staged = identity->staged};
	if (fault) {
		report_line(report, "%s: nothing is staged: staged: %s", identity->name, fault);
		return -EINVAL;
	}
	int r = path_absolute(identity->source, plane->home, NULL, ret_store->source, &why);
	if (r < 0)
		report_line(report, "%s: nothing is staged: %s", identity->name, why.text);
	return r;
}

static int os_home_pin(const struct pin *home, struct pin *ret_os_home, struct err *err)
{
	struct err why = {0};
	int r = pin_child(home, OS_HOME, ret_os_home, &why);
	return r < 0 ? refuse(err, REFUSAL_HOME, OS_HOME, "%s", why.text) : 0;
}

int stores_stage(const struct pin *home, const struct plane *plane, bool kirocrew, const struct ini_identity *identities,
		 size_t identity_count, struct store_report *report, struct err *err)
{
	AUTO_PIN struct pin os_home = PIN_NONE;
	int r = os_home_pin(home, &os_home, err);
	if (r < 0)
		return r;
	struct staging staging = {.os_home = &os_home, .report = report, .until = deadline_in_ms(STAGE_MS)};
	draft_sweep(&os_home);
	for (size_t i = 0; kirocrew && r == 0 && i < sizeof known_stores / sizeof *known_stores; i++) {
		struct store store = {.name = known_stores[i].name, .staged = known_stores[i].staged};
#ifdef __APPLE__
		(void)snprintf(store.source, sizeof store.source, "%s/%s", plane->home, known_stores[i].below);
#else
		(void)snprintf(store.source, sizeof store.source, "%s/%s", plane->data_home, known_stores[i].below);
#endif
		staging.store = &store;
		r = stage_store(&staging, err);
	}
	for (size_t i = 0; r == 0 && i < identity_count; i++) {
		struct store store;
		if (identity_store(plane, &identities[i], &store, report) < 0)
			continue;
		staging.store = &store;
		r = stage_store(&staging, err);
	}
	return r;
}
