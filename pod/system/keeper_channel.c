#include "pod/system/keeper_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/model/refusal.h"

#define BACKLOG 64

static int socket_new(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

/* /proc/self/fd/N or /proc/self/fd/N/name: at most 14 + 10 + 1 + POD_FILE_MAX, and refused rather than cut if it ever were too long. */
static int address_of(int fd, const char *name, struct sockaddr_un *ret_address)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int n = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d%s%s", fd, name ? "/" : "", name ? name : "");
	if (n < 0 || (size_t)n >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	*ret_address = address;
	return 0;
}

/* Named like a temporary file of this pod, so that records_sweep knows what a killed keeper has left. */
static int scratch_name(const char *file, char *out, size_t size)
{
	uint64_t random = 0;
	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		return -EIO;
	(void)snprintf(out, size, ".tmp-%016llx@%s", (unsigned long long)random, file);
	return 0;
}

/* fchmod before bind decides the mode of the inode, so there is no moment with a wider one; bind takes the umask away from it, and with 0777 the
 * user would be kept out, too. */
static int bind_scratch(const struct pin *pods_dir, int fd, const char *scratch)
{
	struct sockaddr_un address;
	int r = address_of(pods_dir->fd, scratch, &address);
	if (r < 0)
		return r;
	mode_t mask = umask(0);
	bool bound = fchmod(fd, 0600) == 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
	r = bound ? 0 : -errno;
	(void)umask(mask);
	if (r < 0)
		return r;
	return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

int channel_publish(const struct pin *pods_dir, const struct pod_name *name, struct channel *ret_channel, struct err *err)
{
	struct pod_file file = pod_file_socket(name);
	char scratch[POD_FILE_MAX + 32];
	struct stat st;
	AUTO_CLOSE int fd = socket_new();
	int r = fd < 0 ? fd : scratch_name(file.text, scratch, sizeof scratch);
	if (r < 0)
		return err_code(err, r, "keeper socket", file.text);
	r = bind_scratch(pods_dir, fd, scratch);
	if (r == 0 && fstatat(pods_dir->fd, scratch, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	/* link(2) never replaces: of two keepers one gets the name. */
	if (r == 0 && linkat(pods_dir->fd, scratch, pods_dir->fd, file.text, 0) < 0)
		r = -errno;
	(void)unlinkat(pods_dir->fd, scratch, 0);
	if (r < 0)
		return err_code(err, r, "keeper socket", file.text);
	*ret_channel = (struct channel){.fd = take_fd(&fd), .dev = st.st_dev, .ino = st.st_ino};
	return 0;
}

bool channel_is_published(const struct pin *pods_dir, const struct pod_name *name, const struct channel *channel)
{
	struct stat st;
	return channel->fd >= 0 && fstatat(pods_dir->fd, pod_file_socket(name).text, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == channel->dev &&
	       st.st_ino == channel->ino;
}

void channel_withdraw(const struct pin *pods_dir, const struct pod_name *name, struct channel *channel)
{
	if (channel_is_published(pods_dir, name, channel))
		(void)unlinkat(pods_dir->fd, pod_file_socket(name).text, 0);
	close_quietly(take_fd(&channel->fd));
}

/* The name itself, not what it points to: held by descriptor while it is judged and used. */
static int hold_socket(const struct pin *pods_dir, const char *file, struct err *err)
{
	AUTO_CLOSE int fd = openat(pods_dir->fd, file, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_code(err, -errno, "keeper socket", file);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_code(err, -errno, "keeper socket", file);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -ENOTSOCK, "keeper socket", file, "%s is no socket, and stands in the place of the keeper's", file);
	if (st.st_uid != geteuid())
		return err_set(err, -EPERM, "keeper socket", file, "the socket belongs to user %u", (unsigned)st.st_uid);
	return take_fd(&fd);
}

static int peer_of_same_user(int fd, pid_t *ret_pid)
{
	struct ucred peer = {0};
	socklen_t size = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	if (peer.uid != geteuid())
		return -EPERM;
	*ret_pid = peer.pid;
	return 0;
}

int channel_connect(const struct pin *pods_dir, const struct pod_name *name, pid_t *ret_keeper, struct err *err)
{
	struct pod_file file = pod_file_socket(name);
	AUTO_CLOSE int held = hold_socket(pods_dir, file.text, err);
	if (held < 0)
		return held;
	AUTO_CLOSE int fd = socket_new();
	struct sockaddr_un address;
	int r = fd < 0 ? fd : address_of(held, NULL, &address);
	if (r == 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		r = -errno;
	if (r == -ENOENT) /* the socket is held: it is the way to it that is missing */
		return err_set(err, -ENOTSUP, "keeper socket", file.text, "it is reached through /proc, and /proc is not mounted");
	if (r < 0)
		return err_code(err, r, "keeper socket", file.text);
	pid_t keeper = 0;
	r = peer_of_same_user(fd, &keeper);
	if (r < 0)
		return err_set(err, r, "keeper socket", file.text, "its other end is not of this user");
	*ret_keeper = keeper;
	return take_fd(&fd);
}

int channel_clean(const struct pin *pods_dir, const struct pod_name *name, struct err *err)
{
	struct pod_file file = pod_file_socket(name);
	struct err why = {0};
	pid_t keeper = 0;
	AUTO_CLOSE int fd = channel_connect(pods_dir, name, &keeper, &why);
	if (fd == -ENOENT)
		return 0;
	if (fd == -ENOTSOCK || fd == -EPERM)
		return refuse(err, REFUSAL_UNSAFE_PATH, file.text, "%s; it is left untouched", why.text);
	if (fd == -ECONNREFUSED)
		return unlinkat(pods_dir->fd, file.text, 0) < 0 && errno != ENOENT ? err_code(err, -errno, "keeper socket", file.text) : 0;
	if (fd >= 0 || fd == -EAGAIN)
		return err_set(err, -EADDRINUSE, "keeper socket", file.text, "a keeper listens on it");
	return err_set(err, fd, "keeper socket", file.text, "%s", why.text);
}

int channel_accept(int listener)
{
	AUTO_CLOSE int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	pid_t peer = 0;
	int r = peer_of_same_user(fd, &peer);
	return r < 0 ? r : take_fd(&fd);
}

int channel_send(int fd, const struct keeper_request *request, struct err *err)
{
	char message[KEEPER_MESSAGE_MAX];
	int len = keeper_request_encode(request, message);
	if (len < 0)
		return err_code(err, len, "keeper", NULL);
	if (send(fd, message, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return err_code(err, errno == EPIPE ? -ECONNRESET : -errno, "keeper", NULL);
	return 0;
}

int channel_receive(int fd, struct deadline until, struct keeper_reply *ret_reply, struct err *err)
{
	char message[KEEPER_MESSAGE_MAX];
	for (;;) {
		struct pollfd wanted = {.fd = fd, .events = POLLIN};
		ssize_t n = recv(fd, message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
		if (n > 0)
			return keeper_reply_decode(message, (size_t)n, ret_reply, err);
		if (n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE)))
			return err_set(err, -ECONNRESET, "keeper", NULL, "the keeper has gone");
		if (n < 0 && errno != EAGAIN && errno != EINTR) /* says nothing of the keeper */
			return err_code(err, -errno, "keeper", NULL);
		if (deadline_passed(until))
			return err_set(err, -ETIME, "keeper", NULL, "the keeper does not answer");
		struct timespec left = deadline_left(until);
		if (ppoll(&wanted, 1, &left, NULL) < 0 && errno != EINTR)
			return err_code(err, -errno, "keeper", NULL);
	}
}
