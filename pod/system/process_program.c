#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "pod/system/process.h"

int process_left_program(pid_t pid, const char *program, bool *ret_left, struct err *err)
{
	char link[64];
	struct stat ours, its;
	(void)snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	if (stat(program, &ours) < 0)
		return err_code(err, -errno, "program", program);
	if (stat(link, &its) == 0)
		*ret_left = its.st_dev != ours.st_dev || its.st_ino != ours.st_ino;
	else if (process_unseen(-errno))
		*ret_left = errno == EACCES || errno == EPERM;
	else
		return err_code(err, -errno, "program", link);
	return 0;
}
