#include "fsops/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/file.h"

static int remove_files(const struct pin *folder, const char *const *files, size_t count, bool *removed, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		bool was_there = false;
		int r = file_remove(folder, files[i], &was_there, err);
		if (r < 0 && r != -EISDIR)
			return r;
		*removed |= was_there;
	}
	return 0;
}

int folder_forget(const struct pin *at, const char *name, const char *const *files, size_t count, bool *ret_removed, struct err *err)
{
	AUTO_PIN struct pin folder = PIN_NONE;
	struct err why = {0};
	bool removed = false;
	int r = pin_child(at, name, &folder, &why);
	if (r == -ENOENT || (r < 0 && pin_other_stands(at, name, S_IFDIR)))
		return 0;
	if (r == 0)
		r = remove_files(&folder, files, count, &removed, &why);
	if (r == 0 && unlinkat(at->fd, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
		r = err_code(&why, -errno, "remove", name);
	if (r < 0 && err)
		*err = why;
	if (ret_removed)
		*ret_removed = removed;
	return r;
}
