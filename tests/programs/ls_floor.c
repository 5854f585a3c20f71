/* What any `ls` has to ask the kernel for, and nothing else: the names of both directories, each record, each home, each keeper, all listeners once,
 * and each payload. ls_floor ROOT PODS_DIR. It prints how many of each there were. Two threads share the files, as the tool's do. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST 20000
#define RECORD_MOST 4096
#define QUESTION "kirocrew-keeper 1\nstatus\n"

static int root, pods_dir;
static char records[MOST][80], keepers[MOST][80], homes[MOST][80];
static int ports[MOST]; /* by record; 0: its pod is not said to be one of this backend */
static size_t record_count, keeper_count, home_count;
static atomic_size_t taken;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static bool ends(const char *name, const char *suffix)
{
	size_t len = strlen(name), end = strlen(suffix);
	return len > end && strcmp(name + len - end, suffix) == 0;
}

static void list(int at, void (*take)(const char *name))
{
	DIR *dir = fdopendir(openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!dir)
		fail("list");
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (*entry->d_name != '.')
			take(entry->d_name);
	(void)closedir(dir);
}

static void take_home(const char *name)
{
	if (home_count < MOST)
		(void)snprintf(homes[home_count++], sizeof *homes, "%s", name);
}

static void take_file(const char *name)
{
	if (ends(name, ".env") && record_count < MOST)
		(void)snprintf(records[record_count++], sizeof *records, "%s", name);
	if (ends(name, ".sock") && keeper_count < MOST)
		(void)snprintf(keepers[keeper_count++], sizeof *keepers, "%s", name);
}

static void read_record(size_t i)
{
	char text[RECORD_MOST + 1];
	struct stat st;
	int fd = openat(pods_dir, records[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		fail(records[i]);
	ssize_t n = read(fd, text, RECORD_MOST);
	if (n < 0)
		fail(records[i]);
	text[n] = '\0';
	(void)close(fd);
	if (strstr(text, "BACKEND='embedded'"))
		ports[i] = (int)strtol(text + strlen("PORT='"), NULL, 10);
}

static void look_at_home(size_t i)
{
	struct statx st;
	if (statx(root, homes[i], AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_UID | STATX_INO | STATX_BTIME, &st) < 0)
		fail(homes[i]);
}

static void *look_at_files(void *unused)
{
	size_t from, all = record_count > home_count ? record_count : home_count;
	while ((from = atomic_fetch_add(&taken, 8)) < all)
		for (size_t i = from; i < from + 8; i++) {
			if (i < record_count)
				read_record(i);
			if (i < home_count)
				look_at_home(i);
		}
	return unused;
}

static int ask_keeper(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t size = sizeof peer;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", pods_dir, name);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    send(fd, QUESTION, strlen(QUESTION), MSG_NOSIGNAL) < 0)
		fail(name);
	return fd;
}

static void hear(int fd)
{
	char answer[4096];
	if (recv(fd, answer, sizeof answer, 0) <= 0)
		fail("keeper");
	(void)close(fd);
}

static void ask_keepers(int *fds)
{
	for (size_t i = 0; i < keeper_count; i++)
		fds[i] = ask_keeper(keepers[i]);
}

static size_t read_listeners(void)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {.header = {.nlmsg_len = sizeof message, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .request = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1U << 10}};
	static char answer[65536];
	size_t count = 0;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0 || send(fd, &message, sizeof message, 0) < 0)
		fail("sock_diag");
	for (;;) {
		size_t len = (size_t)recv(fd, answer, sizeof answer, 0);
		for (const struct nlmsghdr *header = (const void *)answer; NLMSG_OK(header, len); header = NLMSG_NEXT(header, len)) {
			if (header->nlmsg_type == NLMSG_DONE) {
				(void)close(fd);
				return count;
			}
			count++;
		}
	}
}

/* A connection is the answer to a check of the kind tcp. */
static size_t ask_payloads(void)
{
	static struct pollfd polls[MOST];
	size_t n = 0;
	for (size_t i = 0; i < record_count; i++) {
		struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)ports[i]), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		if (!ports[i])
			continue;
		polls[n] = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .events = POLLOUT};
		(void)connect(polls[n++].fd, (struct sockaddr *)&address, sizeof address);
	}
	for (size_t done = 0; done < n;) {
		if (poll(polls, n, 5000) <= 0)
			fail("payload");
		for (size_t i = 0; i < n; i++)
			if (polls[i].revents) {
				(void)close(polls[i].fd);
				polls[i] = (struct pollfd){.fd = -1};
				done++;
			}
	}
	return n;
}

int main(int argc, char **argv)
{
	static int fds[MOST];
	pthread_t other;
	if (argc != 3)
		return 2;
	root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pods_dir = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || pods_dir < 0)
		fail("open");
	list(root, take_home);
	list(pods_dir, take_file);
	if (pthread_create(&other, NULL, look_at_files, NULL) != 0)
		fail("thread");
	ask_keepers(fds);
	(void)look_at_files(NULL);
	(void)pthread_join(other, NULL);
	for (size_t i = 0; i < keeper_count; i++)
		hear(fds[i]);
	size_t listeners = read_listeners();
	size_t payloads = ask_payloads();
	(void)printf("%zu records, %zu homes, %zu keepers, %zu listeners, %zu payloads\n", record_count, home_count, keeper_count, listeners, payloads);
	return 0;
}
