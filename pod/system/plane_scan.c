#include "pod/system/plane_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "fsops/listing.h"

void plane_entries_free(struct plane_entries *entries)
{
	for (size_t i = 0; i < entries->stranger_count; i++)
		free(entries->strangers[i]);
	free(entries->strangers);
	free(entries->v);
	*entries = (struct plane_entries){0};
}

/* Room for one more, growing by doubling: true at 0, 1, 2, 4, 8 … */
static bool must_grow(size_t n)
{
	return (n & (n - 1)) == 0;
}

int plane_entries_add(struct plane_entries *entries, const struct pod_name *name, unsigned trace, struct err *err)
{
	if (must_grow(entries->n)) {
		void *bigger = realloc(entries->v, (entries->n ? entries->n * 2 : 1) * sizeof *entries->v);
		if (!bigger)
			return err_code(err, -ENOMEM, "scan", NULL);
		entries->v = bigger;
	}
	entries->v[entries->n++] = (struct plane_entry){*name, trace};
	return 0;
}

static int add_stranger(struct plane_entries *entries, const char *entry, struct err *err)
{
	if (must_grow(entries->stranger_count)) {
		void *bigger = realloc(entries->strangers, (entries->stranger_count ? entries->stranger_count * 2 : 1) * sizeof *entries->strangers);
		if (!bigger)
			return err_code(err, -ENOMEM, "scan", NULL);
		entries->strangers = bigger;
	}
	char *copy = strdup(entry);
	if (!copy)
		return err_code(err, -ENOMEM, "scan", NULL);
	entries->strangers[entries->stranger_count++] = copy;
	return 0;
}

static int see_root_entry(struct plane_entries *entries, const char *prefix, const struct dirent *listed, struct err *err)
{
	const char *entry = listed->d_name;
	struct pod_name name;
	(void)prefix;
	if (pod_name_parse(entry, strlen(entry), &name, NULL) == 0)
		return plane_entries_add(entries, &name, TRACE_HOME, err);
	if (pod_name_from_retired(entry, &name) == 0)
		return plane_entries_add(entries, &name, TRACE_RETIRED, err);
	return entry[0] == '.' ? 0 : add_stranger(entries, entry, err);
}

static int see_plist(struct plane_entries *entries, const char *prefix, const char *entry, struct err *err)
{
	char head[PLANE_PREFIX_MAX + 32];
	int n = snprintf(head, sizeof head, "dev.kirocrew.pod.%s.", prefix);
	struct pod_name name;
	if (strncmp(entry, head, (size_t)n) != 0 || pod_name_from_file(entry + n, ".plist", &name) < 0)
		return 0;
	return plane_entries_add(entries, &name, TRACE_PLIST, err);
}

static const struct {
	const char *suffix;
	unsigned trace;
} files[] = {{".env", TRACE_RECORD}, {".refused", TRACE_NOTE}, {".sock", TRACE_SOCKET}, {".down", TRACE_FAREWELL}};
#define FILES (sizeof files / sizeof *files)

static int see_pods_dir_entry(struct plane_entries *entries, const char *prefix, const struct dirent *listed, struct err *err)
{
	struct pod_name name;
	for (size_t i = 0; i < FILES; i++)
		if (pod_name_from_file(listed->d_name, files[i].suffix, &name) == 0) {
			bool plain_record = files[i].trace == TRACE_RECORD && listed->d_type == DT_REG;
			return plane_entries_add(entries, &name, files[i].trace | (plain_record ? TRACE_LISTED : 0), err);
		}
	return see_plist(entries, prefix, listed->d_name, err);
}

static int see_temporary(struct plane_entries *entries, const char *prefix, const struct dirent *listed, struct err *err)
{
	const char *entry = listed->d_name;
	const char *at = strchr(entry, '@');
	struct pod_name name;
	(void)prefix;
	for (size_t i = 0; at && file_is_temporary(entry) && i < FILES; i++)
		if (pod_name_from_file(at + 1, files[i].suffix, &name) == 0)
			return plane_entries_add(entries, &name, 0, err);
	return 0;
}

static void cleanup_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* What is made of one entry; `prefix` is for the plists. */
typedef int see_entry(struct plane_entries *entries, const char *prefix, const struct dirent *listed, struct err *err);

