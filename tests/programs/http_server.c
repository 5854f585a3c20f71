/* usage: http_server PORT: answers every request on 127.0.0.1 with 200 and two bytes, one connection after the other. The smallest payload that is
 * ready at once, for measuring what is not the payload; statically linked, so that no loader is in the figure. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -1;
	return listen(fd, 64) < 0 ? -1 : fd;
}

static void answer(int fd)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
	char request[4096];
	if (read(fd, request, sizeof request) > 0)
		(void)!write(fd, text, sizeof text - 1);
	(void)close(fd);
}

int main(int argc, char **argv)
{
	int listener = argc == 2 ? listen_on((uint16_t)atoi(argv[1])) : -1;
	if (listener < 0)
		return 1;
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			answer(fd);
	}
}
