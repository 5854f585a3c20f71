/* The keeper's place in the pods dir, and who may be believed. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "keeper_stage.h"
#include "pod/model/refusal.h"
#include "pod/system/keeper_channel.h"
#include "pod/system/keeper_group.h"

static void L22_the_length_of_the_path_does_not_matter(void **unused)
{
	(void)unused;
	static const size_t lengths[] = {107, 108, 109, 200};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct stage outer_storage, *stage = &outer_storage, inner;
		char base[256];
		stage_open(stage);
		/* <base>/keeper-XXXXXX/pods/demo.sock is to be of this length. */
		size_t fixed = strlen("/keeper-XXXXXX/pods/demo.sock"), have = strlen(stage->dir) + 1;
		(void)snprintf(base, sizeof base, "%s/", stage->dir);
		memset(base + have, 'd', lengths[i] - fixed - have);
		base[lengths[i] - fixed] = 0;
		must(mkdir(base, 0700));
		stage_open_below(&inner, base);
		char socket_path[600];
		int len = snprintf(socket_path, sizeof socket_path, "%s/demo.sock", inner.plane.pods_dir);
		assert_int_equal(len, lengths[i]);
		stage_start(&inner, "sleep");
		assert_int_equal(stage_query(&inner).active, UNIT_ACTIVE);
		assert_int_equal(access(socket_path, F_OK), 0);
		stage_stop(&inner, 5000);
		stage_close(&inner);
		stage_close(stage);
	}
}

static void the_longest_name_fits(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	char name[POD_NAME_MAX + 1];
	stage_open(stage);
	memset(name, 'n', POD_NAME_MAX);
	name[POD_NAME_MAX] = 0;
	stage->name = stage_name(name);
	stage_record(stage);
	stage_start(stage, "sleep");
	assert_int_equal(stage_query(stage).active, UNIT_ACTIVE);
	stage_stop(stage, 5000);
	stage_close(stage);
}

static void the_socket_is_for_its_user_whatever_the_umask(void **unused)
{
	(void)unused;
	static const mode_t masks[] = {0, 0077, 0777};
	for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
		struct stage storage, *stage = &storage;
		struct stat st;
		stage_open(stage);
		mode_t mask = umask(masks[i]);
		stage_start(stage, "sleep");
		(void)umask(mask);
		must(fstatat(stage->pods_dir.fd, "demo.sock", &st, AT_SYMLINK_NOFOLLOW));
		assert_true(S_ISSOCK(st.st_mode));
		assert_int_equal(st.st_mode & 07777, 0600);
		stage_stop(stage, 5000);
		/* Nothing else was left in the pods dir either: the record only. */
		DIR *dir = opendir(stage->plane.pods_dir);
		unsigned entries = 0;
		for (struct dirent *entry; (entry = readdir(dir));)
			entries += entry->d_name[0] != '.' || file_is_temporary(entry->d_name);
		closedir(dir);
		assert_int_equal(entries, 1);
		stage_close(stage);
	}
}

static int bound_socket(const struct stage *stage, int type, bool listening)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/demo.sock", stage->pods_dir.fd);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	if (listening)
		assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static void L35_a_stale_socket_is_cleaned_by_a_start(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	close(bound_socket(stage, SOCK_SEQPACKET, true));
	struct unit_state state = stage_query(stage);
	assert_int_equal(state.active, UNIT_FAILED);
	assert_string_equal(state.detail, "its keeper was killed");
	assert_true(stage_has_socket(stage)); /* asking removes nothing */
	stage_start(stage, "sleep");
	assert_int_equal(stage_query(stage).active, UNIT_ACTIVE);
	stage_stop(stage, 5000);
	close(bound_socket(stage, SOCK_SEQPACKET, false));
	stage_stop(stage, 1000);
	assert_false(stage_has_socket(stage));
	close(bound_socket(stage, SOCK_SEQPACKET, true));
	must(service_embedded.forget(stage->service, &stage->name, &stage->err));
	stage_close(stage);
}

