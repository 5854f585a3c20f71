/* casefold_fs [--hang] BACKING MOUNTPOINT: a FUSE file system that shows BACKING with names looked up without regard to case, as macOS and
 * Windows do. With --hang it answers for its root and for nothing else. Stays in the foreground; kill it to end it. */
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static char backing[PATH_MAX];
static int hang;

static void real_name(const char *dir, char *name, size_t size)
{
	DIR *d = opendir(dir);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));)
		if (!strcasecmp(e->d_name, name)) {
			(void)snprintf(name, size, "%s", e->d_name);
			break;
		}
	(void)closedir(d);
}

static void real_path(const char *path, char *out)
{
	(void)snprintf(out, PATH_MAX, "%s", backing);
	while (*(path += strspn(path, "/"))) {
		char name[NAME_MAX + 1] = "";
		size_t n = strcspn(path, "/"), len = strlen(out);
		memcpy(name, path, n < NAME_MAX ? n : NAME_MAX);
		real_name(out, name, sizeof name);
		(void)snprintf(out + len, PATH_MAX - len, "/%s", name);
		path += n;
	}
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
	(void)info;
	char real[PATH_MAX];
	while (hang && strcmp(path, "/"))
		(void)pause();
	real_path(path, real);
	return lstat(real, st) < 0 ? -errno : 0;
}

static int fs_mkdir(const char *path, mode_t mode)
{
	char real[PATH_MAX];
	real_path(path, real);
	return mkdir(real, mode) < 0 ? -errno : 0;
}

static int fs_readlink(const char *path, char *out, size_t size)
{
	char real[PATH_MAX];
	real_path(path, real);
	ssize_t n = readlink(real, out, size - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return 0;
}

static int fs_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
		      enum fuse_readdir_flags flags)
{
	(void)offset, (void)info, (void)flags;
	char real[PATH_MAX];
	real_path(path, real);
	DIR *d = opendir(real);
	if (!d)
		return -errno;
	for (struct dirent *e; (e = readdir(d));)
		(void)fill(buffer, e->d_name, NULL, 0, 0);
	(void)closedir(d);
	return 0;
}

static void *fs_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	(void)connection;
	config->use_ino = 1;
	config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct fuse_operations operations = {
		.init = fs_init, .getattr = fs_getattr, .mkdir = fs_mkdir, .readlink = fs_readlink, .readdir = fs_readdir};
	hang = argc > 1 && !strcmp(argv[1], "--hang");
	if (argc != 3 + hang || !realpath(argv[1 + hang], backing)) {
		(void)fprintf(stderr, "usage: casefold_fs [--hang] BACKING MOUNTPOINT\n");
		return 2;
	}
	char name[] = "casefold_fs", foreground[] = "-f", single[] = "-s";
	char *words[] = {name, foreground, single, argv[2 + hang], NULL};
	return fuse_main(4, words, &operations, NULL);
}
