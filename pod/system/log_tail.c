#include "pod/system/log_tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fsops/cleanup.h"

#define TAIL_BYTES 16384

static int copy_log(struct service *service, const struct pod_name *name, unsigned lines, struct deadline until, int fd)
{
	struct backoff backoff = {0};
	struct err why = {0};
	int r;
	while ((r = service->ops->logs(service, name, lines, false, fd, &why)) == -ENOENT && !deadline_passed(until))
		backoff_sleep(&backoff, until);
	return r;
}

/* As whoever prints it would escape it. */
static char *text_without_nul(const char *bytes, size_t len)
{
	static const char nul[] = "\\x00";
	char *text = malloc(len * (sizeof nul - 1) + 1), *at = text;
	for (size_t i = 0; text && i < len; i++)
		at = bytes[i] ? mempcpy(at, &bytes[i], 1) : mempcpy(at, nul, sizeof nul - 1);
	if (text)
		*at = '\0';
	return text;
}

int service_log_tail(struct service *service, const struct pod_name *name, unsigned lines, struct deadline until, char **ret_text)
{
	AUTO_CLOSE int fd = memfd_create("log-tail", MFD_CLOEXEC);
	if (fd < 0 || copy_log(service, name, lines, until, fd) < 0)
		return -1;
	off_t size = lseek(fd, 0, SEEK_END);
	off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
	AUTO_FREE char *bytes = malloc(TAIL_BYTES);
	ssize_t n = bytes ? pread(fd, bytes, TAIL_BYTES, from) : -1;
	char *text = n < 0 ? NULL : text_without_nul(bytes, (size_t)n);
	if (!text)
		return -1;
	free(*ret_text);
	*ret_text = text;
	return 0;
}
