#include "pod/system/log_tail.h"

#include <errno.h>
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

int service_log_tail(struct service *service, const struct pod_name *name, unsigned lines, struct deadline until, char **ret_text)
{
	AUTO_CLOSE int fd = memfd_create("log-tail", MFD_CLOEXEC);
	if (fd < 0 || copy_log(service, name, lines, until, fd) < 0)
		return -1;
	off_t size = lseek(fd, 0, SEEK_END);
	off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
	char *text = calloc(1, TAIL_BYTES + 1);
	if (!text || pread(fd, text, TAIL_BYTES, from) < 0) {
		free(text);
		return -1;
	}
	free(*ret_text);
	*ret_text = text;
	return 0;
}
