#include <errno.h>

#include "pod/system/watch.h"

int watch_directories(const struct pin *const *directories, size_t count, struct err *err)
{
	(void)directories, (void)count;
	return err_set(err, -ENOTSUP, "watch", NULL, "nothing here tells of changes in a directory");
}
