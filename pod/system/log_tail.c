#include "pod/system/log_tail.h"

#include <sys/mman.h>

#include "fsops/cleanup.h"

#define TAIL_BYTES 16384

int service_log_tail(struct service *service, const struct pod_name *name, unsigned lines, char **ret_text)
{
	AUTO_CLOSE int fd = memfd_create("log-tail", MFD_CLOEXEC);
	struct err why = {0};
	if (fd < 0 || service->ops->logs(service, name, lines, false, fd, &why) < 0)
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
