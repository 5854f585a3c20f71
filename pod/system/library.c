#include "pod/system/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#ifndef ELIBACC
#define ELIBACC ENOENT
#endif

int library_load(const char *file, const struct library_function *functions, size_t count, struct err *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return err_set(err, -ELIBACC, "library", file, "it cannot be loaded: %s", dlerror());
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(library, functions[i].name);
		if (!function)
			return err_set(err, -ENOSYS, "library", file, "it is too old: it has no %s", functions[i].name);
		memcpy(functions[i].slot, &function, sizeof function);
	}
	return 0;
}