static void refuses(struct stage *stage)
{
	struct stat before, after;
	must(fstatat(stage->pods_dir.fd, "demo.sock", &before, AT_SYMLINK_NOFOLLOW));
	assert_int_equal(stage_query(stage).active, UNIT_UNKNOWN);
	assert_int_equal(stage_try_start(stage, "sleep"), -EPERM);
	assert_int_equal(stage->err.refusal, REFUSAL_UNSAFE_PATH);
	assert_int_equal(service_embedded.stop(stage->service, &stage->name, 0, NULL, &stage->err), -EPERM);
	assert_int_equal(service_embedded.forget(stage->service, &stage->name, &stage->err), -EBUSY);
	must(fstatat(stage->pods_dir.fd, "demo.sock", &after, AT_SYMLINK_NOFOLLOW));
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mtime, after.st_mtime);
	must(unlinkat(stage->pods_dir.fd, "demo.sock", S_ISDIR(after.st_mode) ? AT_REMOVEDIR : 0));
	assert_int_equal(stage_processes(stage, NULL), 0);
}

static void L35_anything_else_in_its_place_is_refused(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	must(file_create(&stage->pods_dir, "demo.sock", "x", 1, 0600, &stage->err));
	refuses(stage);
	must(mkdirat(stage->pods_dir.fd, "demo.sock", 0700));
	refuses(stage);
	must(mkfifoat(stage->pods_dir.fd, "demo.sock", 0600));
	refuses(stage);
	must(symlinkat("nothing", stage->pods_dir.fd, "demo.sock"));
	refuses(stage);
	/* A link to a keeper that lives is not this pod's keeper. */
	struct pod_name demo = stage->name;
	stage->name = stage_name("other");
	stage_record(stage);
	stage_start(stage, "sleep");
	stage->name = demo;
	must(symlinkat("other.sock", stage->pods_dir.fd, "demo.sock"));
	assert_int_equal(stage_query(stage).active, UNIT_UNKNOWN);
	assert_int_equal(stage_try_start(stage, "sleep"), -EPERM);
	assert_int_equal(service_embedded.stop(stage->service, &stage->name, 0, NULL, &stage->err), -EPERM);
	must(unlinkat(stage->pods_dir.fd, "demo.sock", 0));
	stage->name = stage_name("other");
	assert_int_equal(stage_query(stage).active, UNIT_ACTIVE);
	stage_stop(stage, 5000);
	stage_close(stage);
}

static void L35_a_socket_of_another_kind_or_user(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	stage_open(stage);
	int fd = bound_socket(stage, SOCK_STREAM, true);
	assert_int_equal(stage_query(stage).active, UNIT_UNKNOWN);
	assert_true(stage_try_start(stage, "sleep") < 0);
	assert_true(stage_has_socket(stage));
	must(unlinkat(stage->pods_dir.fd, "demo.sock", 0));
	close(fd);
	if (geteuid() == 0) {
		fd = bound_socket(stage, SOCK_SEQPACKET, true);
		must(fchownat(stage->pods_dir.fd, "demo.sock", 65534, 65534, AT_SYMLINK_NOFOLLOW));
		assert_int_equal(stage_query(stage).active, UNIT_UNKNOWN);
		assert_int_equal(stage_try_start(stage, "sleep"), -EPERM);
		must(unlinkat(stage->pods_dir.fd, "demo.sock", 0));
		close(fd);
	}
	stage_close(stage);
}

