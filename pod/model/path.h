/* Paths as text: what can be said without asking a file system. Internal to pod/model; path_absolute is in plane.h. */
#pragma once

#include <stdbool.h>

bool path_climbs(const char *path); /* has a ".." component */
/* Relative, no empty, "." or ".." component: a place below a directory. */
bool path_is_below(const char *path);
/* path_absolute without its refusal: NULL, or why not. */
const char *path_resolve(const char *text, const char *home, const char *cwd, char *out);
