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
#include "pod/system/process.h"

#define DELETED " (deleted)"
#define ANCESTORS_MAX (1 << 20)
#define NAMESPACE_MAX 64

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
	if (read_link(directory, "ns/mnt", namespace, sizeof namespace) < 0)
	namespace[0] = '\0';
	if (*namespace && !strcmp(namespace, home->theirs.namespace))
		return 0;
	spellings_free(&home->theirs);
	if (!*namespace || !strcmp(namespace, home->ours.namespace) || mounts_read(directory, &mounts) < 0)
		return 0;
	int r = spellings_from_mounts(home, &mounts, &home->theirs);
	if (r == 0)
		memcpy(home->theirs.namespace, namespace, sizeof namespace);
	return r;
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

/* Upward from a directory, until the home or the top; works in a deleted directory, too. */
static bool directory_is_below(const struct home *home, int at, const char *name)
{
	AUTO_CLOSE int fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, above;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != home->pin->dev)
		return false;
	for (int steps = 0; steps < ANCESTORS_MAX; steps++) {
		if (is_home(home, &st))
			return true;
		int parent = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (parent < 0 || fstat(parent, &above) < 0 || (above.st_dev == st.st_dev && above.st_ino == st.st_ino)) {
			close_quietly(parent);
			return false;
		}
		close_quietly(fd);
		fd = parent;
		st = above;
	}
	return false;
}

/* A name that is too long to be told is judged by its directories; a file has none to ask, so its device must do. */
static bool unnamed_is_below(const struct home *home, int at, const char *name)
{
	struct statx st;
	if (directory_is_below(home, at, name))
		return true;
	return statx(at, name, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 && !S_ISDIR(st.stx_mode) &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == home->pin->dev;
}

static bool link_is_below(const struct home *home, int at, const char *name)
{
	char text[PATH_MAX + sizeof DELETED];
	int r = read_link(at, name, text, sizeof text);
	return r == -ENAMETOOLONG ? unnamed_is_below(home, at, name) : r == 0 && text_is_below(text, home);
}

static bool holds_descriptor(const struct home *home, int directory)
{
	int fd = openat(directory, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *fds = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;
	if (!fds) {
		close_quietly(fd);
		return false;
	}
	for (struct dirent *entry; !found && (entry = readdir(fds));)
		found = *entry->d_name != '.' && link_is_below(home, fd, entry->d_name);
	(void)closedir(fds);
	return found;
}

static bool holds_mapping(const struct home *home, int directory)
{
	AUTO_CLOSE int fd = openat(directory, "maps", O_RDONLY | O_CLOEXEC);
	AUTO_FCLOSE FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	AUTO_FREE char *line = NULL;
	size_t room = 0;
	bool found = false;
	if (!maps)
		return false;
	(void)take_fd(&fd);
	while (!found && getline(&line, &room, maps) > 0) {
		char *text = strchr(line, '/');
		if (!text)
			continue;
		text[strcspn(text, "\n")] = '\0';
		unescape_octal(text);
		found = text_is_below(text, home);
	}
	return found;
}

static bool holds(const struct home *home, int directory)
{
	static const char *const links[] = {"cwd", "root", "exe"};
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		if (link_is_below(home, directory, links[i]))
			return true;
	return directory_is_below(home, directory, "cwd") || directory_is_below(home, directory, "root") ||
	       holds_descriptor(home, directory) || holds_mapping(home, directory);
}

/* A leader that has ended shows no descriptors: those of its threads are asked. -EACCES and -ESRCH: not a holder that we may see. */
static int look_into(struct home *home, const struct process *process, bool *ret_holds)
{
	AUTO_CLOSE int directory = process_open(process);
	if (directory < 0)
		return directory == -EMFILE || directory == -ENFILE ? directory : 0;
	int r = spellings_for(home, directory);
	if (r < 0)
		return r;
	*ret_holds = holds(home, directory);
	if (*ret_holds || process->state != 'Z')
		return 0;
	int fd = openat(directory, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *threads = fd < 0 ? NULL : fdopendir(fd);
	if (!threads) {
		close_quietly(fd);
		return 0;
	}
	for (struct dirent *entry; !*ret_holds && (entry = readdir(threads));) {
		AUTO_CLOSE int thread = *entry->d_name == '.' ? -1 : openat(fd, entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		*ret_holds = thread >= 0 && holds(home, thread);
	}
	(void)closedir(threads);
	return 0;
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
