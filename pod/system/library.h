/* Shared libraries that few verbs need, loaded where they are used: linked, their own start-up would show in every process. dlopen(3) */
#pragma once

#include <stddef.h>

#include "fsops/err.h"

#ifdef __APPLE__
#define LIBRARY_FILE(name, version) "lib" name ".dylib"
#else
#define LIBRARY_FILE(name, version) "lib" name ".so." version
#endif

/* `slot` is a pointer to a pointer to the function. */
struct library_function {
	const char *name;
	void *slot;
};

/* Fills all slots, or says what is missing (-ELIBACC: no such library, -ENOSYS: no such function in it). The library stays loaded. */
int library_load(const char *file, const struct library_function *functions, size_t count, struct err *err);
