#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fsops/cleanup.h"
#include "fsops/listing.h"
#include "pod/system/process.h"

#define DELETED " (deleted)"
#define ANCESTORS_MAX (1 << 20)
#define NAMESPACE_MAX 64
#define MAPS_MAX (256UL << 20)

/* How the home is called in one mount namespace: each a prefix, without a '/' at its end. */
struct spellings {
	char namespace[NAMESPACE_MAX];
	char **v;
	size_t n;
};

struct home {
	const struct pin *pin;
	const char *path;
	char canonical[PATH_MAX];
	dev_t device;		       /* as mountinfo tells it, 0 unknown */
	char inside[PATH_MAX];	       /* path within its file system */
	struct spellings ours, theirs; /* theirs: of the foreign namespace that was met last */
};

static void spellings_free(struct spellings *spellings)
{
	for (size_t i = 0; i < spellings->n; i++)
		free(spellings->v[i]);
	free(spellings->v);
	*spellings = (struct spellings){0};
}

static void home_free(struct home *home)
{
	spellings_free(&home->ours);
	spellings_free(&home->theirs);
}

static int spellings_add(struct spellings *spellings, const char *first, const char *second)
{
	char *text = NULL, **grown = realloc(spellings->v, (spellings->n + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	spellings->v = grown;
	if (asprintf(&text, "%s%s", first, second) < 0)
		return -ENOMEM;
	for (size_t len = strlen(text); len && text[len - 1] == '/'; len--)
		text[len - 1] = '\0';
	spellings->v[spellings->n++] = text;
	return 0;
}

/* The rest of `path` below `prefix`; NULL when it is not there. */
static const char *rest_below(const char *path, const char *prefix)
{
	size_t len = strcmp(prefix, "/") ? strlen(prefix) : 0;
	if (strncmp(path, prefix, len) || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path + len;
}

static int spellings_from_mounts(const struct home *home, const struct mount_list *mounts, struct spellings *spellings)
{
	int r = 0;
	for (size_t i = 0; r == 0 && home->device && i < mounts->n; i++) {
		const struct mount *mount = &mounts->v[i];
		if (mount->dev != home->device)
			continue;
		const char *rest = rest_below(home->inside, mount->root);
		if (rest)
			r = spellings_add(spellings, strcmp(mount->point, "/") ? mount->point : "", rest);
		else if (rest_below(mount->root, home->inside))
			r = spellings_add(spellings, mount->point, "");
	}
	return r;
}

static uint64_t mount_id_of(int fd)
{
	char path[64], line[128];
	uint64_t id = 0;
	(void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	AUTO_FCLOSE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, "mnt_id:", 7))
			id = strtoull(line + 7, NULL, 10);
	return id;
}

/* Where the home is within its file system: that is the same in every mount namespace. */
static void locate(struct home *home, const struct mount_list *mounts)
{
	uint64_t id = mount_id_of(home->pin->fd);
	for (size_t i = 0; i < mounts->n; i++) {
		const struct mount *mount = &mounts->v[i];
		const char *rest = mount->id == id ? rest_below(home->canonical, mount->point) : NULL;
		if (!rest)
			continue;
		int n = snprintf(home->inside, sizeof home->inside, "%s%s", strcmp(mount->root, "/") ? mount->root : "", rest);
		if (n > 0 && (size_t)n < sizeof home->inside)
			home->device = mount->dev;
	}
}

static int read_link(int at, const char *name, char *out, size_t size)
{
	ssize_t n = readlinkat(at, name, out, size - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return (size_t)n == size - 1 ? -ENAMETOOLONG : 0;
}

static int home_prepare(const struct pin *pin, const char *path, struct home *home)
{
	AUTO_MOUNTS struct mount_list mounts = {0};
	char link[64];
	*home = (struct home){.pin = pin, .path = path};
	AUTO_CLOSE int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (self < 0)
		return -errno;
	(void)snprintf(link, sizeof link, "fd/%d", pin->fd);
	int r = read_link(self, link, home->canonical, sizeof home->canonical);
	if (r == 0)
		r = read_link(self, "ns/mnt", home->ours.namespace, sizeof home->ours.namespace);
	if (r == 0)
		r = mounts_read(self, &mounts);
	if (r == 0) {
		locate(home, &mounts);
		r = spellings_from_mounts(home, &mounts, &home->ours);
	}
	if (r == 0)
		r = spellings_add(&home->ours, home->canonical, "");
	return r == 0 && path ? spellings_add(&home->ours, path, "") : r;
}

/* The names that hold for this process, from now on in home->theirs: none where it sees what we see. Ours hold everywhere, since what was
 * opened out here keeps its name. */
static int spellings_for(struct home *home, int directory)
{
	char namespace[NAMESPACE_MAX];
	AUTO_MOUNTS struct mount_list mounts = {0};
	int r = read_link(directory, "ns/mnt", namespace, sizeof namespace);
	if (r < 0)
		namespace[0] = '\0';
	if (*namespace && !strcmp(namespace, home->theirs.namespace))
		return 0;
	spellings_free(&home->theirs);
	if (r == 0 && strcmp(namespace, home->ours.namespace) != 0) {
		r = mounts_read(directory, &mounts);
		if (r == 0)
			r = spellings_from_mounts(home, &mounts, &home->theirs);
		if (r == 0)
			memcpy(home->theirs.namespace, namespace, sizeof namespace);
	}
	return process_unseen(r) || r == -EINVAL ? 0 : r; /* EINVAL: it is about to end and has no mounts any more */
}

static bool text_is_spelled(const char *text, const struct spellings *spellings)
{
	for (size_t i = 0; *text == '/' && i < spellings->n; i++) {
		size_t len = strlen(spellings->v[i]);
		const char *rest = text + len;
		if (!strncmp(text, spellings->v[i], len) && (*rest == '/' || *rest == '\0' || !strcmp(rest, DELETED)))
			return true;
	}
	return false;
}

static bool text_is_below(const char *text, const struct home *home)
{
	return text_is_spelled(text, &home->ours) || text_is_spelled(text, &home->theirs);
}

static bool is_home(const struct home *home, const struct stat *st)
{
	return st->st_dev == home->pin->dev && st->st_ino == home->pin->ino;
}

/* What a process has on a file system that fails is not in the home, which answers; but without descriptors nothing can be looked at. */
static bool short_of_means(int code)
{
	return code == -EMFILE || code == -ENFILE || code == -ENOMEM;
}

static int look_at(int at, const char *name, int *ret_fd, struct stat *ret_st)
{
	AUTO_CLOSE int fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Upward from a directory, until the home or the top; works in a deleted directory, too. */
static int directory_is_below(const struct home *home, int at, const char *name, bool *ret_is)
{
	AUTO_CLOSE int fd = -1;
	struct stat st, above;
	int r = look_at(at, name, &fd, &st);
	for (int steps = 0; r == 0 && st.st_dev == home->pin->dev && steps < ANCESTORS_MAX; steps++) {
		int parent = -1;
		*ret_is = is_home(home, &st);
		if (*ret_is)
			return 0;
		r = look_at(fd, "..", &parent, &above);
		if (r == 0 && above.st_dev == st.st_dev && above.st_ino == st.st_ino) {
			close_quietly(parent);
			return 0;
		}
		close_quietly(fd);
		fd = parent;
		st = above;
	}
	return short_of_means(r) ? r : 0;
}

/* A name that is too long to be told is judged by its directories; a file has none to ask, so its device must do. */
static int unnamed_is_below(const struct home *home, int at, const char *name, bool *ret_is)
{
	struct statx st;
	int r = directory_is_below(home, at, name, ret_is);
	if (r == 0 && !*ret_is)
		*ret_is = statx(at, name, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 && !S_ISDIR(st.stx_mode) &&
			  makedev(st.stx_dev_major, st.stx_dev_minor) == home->pin->dev;
	return r;
}

static int link_is_below(const struct home *home, int at, const char *name, bool *ret_is)
{
	char text[PATH_MAX + sizeof DELETED];
	int r = read_link(at, name, text, sizeof text);
	if (r == -ENAMETOOLONG)
		return unnamed_is_below(home, at, name, ret_is);
	*ret_is = r == 0 && text_is_below(text, home);
	return process_unseen(r) ? 0 : r;
}

static int open_listing(int directory, const char *name, DIR **ret_dir)
{
	int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_dir = fdopendir(fd);
	if (*ret_dir)
		return 0;
	int code = -errno; /* of a process that has ended meanwhile: ESRCH, ENOENT */
	close_quietly(fd);
	return code;
}

static int holds_descriptor(const struct home *home, int directory, bool *ret_holds)
{
	DIR *fds = NULL;
	const struct dirent *entry;
	int r = open_listing(directory, "fd", &fds), more = 0;
	if (r < 0)
		return r;
	while (r == 0 && !*ret_holds && (more = listing_next(fds, &entry)) > 0)
		r = link_is_below(home, dirfd(fds), entry->d_name, ret_holds);
	(void)closedir(fds);
	return r == 0 && more < 0 ? more : r;
}

static int holds_mapping(const struct home *home, int directory, bool *ret_holds)
{
	AUTO_FREE char *maps = NULL;
	size_t len;
	int r = process_file(directory, "maps", MAPS_MAX, &maps, &len);
	if (r < 0)
		return r;
	char *rest = maps;
	for (char *line; !*ret_holds && (line = strsep(&rest, "\n"));) {
		char *text = strchr(line, '/');
		if (!text)
			continue;
		unescape_octal(text);
		*ret_holds = text_is_below(text, home);
	}
	return 0;
}

/* -EACCES, -ESRCH and their like: not a holder that we may see. */
static int holds(const struct home *home, int directory, bool *ret_holds)
{
	static const char *const links[] = {"cwd", "root", "exe"};
	int r = 0;
	for (size_t i = 0; r == 0 && !*ret_holds && i < sizeof links / sizeof *links; i++)
		r = link_is_below(home, directory, links[i], ret_holds);
	for (size_t i = 0; r == 0 && !*ret_holds && i < 2; i++)
		r = directory_is_below(home, directory, links[i], ret_holds);
	if (r == 0 && !*ret_holds)
		r = holds_descriptor(home, directory, ret_holds);
	if (r == 0 && !*ret_holds)
		r = holds_mapping(home, directory, ret_holds);
	return process_unseen(r) ? 0 : r;
}

/* A leader that has ended shows no descriptors: those of its threads are asked. */
static int threads_hold(const struct home *home, int directory, bool *ret_holds)
{
	DIR *threads = NULL;
	const struct dirent *entry;
	int r = open_listing(directory, "task", &threads), more = 0;
	if (r < 0)
		return r;
	while (r == 0 && !*ret_holds && (more = listing_next(threads, &entry)) > 0) {
		AUTO_CLOSE int thread = openat(dirfd(threads), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = thread < 0 ? -errno : holds(home, thread, ret_holds);
		r = process_unseen(r) ? 0 : r;
	}
	(void)closedir(threads);
	return r == 0 && more < 0 ? more : r;
}

static int look_into(struct home *home, const struct process *process, bool *ret_holds)
{
	AUTO_CLOSE int directory = process_open(process);
	int r = directory < 0 ? directory : spellings_for(home, directory);
	if (r == 0)
		r = holds(home, directory, ret_holds);
	if (r == 0 && !*ret_holds && process->state == 'Z')
		r = threads_hold(home, directory, ret_holds);
	bool ending = false;
	if (r == 0 && *ret_holds)
		r = process_is_ending(directory, &ending);
	*ret_holds &= !ending && r != -ESRCH;
	return process_unseen(r) ? 0 : r;
}

int process_holders(const struct pin *pin, const char *path, struct process_list *ret_list, struct err *err)
{
	AUTO_PROCESSES struct process_list all = {0}, list = {0};
	CLEANUP(home_free) struct home home = {0};
	int r = process_scan(&all, err);
	if (r < 0)
		return r;
	r = home_prepare(pin, path, &home);
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		bool found = false;
		if (all.v[i].pid != getpid())
			r = look_into(&home, &all.v[i], &found);
		if (r == 0 && found)
			r = process_list_add(&list, &all.v[i]);
	}
	if (r < 0)
		return err_code(err, r, "holders", path);
	*ret_list = list;
	list = (struct process_list){0};
	return 0;
}
