#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "fsops/cleanup.h"
#include "pod/system/network.h"

int port_is_free(int port, bool *ret_free, struct err *err)
{
	char subject[16];
	(void)snprintf(subject, sizeof subject, "%d", port);
	if (port < 1 || port > 65535)
		return err_code(err, -EINVAL, "port", subject);
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int one = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0)
		return err_code(err, -errno, "port", subject);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0) {
		*ret_free = true;
		return 0;
	}
	if (errno != EADDRINUSE && errno != EACCES) /* who lacks the privilege cannot have it either */
		return err_code(err, -errno, "port", subject);
	*ret_free = false;
	return 0;
}
