#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/host_parts.h"
#include "pod/system/process.h"
#include "pod/system/spawn.h"

#define SETTING_BYTES_MAX 4096

static bool is_directory(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_socket(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* The first line of a kernel file; false: there is no such file. */
static bool first_line(const char *path, char *out, size_t size)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	*out = '\0';
	if (process_file(AT_FDCWD, path, SETTING_BYTES_MAX, &text, &len) < 0)
		return false;
	(void)snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
	return true;
}

static long setting(const char *path)
{
	char line[64];
	return first_line(path, line, sizeof line) ? strtol(line, NULL, 10) : -1;
}

static void look_sessions(struct host_facts *facts)
{
	char path[512];
	const char *given = secure_getenv("XDG_RUNTIME_DIR");
	bool usable = given && *given == '/' && strlen(given) < 400;
	facts->booted_with_systemd = is_directory("/run/systemd/system");
	facts->logind = facts->booted_with_systemd && is_directory("/run/systemd/users");
	(void)snprintf(path, sizeof path, "/var/lib/systemd/linger/%s", facts->user);
	facts->lingers = *facts->user && access(path, F_OK) == 0;
	if (usable)
		(void)snprintf(path, sizeof path, "%s/bus", given);
	else
		(void)snprintf(path, sizeof path, "/run/user/%u/bus", (unsigned)geteuid());
	facts->bus = is_socket(path);
	facts->journald = is_socket("/run/systemd/journal/stdout");
	facts->journal_group = getgrnam("systemd-journal") != NULL;
}

static bool writable(const char *directory, const char *file)
{
	char path[PLANE_PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", directory, file);
	return n > 0 && (size_t)n < sizeof path && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static void read_controllers(const char *directory, char *out, size_t size)
{
	char path[PLANE_PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/cgroup.controllers", directory);
	if (n > 0 && (size_t)n < sizeof path)
		(void)first_line(path, out, size);
}

/* Where limits are set: below the user manager if there is one, else below ourselves. */
static void look_controllers(const char *mount, struct cgroup_facts *cgroup)
{
	char manager[128], directory[512];
	unsigned uid = (unsigned)geteuid();
	read_controllers(mount, cgroup->available, sizeof cgroup->available);
	(void)snprintf(manager, sizeof manager, "/user.slice/user-%u.slice/user@%u.service", uid, uid);
	if (cgroup_directory(manager, directory, sizeof directory, NULL) == 0)
		read_controllers(directory, cgroup->controllers, sizeof cgroup->controllers);
	else if (*cgroup->own)
		read_controllers(cgroup->own, cgroup->controllers, sizeof cgroup->controllers);
}

static void look_cgroup(struct cgroup_facts *cgroup)
{
	char mount[256], own[256];
	struct statvfs fs;
	if (cgroup2_mount(mount, sizeof mount, NULL) < 0)
		return;
	cgroup->mounted = true;
	if (cgroup2_of(getpid(), own, sizeof own, NULL) == 0) {
		cgroup->own_is_root = strcmp(own, "/") == 0;
		(void)snprintf(cgroup->own, sizeof cgroup->own, "%s%s", mount, cgroup->own_is_root ? "" : own);
		cgroup->read_only = statvfs(cgroup->own, &fs) == 0 && (fs.f_flag & ST_RDONLY);
		cgroup->own_writable = writable(cgroup->own, ".") && writable(cgroup->own, "cgroup.procs");
	}
	look_controllers(mount, cgroup);
}

/* The only answer to be trusted is an attempt; it ends with the child that makes it. */
static int try_user_namespace(void)
{
	pid_t child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
	int status = spawn_reap(child);
	return status >= 0 && WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

void host_look_system(struct host_facts *facts)
{
	facts->linux_host = true;
	look_sessions(facts);
	look_cgroup(&facts->cgroup);
	facts->user_namespace_error = try_user_namespace();
	facts->max_user_namespaces = setting("/proc/sys/user/max_user_namespaces");
	facts->unprivileged_clone = (int)setting("/proc/sys/kernel/unprivileged_userns_clone");
	facts->apparmor_restricts = (int)setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
}
