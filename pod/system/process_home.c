#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fsops/cleanup.h"
#include "pod/system/process.h"

#define HOME_VARIABLE "KIROCREW_HOME="

static bool is_home(const struct pin *home, const char *path)
{
	struct stat st;
	return *path == '/' && fstatat(AT_FDCWD, path, &st, AT_NO_AUTOMOUNT) == 0 && st.st_dev == home->dev && st.st_ino == home->ino;
}

int process_serves_home(pid_t pid, const struct pin *home, bool *ret_serves, struct err *err)
{
	struct process process;
	AUTO_FREE char *environ_bytes = NULL;
	size_t len = 0;
	*ret_serves = false;
	int r = process_read(pid, &process, err);
	if (r == -ESRCH)
		return 0;
	if (r < 0)
		return r;
	r = process_environ(&process, &environ_bytes, &len);
	if (r == -ESRCH)
		return 0;
	if (r < 0)
		return err_code(err, r, "environment", NULL);
	for (const char *entry = environ_bytes; entry < environ_bytes + len && !*ret_serves; entry += strlen(entry) + 1)
		if (strncmp(entry, HOME_VARIABLE, strlen(HOME_VARIABLE)) == 0)
			*ret_serves = is_home(home, entry + strlen(HOME_VARIABLE));
	return 0;
}