/* Somebody of this user who answers, but with lies: numbers in an answer are shown and never signalled. */
static void L36_numbers_in_an_answer_are_not_signalled(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	char path[512];
	stage_open(stage);
	pid_t innocent = stage_innocent();
	pid_t liar = fork();
	if (liar == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		int listener = bound_socket(stage, SOCK_SEQPACKET, true);
		stage_path(stage, "ready", path);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		for (;;) {
			char in[KEEPER_MESSAGE_MAX], out[KEEPER_MESSAGE_MAX];
			struct keeper_reply lie = {.answer = KEEPER_SAYS_STATE,
						   .state = {.active = UNIT_ACTIVE, .main_pid = innocent, .group = {.cgroup = "/sys/fs/cgroup"}}};
			int fd = accept(listener, NULL, NULL);
			for (ssize_t n; (n = recv(fd, in, sizeof in - 1, 0)) > 0;) {
				in[n] = 0;
				if (strstr(in, "stop"))
					lie.answer = KEEPER_SAYS_GONE;
				int len = keeper_reply_encode(&lie, out);
				(void)!send(fd, out, (size_t)len, MSG_NOSIGNAL);
				if (lie.answer == KEEPER_SAYS_GONE)
					_exit(0);
			}
			close(fd);
		}
	}
	stage_wait_file(stage, "ready");
	struct unit_state state = stage_query(stage);
	assert_int_equal(state.active, UNIT_ACTIVE);
	assert_string_equal(state.group.cgroup, ""); /* not one that could be this pod's */
	assert_int_equal(state.group.tree, liar); /* who listens, as the kernel tells it */
	must(service_embedded.stop(stage->service, &stage->name, 0, NULL, &stage->err));
	assert_int_equal(waitpid(liar, NULL, 0), liar);
	assert_int_equal(waitpid(innocent, NULL, WNOHANG), 0);
	must(service_embedded.stop(stage->service, &stage->name, 0, NULL, &stage->err)); /* now the socket is stale */
	assert_false(stage_has_socket(stage));
	assert_int_equal(waitpid(innocent, NULL, WNOHANG), 0);
	assert_int_equal(kill(innocent, SIGKILL), 0);
	assert_int_equal(waitpid(innocent, NULL, 0), innocent);
	stage_close(stage);
}

/* A file with the keeper's old number would be a number from a file: there is none, and one that somebody writes is not looked at. */
static void L36_a_record_full_of_pids_signals_nobody(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	struct record record = {0};
	char pid[16];
	stage_open(stage);
	pid_t innocent = stage_innocent();
	(void)snprintf(pid, sizeof pid, "%d", (int)innocent);
	const char *values[] = {pid, "0", "1", "-1", "text"};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		must(record_set(&record, "ID", values[i], &stage->err));
		must(record_set(&record, "PID", values[i], &stage->err));
		must(record_set(&record, "KEEPER", values[i], &stage->err));
		must(record_store(&stage->pods_dir, &stage->name, &record, &stage->err));
		close(bound_socket(stage, SOCK_SEQPACKET, true));
		stage_stop(stage, 0);
	}
	record_free(&record);
	assert_int_equal(waitpid(innocent, NULL, WNOHANG), 0);
	assert_int_equal(kill(innocent, SIGKILL), 0);
	assert_int_equal(waitpid(innocent, NULL, 0), innocent);
	stage_close(stage);
}

