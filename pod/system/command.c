#include "pod/system/command.h"

#include <stdbool.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pod/model/plane.h"

/* 0, or why it cannot be executed. */
static int check_executable(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
	return access(path, X_OK) < 0 ? -errno : 0;
}

static bool is_missing(int code)
{
	return code == -ENOENT || code == -ENOTDIR;
}

static int put(char *out, size_t size, const char *path, const char *word, struct err *err)
{
	int n = snprintf(out, size, "%s", path);
	return n >= 0 && (size_t)n < size ? 0 : err_code(err, -ENAMETOOLONG, "command", word);
}

static int unusable(const char *path, int code, struct err *err)
{
	if (is_missing(code))
		return err_set(err, -ENOENT, "command", path, "not found: %s", path);
	if (code == -EISDIR)
		return err_set(err, -EACCES, "command", path, "%s is a directory", path);
	if (code == -EACCES)
		return err_set(err, code, "command", path, "%s cannot be executed", path);
	(void)err_code(err, code, "command", path);
	err_prepend(err, "%s cannot be executed", path);
	return code;
}

static int find_path(const char *word, const char *cwd, char *out, size_t size, struct err *err)
{
	char path[PLANE_PATH_MAX];
	bool relative = *word != '/';
	if (relative && !(cwd && *cwd))
		return err_set(err, -ENOENT, "command", word, "%s is relative, and the working directory is gone", word);
	while (relative && strncmp(word, "./", 2) == 0)
		word += 2 + strspn(word + 2, "/");
	int n = snprintf(path, sizeof path, "%s%s%s", relative ? cwd : "", relative ? "/" : "", word);
	if (n < 0 || (size_t)n >= sizeof path)
		return err_code(err, -ENAMETOOLONG, "command", word);
	int r = check_executable(path);
	return r < 0 ? unusable(path, r, err) : put(out, size, path, word, err);
}

/* A relative directory would find another program after the next cd, or for the service manager. */
static int search(const char *word, const char *path, char *out, size_t size, struct err *err)
{
	char candidate[PLANE_PATH_MAX], odd[PLANE_PATH_MAX] = "";
	int why = 0;
	for (const char *directory = path; *directory; directory += *directory == ':') {
		size_t len = strcspn(directory, ":");
		int n = snprintf(candidate, sizeof candidate, "%.*s/%s", (int)len, directory, word);
		bool absolute = *directory == '/';
		directory += len;
		if (!absolute || n < 0 || (size_t)n >= sizeof candidate)
			continue;
		int r = check_executable(candidate);
		if (r == 0)
			return put(out, size, candidate, word, err);
		if (!is_missing(r) && !why) {
			why = r;
			memcpy(odd, candidate, (size_t)n + 1);
		}
	}
	return why ? unusable(odd, why, err) : err_set(err, -ENOENT, "command", word, "not found: %s, searched %s", word, path);
}

int command_find(const char *word, const char *path, const char *cwd, char *out, size_t size, struct err *err)
{
	if (!*word)
		return err_set(err, -ENOENT, "command", word, "not found: the command is empty");
	return strchr(word, '/') ? find_path(word, cwd, out, size, err) : search(word, path, out, size, err);
}
