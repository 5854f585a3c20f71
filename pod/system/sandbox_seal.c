#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/sandbox_parts.h"

#define LOOK_AGAIN_MS 1

/* As the command would resolve it: links stay inside its root. */
static int open_inside(int root, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static bool is_pinned(int fd, const struct pin *pin)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_dev == pin->dev && st.st_ino == pin->ino;
}

static bool is_mount_root(int fd)
{
	struct statx st;
	return statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_TYPE, &st) == 0 && (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* An unnamed file: nothing is left when the seal does not hold. */
static bool write_fails(int dir)
{
	int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EROFS;
	close_quietly(fd);
	return false;
}

static const char *look_at_run(int root, const char *path, const struct pin *run)
{
	AUTO_CLOSE int fd = open_inside(root, path);
	if (fd < 0)
		return "run is not there";
	if (!is_pinned(fd, run))
		return "run is not the pod's";
	if (!is_mount_root(fd) || !write_fails(fd))
		return "run can be written";
	return NULL;
}

static const char *look_at_home(int root, const char *path, const struct pin *home)
{
	AUTO_CLOSE int fd = open_inside(root, path);
	return fd < 0 ? "the home is not there" : is_pinned(fd, home) ? NULL : "the home is not the pod's";
}

static const char *look_at_scratch(int root, const char *path, const struct pin *scratch)
{
	AUTO_CLOSE int fd = open_inside(root, path);
	if (fd < 0 || !is_pinned(fd, scratch) || !is_mount_root(fd))
		return "the temp directory is not there";
	return faccessat(fd, ".", W_OK, AT_EACCESS) == 0 ? NULL : "the temp directory cannot be written";
}

/* What is missing yet, or NULL. */
static const char *look(pid_t pid, const struct sandbox_request *request, const struct sandbox_places *places)
{
	char name[40];
	(void)snprintf(name, sizeof name, "/proc/%d/root", (int)pid);
	AUTO_CLOSE int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return "the sandbox cannot be looked into";
	const char *missing = look_at_home(root, places->home, request->home);
	if (!missing)
		missing = look_at_home(root, request->home_path, request->home);
	if (!missing)
		missing = look_at_run(root, places->run_path, &places->run);
	if (!missing)
		missing = look_at_run(root, places->run_lexical, &places->run);
	if (!missing && *places->scratch)
		missing = look_at_scratch(root, places->scratch, &request->scratch->tmp);
	return missing;
}

int sandbox_seal_wait(pid_t pid, int pidfd, const struct sandbox_request *request, const struct sandbox_places *places, struct deadline until,
		      struct err *err)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	for (;;) {
		const char *missing = look(pid, request, places);
		/* Looked at before it was known to live: the number may have been anybody's. */
		if (poll(&ended, 1, missing ? LOOK_AGAIN_MS : 0) > 0)
			return err_set(err, -ESRCH, "seal", NULL, "the sandbox ended before it was ready");
		if (!missing)
			return 0;
		if (deadline_passed(until))
			return err_set(err, -ETIMEDOUT, "seal", NULL, "the seal does not hold: %s", missing);
	}
}