/* Garbage, silence and a crowd do not disturb a keeper. */
static void odd_callers_are_survived(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	int crowd[100];
	pid_t keeper;
	stage_open(stage);
	stage_start(stage, "sleep");
	pid_t main_pid = stage_query(stage).main_pid;
	for (size_t i = 0; i < 100; i++) {
		crowd[i] = channel_connect(&stage->pods_dir, &stage->name, &keeper, NULL);
		if (crowd[i] >= 0 && i % 2)
			(void)!send(crowd[i], i % 4 == 1 ? "garbage" : "kirocrew-keeper 1\nwatch\n", i % 4 == 1 ? 7 : 24, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	struct unit_state state = stage_query(stage);
	for (size_t i = 0; i < 100; i++)
		if (crowd[i] >= 0)
			close(crowd[i]);
	if (state.active != UNIT_ACTIVE && state.active != UNIT_UNKNOWN) /* it may have no place for one more just now */
		fail_msg("state %d", (int)state.active);
	state = stage_wait_for(stage, UNIT_ACTIVE);
	assert_int_equal(state.main_pid, main_pid);
	stage_stop(stage, 5000);
	stage_close(stage);
}

static void list_asks_all_at_once(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	struct service_listing listing = {0};
	stage_open(stage);
	struct pod_name demo = stage->name;
	must(service_embedded.list(stage->service, &listing, &stage->err));
	assert_int_equal(listing.count, 0);
	for (int i = 0; i < 6; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "pod%d", i);
		stage->name = stage_name(name);
		stage_record(stage);
		stage_start(stage, "sleep");
	}
	stage->name = stage_name("pod3");
	pid_t stopped = stage_query(stage).group.tree;
	assert_int_equal(kill(stopped, SIGSTOP), 0);
	stage->name = demo;
	close(bound_socket(stage, SOCK_SEQPACKET, true)); /* demo: stale */
	must(file_create(&stage->pods_dir, "file.sock", "x", 1, 0600, &stage->err));
	must(file_create(&stage->pods_dir, "not a name.sock", "x", 1, 0600, &stage->err));
	int64_t before = monotonic_ns();
	must(service_embedded.list(stage->service, &listing, &stage->err));
	assert_true(monotonic_ns() - before < 5000000000);
	assert_int_equal(listing.count, 8);
	for (size_t i = 0; i < listing.count; i++) {
		const char *name = listing.units[i].name.text;
		enum unit_active expected = strcmp(name, "demo") == 0 ? UNIT_FAILED
					    : strcmp(name, "pod3") == 0 || strcmp(name, "file") == 0 ? UNIT_UNKNOWN
												     : UNIT_ACTIVE;
		if (listing.units[i].state.active != expected)
			fail_msg("%s is %d: %s", name, (int)listing.units[i].state.active, listing.units[i].state.detail);
		if (strcmp(name, "pod3") == 0)
			assert_string_equal(listing.units[i].state.detail, "the keeper does not answer");
	}
	service_listing_free(&listing);
	assert_int_equal(kill(stopped, SIGCONT), 0);
	for (int i = 0; i < 6; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "pod%d", i);
		stage->name = stage_name(name);
		stage_stop(stage, 5000);
	}
	stage->name = demo;
	stage_stop(stage, 0);
	stage_close(stage);
}

/* As a keeper does that cannot read what it is asked. */
static void a_keeper_that_lets_its_callers_go_is_not_taken_for_dead(void **unused)
{
	(void)unused;
	struct stage storage, *stage = &storage;
	struct service_listing listing = {0};
	stage_open(stage);
	int listener = bound_socket(stage, SOCK_SEQPACKET, true);
	pid_t keeper = fork();
	if (keeper == 0)
		for (;;)
			(void)close(accept(listener, NULL, NULL));
	(void)close(listener);
	struct unit_state state = stage_query(stage);
	must(service_embedded.list(stage->service, &listing, &stage->err));
	(void)kill(keeper, SIGKILL);
	(void)waitpid(keeper, NULL, 0);
	assert_int_equal(state.active, UNIT_UNKNOWN);
	assert_string_equal(state.detail, "its keeper lives, and lets its callers go");
	assert_int_equal(listing.count, 1);
	assert_int_equal(listing.units[0].state.active, UNIT_UNKNOWN);
	service_listing_free(&listing);
	assert_int_equal(stage_query(stage).active, UNIT_FAILED);
	stage_stop(stage, 0);
	stage_close(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L22_the_length_of_the_path_does_not_matter),
		cmocka_unit_test(the_longest_name_fits),
		cmocka_unit_test(the_socket_is_for_its_user_whatever_the_umask),
		cmocka_unit_test(L35_a_stale_socket_is_cleaned_by_a_start),
		cmocka_unit_test(L35_anything_else_in_its_place_is_refused),
		cmocka_unit_test(L35_a_socket_of_another_kind_or_user),
		cmocka_unit_test(L36_numbers_in_an_answer_are_not_signalled),
		cmocka_unit_test(L36_a_record_full_of_pids_signals_nobody),
		cmocka_unit_test(odd_callers_are_survived),
		cmocka_unit_test(list_asks_all_at_once),
		cmocka_unit_test(a_keeper_that_lets_its_callers_go_is_not_taken_for_dead),
	};
	return stage_main(tests);
}
