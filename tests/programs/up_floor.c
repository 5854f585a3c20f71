/* What no `up` of a pod with a supervisor of its own can leave out, and nothing else: three programs, each started by the one before, a home, a record
 * that is on the disk, and an answer. up_floor ROOT PODS_DIR SERVER PORT prints the server's pid; whoever ends the server ends its keeper. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *self, *root, *pods_dir, *server, *port;
static const char *const rooms[] = {"workspace", "kiro", "kiro/mcp", "run", "run/mcp-tmp", "os-home", "logs"};

_Noreturn static void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static const char *in(const char *top, const char *name)
{
	char *path; /* as long as the process */
	if (asprintf(&path, "%s/%s", top, name) < 0)
		fail("memory");
	return path;
}

static void become(const char *role, int line)
{
	char number[16];
	(void)snprintf(number, sizeof number, "%d", line);
	(void)execl(self, self, role, number, root, pods_dir, server, port, (char *)NULL);
	fail(self);
}

/* The home as the boot makes it, and the server in its place. */
static void boot(void)
{
	char record[512];
	int fd = open(in(pods_dir, "floor.env"), O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, record, sizeof record) <= 0)
		fail("record");
	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
		if (mkdir(in(in(root, "floor"), rooms[i]), 0700) < 0)
			fail(rooms[i]);
	(void)execl(server, server, port, (char *)NULL);
	fail(server);
}

static void keep(int line)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char word;
	int ends[2], listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), log = open(in(root, "floor.log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", in(pods_dir, "floor.sock"));
	(void)setsid();
	if (dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0 || listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 8) < 0 || pipe2(ends, O_CLOEXEC) < 0)
		fail("keeper");
	if (read(line, &word, 1) != 1)
		fail("the word to go on");
	pid_t pid = fork();
	if (pid == 0)
		become("boot", line);
	(void)close(ends[1]);
	if (pid < 0 || read(ends[0], &word, 1) != 0 || write(line, &pid, sizeof pid) != sizeof pid)
		fail("boot");
	(void)close(line);
	(void)waitpid(pid, NULL, 0);
	(void)unlink(address.sun_path);
}

static void record(void)
{
	static const char text[] = "PORT='1'\nID='00000000-0000-0000-0000-000000000000'\nBACKEND='embedded'\nHEALTH='http:/'\n";
	int fd = open(in(pods_dir, "floor.tmp"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, sizeof text - 1) < 0 || fsync(fd) < 0 || close(fd) < 0 || rename(in(pods_dir, "floor.tmp"), in(pods_dir, "floor.env")) < 0)
		fail("record");
}

static int answers(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char answer[64];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int done = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && write(fd, "GET / HTTP/1.0\r\n\r\n", 18) == 18 && read(fd, answer, sizeof answer) > 12 &&
		   strncmp(answer + 8, " 200", 4) == 0;
	(void)close(fd);
	return done;
}

static void up(void)
{
	int line[2], names = open(pods_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pid = 0;
	if (names < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, line) < 0)
		fail("beginning");
	pid_t keeper = fork();
	if (keeper == 0) {
		(void)close(line[0]);
		become("keep", line[1]);
	}
	(void)close(line[1]);
	if (keeper < 0 || mkdir(in(root, "floor.new"), 0700) < 0)
		fail("home");
	record();
	if (rename(in(root, "floor.new"), in(root, "floor")) < 0 || write(line[0], "", 1) != 1 || fsync(names) < 0 || read(line[0], &pid, sizeof pid) != sizeof pid)
		fail("start");
	while (!answers())
		(void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	(void)printf("%d\n", (int)pid);
}

int main(int argc, char **argv)
{
	self = "/proc/self/exe";
	char **words = argv + (argc == 7 ? 2 : 0);
	if (argc != 5 && argc != 7)
		return 2;
	root = words[1], pods_dir = words[2], server = words[3], port = words[4];
	if (argc == 5)
		up();
	else if (strcmp(argv[1], "keep") == 0)
		keep(atoi(argv[2]));
	else
		boot();
	return 0;
}
