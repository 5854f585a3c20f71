#include "fsops/listing.h"

#include <errno.h>
#include <string.h>

int listing_next(DIR *dir, const struct dirent **ret_entry)
{
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		*ret_entry = entry;
		return 1;
	}
}
