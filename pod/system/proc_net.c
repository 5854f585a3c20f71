#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/system/network.h"
#include "pod/system/process.h"

/* The address is printed as 32-bit words of this machine, each in network order. */
static bool answers_loopback(const char *address)
{
	uint32_t word[4] = {0};
	size_t words = strlen(address) / 8;
	if (words != 1 && words != 4)
		return false;
	for (size_t i = 0; i < words; i++) {
		char digits[9] = {0};
		memcpy(digits, address + 8 * i, 8);
		word[i] = (uint32_t)strtoul(digits, NULL, 16);
	}
	uint32_t last = word[words - 1];
	if (words == 1)
		return last == htonl(INADDR_ANY) || last == htonl(INADDR_LOOPBACK);
	if (word[0] || word[1])
		return false;
	if (word[2] == htonl(0xffff))
		return last == htonl(INADDR_ANY) || last == htonl(INADDR_LOOPBACK);
	return !word[2] && !last;
}

/* "sl local:port remote:port state queues timer retransmits uid timeout inode …" */
static bool parse_line(const char *line, struct listening *ret_listening)
{
	char address[33];
	unsigned port, state, uid;
	uint64_t inode;
	int fields = sscanf(line, " %*[0-9]: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*x:%*x %*x:%*x %*x %u %*u %" SCNu64, address, &port, &state,
			    &uid, &inode);
	if (fields != 5 || state != TCP_LISTEN || !answers_loopback(address))
		return false;
	*ret_listening = (struct listening){.port = (int)port, .uid = uid, .inode = inode};
	return true;
}

static int read_table(const char *path, struct listening **v, size_t *n)
{
	AUTO_FCLOSE FILE *file = fopen(path, "re");
	AUTO_FREE char *line = NULL;
	size_t room = 0;
	if (!file)
		return -errno;
	while (getline(&line, &room, file) > 0) {
		struct listening listening;
		if (!parse_line(line, &listening))
			continue;
		struct listening *grown = realloc(*v, (*n + 1) * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		*v = grown;
		(*v)[(*n)++] = listening;
	}
	return ferror(file) ? -EIO : 0;
}

int listening_from_proc(struct listening **ret_v, size_t *ret_count, struct err *err)
{
	struct listening *v = NULL;
	size_t n = 0;
	int r = proc_required(err);
	if (r < 0)
		return r;
	r = read_table("/proc/net/tcp", &v, &n);
	if (r == 0 && (r = read_table("/proc/net/tcp6", &v, &n)) == -ENOENT) /* no IPv6 in this kernel */
		r = 0;
	if (r < 0) {
		free(v);
		return err_code(err, r, "listeners", "/proc/net/tcp");
	}
	*ret_v = v;
	*ret_count = n;
	return 0;
}
