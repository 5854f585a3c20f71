#include "pod/model/path.h"

#include <stdio.h>
#include <string.h>

#include "pod/model/plane.h"
#include "pod/model/refusal.h"

static bool component_is(const char *at, size_t len, const char *what)
{
	return strlen(what) == len && !strncmp(at, what, len);
}

bool path_climbs(const char *path)
{
	for (const char *at = path;; at++) {
		size_t len = strcspn(at, "/");
		if (component_is(at, len, ".."))
			return true;
		at += len;
		if (!*at)
			return false;
	}
}

bool path_is_below(const char *path)
{
	for (const char *at = path;; at++) {
		size_t len = strcspn(at, "/");
		if (component_is(at, len, "") || component_is(at, len, ".") || component_is(at, len, ".."))
			return false;
		at += len;
		if (!*at)
			return true;
	}
}

/* "//" and "." folded; ".." stays, because what it means depends on links. -1: it does not fit. */
static int fold(const char *path, char *out, size_t size)
{
	size_t used = 0;
	for (const char *at = path; *at;) {
		size_t len = strcspn(at, "/");
		if (len && !component_is(at, len, ".")) {
			if (used + 1 + len >= size)
				return -1;
			out[used++] = '/';
			memcpy(out + used, at, len);
			used += len;
		}
		at += len + (at[len] == '/');
	}
	if (!used)
		out[used++] = '/';
	out[used] = '\0';
	return 0;
}

const char *path_resolve(const char *text, const char *home, const char *cwd, char *out)
{
	const char *base = *text == '~' ? home : cwd, *rest = *text == '~' ? text + 1 : text;
	if (!*text)
		return "the path is empty";
	if (strpbrk(text, "\n\r"))
		return "a path holds no newline or carriage return";
	if (*text == '~' && *rest && *rest != '/')
		return "only ~ and ~/ are expanded; write ./~ for a file of that name";
	if (*text == '/')
		base = "/";
	else if (!base)
		return *text == '~' ? "there is no home directory" : "the path is relative, and the working directory is gone";
	else if (*base != '/' || strpbrk(base, "\n\r"))
		return "the directory that it stands below is not absolute, or has a newline in its name";
	char joined[2 * PLANE_PATH_MAX], folded[PLANE_PATH_MAX];
	int n = snprintf(joined, sizeof joined, "%s/%s", base, rest);
	if ((size_t)n >= sizeof joined || fold(joined, folded, sizeof folded) < 0)
		return "the path is too long";
	memcpy(out, folded, strlen(folded) + 1);
	return NULL;
}

int path_absolute(const char *text, const char *home, const char *cwd, char *out, struct err *err)
{
	const char *why = path_resolve(text, home, cwd, out);
	return why ? refuse(err, REFUSAL_BAD_CONFIG, text, "%s", why) : 0;
}
