#include "pod/system/surroundings_program.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#else
#include <sys/auxv.h>
#endif

#ifdef __APPLE__

static void find(const char *cwd, char out[PLANE_PATH_MAX])
{
	char path[PLANE_PATH_MAX];
	uint32_t size = sizeof path;
	if (_NSGetExecutablePath(path, &size) < 0 || path_absolute(path, "", cwd, out, NULL) < 0)
		*out = '\0';
}

#else

/* A program that was replaced while it runs is called "… (deleted)"; its successor has the old name. */
static void strip_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path), mark_len = sizeof mark - 1;
	if (len > mark_len && strcmp(path + len - mark_len, mark) == 0 && access(path, F_OK) < 0)
		path[len - mark_len] = '\0';
}

/* For hosts without /proc: what execve(2) was given, which argv[0] need not be. */
static const char *executed_path(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);
	return path && strncmp(path, "/dev/fd/", sizeof "/dev/fd/" - 1) != 0 ? path : NULL;
}

static void find(const char *cwd, char out[PLANE_PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, PLANE_PATH_MAX - 1);
	if (n > 0) {
		out[n] = '\0';
		strip_deleted(out);
		return;
	}
	const char *executed = executed_path();
	if (!executed || path_absolute(executed, "", cwd, out, NULL) < 0)
		*out = '\0';
}

#endif

void surroundings_program(const char *cwd, char out[PLANE_PATH_MAX])
{
	find(cwd, out);
	if (*out != '/' || access(out, X_OK) < 0)
		*out = '\0';
}
