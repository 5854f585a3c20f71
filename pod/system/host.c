#include "pod/system/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/host_parts.h"

static bool is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static const char *find_installer(void)
{
	static const struct {
		const char *program, *words;
	} installers[] = {
	    {"/usr/bin/apt-get", "apt-get install"}, {"/usr/bin/dnf", "dnf install"}, {"/usr/bin/zypper", "zypper install"},
	    {"/usr/bin/pacman", "pacman -S"},	     {"/sbin/apk", "apk add"},	      {"/opt/homebrew/bin/brew", "brew install"},
	};
	for (size_t i = 0; i < sizeof installers / sizeof *installers; i++)
		if (is_program(installers[i].program))
			return installers[i].words;
	return NULL;
}

void host_look(struct host_facts *facts)
{
	const struct passwd *entry = getpwuid(geteuid());
	facts->uid = geteuid();
	(void)snprintf(facts->user, sizeof facts->user, "%s", entry ? entry->pw_name : "");
	facts->installer = find_installer();
	facts->git = is_program("/usr/bin/git") || is_program("/usr/local/bin/git") || is_program("/opt/homebrew/bin/git");
	host_look_system(facts);
}

/* The directory itself, or the nearest one above it that is there. */
static void look_directory(const char *path, struct place_facts *place)
{
	struct stat st;
	struct statvfs fs;
	if (stat(path, &st) == 0) {
		place->owner = st.st_uid;
		place->mode = st.st_mode;
	}
	place->writable = faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
	if (statvfs(path, &fs) < 0)
		return;
	place->read_only = fs.f_flag & ST_RDONLY;
	place->bytes_free = (uint64_t)(geteuid() ? fs.f_bavail : fs.f_bfree) * fs.f_frsize;
	place->inodes_counted = fs.f_files != 0;
	place->inodes_free = geteuid() ? fs.f_favail : fs.f_ffree;
}

static void look_above(const char *path, struct place_facts *place)
{
	char above[PLANE_PATH_MAX];
	struct stat st;
	(void)snprintf(above, sizeof above, "%s", path);
	do {
		char *slash = strrchr(above, '/');
		if (!slash)
			return;
		slash[slash == above] = '\0';
	} while (stat(above, &st) < 0 && strcmp(above, "/") != 0);
	look_directory(above, place);
}

static void look_link(struct place_facts *place)
{
	AUTO_FREE char *target = realpath(place->path, NULL);
	ssize_t n = target ? 0 : readlink(place->path, place->target, sizeof place->target - 1);
	if (target)
		(void)snprintf(place->target, sizeof place->target, "%s", target);
	else
		place->target[n < 0 ? 0 : n] = '\0';
}

void place_look(struct place_facts *place)
{
	struct stat st;
	int r = lstat(place->path, &st) < 0 ? -errno : 0;
	if (r == 0 && S_ISLNK(st.st_mode)) {
		look_link(place);
		r = stat(place->path, &st) < 0 ? -errno : 0;
		place->kind = PLACE_DANGLING;
		if (r == -ENOENT)
			return;
	}
	place->error = r;
	place->kind = r == -ENOENT ? PLACE_ABSENT : r < 0 ? PLACE_CLOSED : S_ISDIR(st.st_mode) ? PLACE_DIRECTORY : PLACE_OTHER;
	if (place->kind == PLACE_ABSENT)
		look_above(place->path, place);
	else if (place->kind == PLACE_DIRECTORY)
		look_directory(place->path, place);
}