static int each_entry(const struct pin *at, see_entry *see, const char *prefix, struct plane_entries *entries, struct err *err)
{
	int fd = openat(at->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_code(err, -errno, "scan", NULL);
	__attribute__((cleanup(cleanup_dir))) DIR *dir = fdopendir(fd);
	if (!dir) {
		int code = -errno;
		close_quietly(fd);
		return err_code(err, code, "scan", NULL);
	}
	const struct dirent *entry;
	int r;
	while ((r = listing_next(dir, &entry)) > 0)
		if ((r = see(entries, prefix, entry, err)) < 0)
			return r;
	return r < 0 ? err_code(err, r, "scan", NULL) : 0;
}

int plane_scan(const struct pin *root, const struct pin *pods_dir, const char *prefix, struct plane_entries *ret_entries, struct err *err)
{
	AUTO_ENTRIES struct plane_entries entries = {0};
	int r = root->fd >= 0 ? each_entry(root, see_root_entry, NULL, &entries, err) : 0;
	if (r < 0)
		return err_prepend(err, "the pods root cannot be read");
	r = pods_dir->fd >= 0 ? each_entry(pods_dir, see_pods_dir_entry, prefix, &entries, err) : 0;
	if (r < 0)
		return err_prepend(err, "the pods dir cannot be read");
	plane_entries_sort(&entries);
	*ret_entries = entries;
	entries = (struct plane_entries){0};
	return 0;
}

int plane_scan_temporary(const struct pin *pods_dir, struct plane_entries *ret_entries, struct err *err)
{
	AUTO_ENTRIES struct plane_entries entries = {0};
	int r = pods_dir->fd >= 0 ? each_entry(pods_dir, see_temporary, NULL, &entries, err) : 0;
	if (r < 0)
		return err_prepend(err, "the pods dir cannot be read");
	plane_entries_sort(&entries);
	*ret_entries = entries;
	entries = (struct plane_entries){0};
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct plane_entry *)a)->name.text, ((const struct plane_entry *)b)->name.text);
}

void plane_entries_sort(struct plane_entries *entries)
{
	if (entries->n == 0)
		return;
	qsort(entries->v, entries->n, sizeof *entries->v, by_name);
	size_t kept = 0;
	for (size_t i = 1; i < entries->n; i++) {
		if (by_name(&entries->v[kept], &entries->v[i]) == 0)
			entries->v[kept].traces |= entries->v[i].traces;
		else
			entries->v[++kept] = entries->v[i];
	}
	entries->n = kept + 1;
}

/* Adds the trace if the name is there. */
static int look_for(const struct pin *at, const char *name, unsigned trace, unsigned *traces, struct err *err)
{
	struct stat st;
	if (at->fd < 0)
		return 0;
	if (fstatat(at->fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0)
		*traces |= trace;
	else if (errno != ENOENT)
		return err_code(err, -errno, "look", name);
	return 0;
}

int plane_probe(const struct pin *root, const struct pin *pods_dir, const char *prefix, const struct pod_name *name, unsigned *ret_traces, struct err *err)
{
	char plist[POD_FILE_MAX + 64];
	(void)snprintf(plist, sizeof plist, "dev.kirocrew.pod.%s.%s.plist", prefix, name->text);
	struct pod_file retired = pod_file_retired(name), record = pod_file_record(name), note = pod_file_note(name);
	struct pod_file farewell = pod_file_farewell(name), socket = pod_file_socket(name);
	const struct {
		const struct pin *at;
		const char *name;
		unsigned trace;
	} looks[] = {
		{root, name->text, TRACE_HOME},		{root, retired.text, TRACE_RETIRED},	  {pods_dir, record.text, TRACE_RECORD},
		{pods_dir, note.text, TRACE_NOTE},	{pods_dir, farewell.text, TRACE_FAREWELL}, {pods_dir, socket.text, TRACE_SOCKET},
		{pods_dir, plist, TRACE_PLIST},
	};
	unsigned traces = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof looks / sizeof *looks; i++)
		r = look_for(looks[i].at, looks[i].name, looks[i].trace, &traces, err);
	if (r == 0)
		*ret_traces = traces;
	return r;
}
