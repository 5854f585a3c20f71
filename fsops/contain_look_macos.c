#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/contain_walk.h"

int contain_identify(int fd, struct contain_identity *ret_identity, mode_t *ret_type)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -1;
	*ret_identity = (struct contain_identity){.dev = st.st_dev, .ino = st.st_ino};
	*ret_type = st.st_mode & S_IFMT;
	return 0;
}

int contain_is_magic(int link)
{
	(void)link;
	return 0;
}

/* Since macOS 13. */
ssize_t contain_link_text(int link, char *out, size_t size)
{
	return freadlink(link, out, size);
}

ssize_t contain_path_of(int fd, char out[CONTAIN_PATH_MAX])
{
	char path[MAXPATHLEN];
	if (fcntl(fd, F_GETPATH, path) < 0)
		return -1;
	size_t len = strlen(path);
	if (len > CONTAIN_PATH_MAX)
		len = CONTAIN_PATH_MAX;
	memcpy(out, path, len);
	return (ssize_t)len;
}
