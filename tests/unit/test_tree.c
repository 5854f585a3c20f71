#include "fs_fixture.h"

#include <dirent.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fsops/file.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define SECONDS 1000

static int remove_home(const struct fixture *f, int64_t ms, struct tree_left *left)
{
	return tree_remove(&f->base, "home", deadline_in_ms(ms), left, NULL);
}

static void assert_home_goes(const struct fixture *f)
{
	struct tree_left left = {.count = 99};
	struct err err = {0};
	int r = tree_remove(&f->base, "home", deadline_in_ms(2 * SECONDS), &left, &err);
	if (r)
		fail_msg("%d: %s", r, err.text);
	assert_int_equal(left.count, 0);
	assert_false(exists(f->base.fd, "home"));
}

static void put_home(const struct fixture *f)
{
	put_dir(f->base.fd, "home");
	put_dir(f->base.fd, "home/a");
	put_dir(f->base.fd, "home/a/b");
	put_dir(f->base.fd, "home/a/b/c");
	put_dir(f->base.fd, "home/empty");
	put_file(f->base.fd, "home/file", "x");
	put_file(f->base.fd, "home/a/file", "x");
	put_file(f->base.fd, "home/a/b/c/file", "x");
}

static void put_every_type(const struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%.80s/home/socket", f->path);
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(mkfifoat(f->base.fd, "home/fifo", 0600), 0);
	assert_int_equal(symlinkat("../victim", f->base.fd, "home/link"), 0);
	assert_int_equal(symlinkat("../victim/precious", f->base.fd, "home/a/link"), 0);
	assert_int_equal(symlinkat("nowhere", f->base.fd, "home/dangling"), 0);
	assert_int_equal(linkat(f->base.fd, "victim/precious", f->base.fd, "home/hard", 0), 0);
}

static void every_type_goes_and_no_link_is_followed(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	put_home(f);
	put_every_type(f);
	assert_home_goes(f);
	assert_true(victim_is_whole(f->base.fd));
}

static void what_is_not_there_is_success(void **state)
{
	struct fixture *f = *state;
	assert_home_goes(f);
	assert_int_equal(tree_remove(&f->base, "..", DEADLINE_NEVER, NULL, NULL), -EINVAL);
	assert_int_equal(tree_remove(&f->base, "a/b", DEADLINE_NEVER, NULL, NULL), -EINVAL);
	char name[NAME_MAX + 2];
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_int_equal(tree_remove(&f->base, name, DEADLINE_NEVER, NULL, NULL), -ENAMETOOLONG);
}

static void the_top_may_be_a_file_or_a_link(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	put_file(f->base.fd, "home", "x");
	assert_home_goes(f);
	assert_int_equal(symlinkat("victim", f->base.fd, "home"), 0);
	assert_home_goes(f);
	assert_true(victim_is_whole(f->base.fd));
}

static void L12_directories_without_permission_bits_are_repaired(void **state)
{
	struct fixture *f = *state;
	put_home(f);
	assert_int_equal(fchmodat(f->base.fd, "home/file", 0444, 0), 0);
	static const struct {
		const char *name;
		mode_t mode;
	} rows[] = {{"home/a/b/c", 0555}, {"home/a/b", 0}, {"home/a", 0111}, {"home/empty", 0}, {"home", 0555}};
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(fchmodat(f->base.fd, rows[i].name, rows[i].mode, 0), 0);
	assert_home_goes(f);
}

/* Down `levels` directories of one name, holding no more than two descriptors. */
static void put_deep(const struct fixture *f, unsigned levels, size_t name_len)
{
	char name[NAME_MAX + 1];
	memset(name, 'd', name_len);
	name[name_len] = '\0';
	put_dir(f->base.fd, "home");
	int fd = openat(f->base.fd, "home", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 1; i < levels; i++) {
		put_dir(fd, name);
		if (i % 1000 == 0)
			put_file(fd, "file", "x");
		int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	assert_true(fd >= 0);
	close(fd);
}

static void *remove_in_thread(void *argument)
{
	struct fixture *f = argument;
	struct tree_left left;
	return (void *)(intptr_t)remove_home(f, 60 * SECONDS, &left);
}

/* In a child with so many descriptors, and in a thread with a stack of 256 KB. */
static int remove_with(struct fixture *f, rlim_t descriptors, rlim_t address_space)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid)
		return exit_status(pid);
	struct rlimit files = {descriptors, descriptors}, memory = {address_space, address_space};
	pthread_attr_t attributes;
	pthread_t thread;
	void *result = NULL;
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(SANITIZED || !address_space || setrlimit(RLIMIT_AS, &memory) == 0);
	CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
	CHECK(pthread_create(&thread, &attributes, remove_in_thread, f) == 0 && pthread_join(thread, &result) == 0);
	CHECK(result == NULL);
	_exit(0);
}

static void deep_tree_goes(struct fixture *f, unsigned levels, size_t name_len, rlim_t descriptors)
{
	put_deep(f, levels, name_len);
	assert_int_equal(remove_with(f, descriptors, 0), 0);
	assert_false(exists(f->base.fd, "home"));
}

static void L13_5000_levels_of_40_bytes(void **state)
{
	deep_tree_goes(*state, 5000, 40, 64);
}

/* Nothing can be moved to the top: what lies deeper stays and is counted, and nothing else. */
static int rename_fails_with;
static void remove_without_renames(struct fixture *f)
{
	struct tree_left left = {.count = 0};
	CHECK(deny_calls(SYS_renameat, SYS_renameat2, rename_fails_with));
	CHECK(deny_calls(SYS_clone, SYS_clone3, EAGAIN)); /* a second thread would begin anew half way down */
	CHECK(remove_home(f, SECONDS, &left) == -ENOTEMPTY);
	CHECK(left.count == 1);
	CHECK(left.named[0].code == (rename_fails_with == EIO ? -EIO : -EEXIST));
}

static void L13_what_lies_too_deep_to_be_moved_is_named(void **state)
{
	static const int codes[] = {EIO, ENOTEMPTY, EEXIST, ENOTDIR, EISDIR}; /* the others: each name at the top is taken */
	struct fixture *f = *state;
	put_deep(f, 4200, 1);
	for (size_t i = 0; i < COUNT(codes); i++) {
		rename_fails_with = codes[i];
		assert_int_equal(in_child(remove_without_renames, f), 0);
	}
	assert_int_equal(remove_with(f, 64, 0), 0);
	assert_false(exists(f->base.fd, "home"));
}

static void L13_32768_levels_of_one_byte(void **state)
{
	deep_tree_goes(*state, 32768, 1, 64);
}

static void X14_20000_levels(void **state)
{
	deep_tree_goes(*state, 20000, 8, 20);
}

static void X14_5000_levels_of_255_bytes(void **state)
{
	deep_tree_goes(*state, 5000, 255, 20);
}

static void X63_ten_descriptors_are_enough(void **state)
{
	deep_tree_goes(*state, 300, 8, 10);
}

static void a_bush_deeper_than_what_is_kept_open_goes(void **state)
{
	struct fixture *f = *state;
	put_deep(f, 30, 1);
	AUTO_PIN struct pin at = PIN_NONE;
	assert_int_equal(pin_descend(&f->base, "home", &at, NULL), 0);
	for (int level = 0; level < 28; level++) {
		for (int i = 0; i < 20; i++) {
			char name[16];
			snprintf(name, sizeof name, "%s%d", i % 2 ? "dir" : "z", i);
			put_dir(at.fd, name);
		}
		put_file(at.fd, "dir1/file", "x");
		struct pin next = PIN_NONE;
		assert_int_equal(pin_child(&at, "d", &next, NULL), 0);
		pin_close(&at);
		at = next;
	}
	assert_int_equal(remove_with(f, 20, 0), 0);
	assert_false(exists(f->base.fd, "home"));
}

static void L14_500000_files_in_one_directory(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "home");
	AUTO_CLOSE int fd = openat(f->base.fd, "home", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Hard links: it is the entries that count, and inodes take longer to make. */
	char first[16] = "";
	for (int i = 0; i < 500000; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d", i);
		if (i % 25000 == 0)
			memcpy(first, name, sizeof first);
		if (i % 25000 ? linkat(fd, first, fd, name, 0) : mknodat(fd, name, S_IFREG | 0600, 0))
			fail_msg("%s: errno %d", name, errno);
	}
	assert_int_equal(remove_with(f, 64, 64 << 20), 0);
	assert_false(exists(f->base.fd, "home"));
}

static void L15_a_writer_for_a_while_is_outlasted(void **state)
{
	struct fixture *f = *state;
	put_home(f);
	pid_t pid = fork();
	if (pid == 0) {
		struct deadline end = deadline_in_ms(300);
		while (!deadline_passed(end)) {
			int fd = openat(f->base.fd, "home/a/b/c/again", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			close_quietly(fd);
		}
		_exit(0);
	}
	struct tree_left left;
	int r = remove_home(f, 10 * SECONDS, &left);
	assert_int_equal(exit_status(pid), 0);
	assert_int_equal(r, 0);
	assert_false(exists(f->base.fd, "home"));
}

/* One who never stops and whom no rmdir stops: he makes the directories again too. */
static void write_for_ever(struct fixture *f)
{
	for (;;) {
		(void)mkdirat(f->base.fd, "home", 0700);
		(void)mkdirat(f->base.fd, "home/b", 0700);
		close_quietly(openat(f->base.fd, "home/b/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
}

static void L15_a_writer_for_ever_ends_at_the_deadline(void **state)
{
	struct fixture *f = *state;
	put_home(f);
	int writers = 3;
	pid_t pids[3];
	for (int i = 0; i < writers; i++)
		if ((pids[i] = fork()) == 0)
			write_for_ever(f);
	int64_t start = monotonic_ns();
	struct tree_left left = {0};
	int r = remove_home(f, 200, &left);
	int64_t ms = (monotonic_ns() - start) / 1000000;
	for (int i = 0; i < writers; i++) {
		assert_int_equal(kill(pids[i], SIGKILL), 0);
		assert_int_equal(exit_status(pids[i]), 128 + SIGKILL);
	}
	/* By chance it was gone for a moment; else what came back is named. */
	assert_true(r == 0 || (r == -ENOTEMPTY && left.count > 0 && strncmp(left.named[0].path, "home", 4) == 0));
	assert_true(ms < 3000);
	assert_home_goes(f);
}

static void a_directory_that_fills_again_is_named(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "home");
	put_dir(f->base.fd, "home/busy");
	AUTO_CLOSE int busy = openat(f->base.fd, "home/busy", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pid = fork();
	if (pid == 0)
		for (unsigned i = 0;; i++) {
			char name[16];
			snprintf(name, sizeof name, "%u", i % 4096);
			close_quietly(openat(busy, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		}
	struct tree_left left = {0};
	int r = remove_home(f, 150, &left);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(exit_status(pid), 128 + SIGKILL);
	if (r) {
		assert_int_equal(r, -ENOTEMPTY);
		assert_string_equal(left.named[0].path, "home/busy");
		assert_int_equal(left.named[0].code, -ENOTEMPTY);
	}
	assert_home_goes(f);
}

struct racer {
	int base;
	const char *one, *other;
	atomic_bool stop;
	atomic_ulong swaps;
};

static void *race(void *argument)
{
	struct racer *r = argument;
	while (!atomic_load(&r->stop))
		if (renameat2(r->base, r->one, r->base, r->other, RENAME_EXCHANGE) == 0)
			atomic_fetch_add(&r->swaps, 1);
	return NULL;
}

static void put_raced_home(const struct fixture *f)
{
	put_home(f);
	for (int i = 0; i < 8; i++) {
		char name[32];
		snprintf(name, sizeof name, "home/a/b/%d", i);
		put_file(f->base.fd, name, "x");
	}
	assert_int_equal(symlinkat("../victim", f->base.fd, "home/link"), 0);
	assert_int_equal(symlinkat("../../victim", f->base.fd, "home/a/link"), 0);
	/* The racer waits for this name, so that nothing is swapped while it is built. */
	assert_int_equal(renameat(f->base.fd, "home", f->base.fd, "raced"), 0);
}

/* Removes the home again and again while a directory of it and a link to the victim change places: so many rounds, and more until the racer
 * was there in half of them, for which a busy host lets it wait. */
static unsigned long rounds_against(struct fixture *f, unsigned rounds, const char *one, const char *other,
				    void (*removal)(struct fixture *))
{
	const unsigned long most = 20UL * rounds;
	struct racer racer = {.base = f->base.fd, .one = one, .other = other};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, race, &racer), 0);
	for (unsigned long i = 0; (i < rounds || atomic_load(&racer.swaps) <= rounds / 2) && i < most && victim_is_whole(f->base.fd); i++) {
		put_raced_home(f);
		removal(f);
	}
	atomic_store(&racer.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return atomic_load(&racer.swaps);
}

static void remove_well(struct fixture *f)
{
	struct tree_left left;
	assert_int_equal(tree_remove(&f->base, "raced", deadline_in_ms(5 * SECONDS), &left, NULL), 0);
	assert_false(exists(f->base.fd, "raced"));
}

static void race_at_both_levels(struct fixture *f, unsigned rounds)
{
	put_victim(f->base.fd);
	assert_true(rounds_against(f, rounds, "raced/a", "raced/link", remove_well) > rounds / 2);
	assert_true(victim_is_whole(f->base.fd));
	assert_true(rounds_against(f, rounds / 4, "raced/a/b", "raced/a/link", remove_well) > rounds / 8);
	assert_true(victim_is_whole(f->base.fd));
}

static void L16_a_racer_never_reaches_the_victim(void **state)
{
	race_at_both_levels(*state, 1000);
}

static void L16_a_racer_never_reaches_the_victim_by_the_walk(void **state)
{
	race_at_both_levels(*state, 250);
}

/* The planted bug: looks at a path, then opens the path. */
static void remove_path(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return;
	if (!S_ISDIR(st.st_mode)) {
		(void)unlink(path);
		return;
	}
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char inner[PATH_MAX];
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
		remove_path(inner);
	}
	if (dir)
		closedir(dir);
	(void)rmdir(path);
}

static void remove_badly(struct fixture *f)
{
	char path[PATH_MAX + 8];
	snprintf(path, sizeof path, "%s/raced", f->path);
	for (int i = 0; i < 1000 && exists(f->base.fd, "raced"); i++)
		remove_path(path);
}

static void L16_control_a_planted_bug_is_found(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	(void)rounds_against(f, 20000, "raced/a", "raced/link", remove_badly);
	assert_false(victim_is_whole(f->base.fd));
}

static void remove_traced(struct fixture *f)
{
	struct tree_left left;
	CHECK(tree_remove(&f->base, "home", deadline_in_ms(5 * SECONDS), &left, NULL) == 0);
	CHECK(!exists(f->base.fd, "home"));
}

static void swap_for_link(struct fixture *f)
{
	(void)renameat2(f->base.fd, "home/a", f->base.fd, "link", RENAME_EXCHANGE);
}

static void swap_inner_for_link(struct fixture *f)
{
	(void)renameat2(f->base.fd, "home/a/b", f->base.fd, "link", RENAME_EXCHANGE);
}

static void swap_top_for_link(struct fixture *f)
{
	(void)renameat2(f->base.fd, "home", f->base.fd, "link", RENAME_EXCHANGE);
}

static void swap_file_for_directory(struct fixture *f)
{
	(void)renameat2(f->base.fd, "home/file", f->base.fd, "home/a", RENAME_EXCHANGE);
}

static void swap_directory_for_file(struct fixture *f)
{
	(void)renameat2(f->base.fd, "home/a/b", f->base.fd, "home/a/file", RENAME_EXCHANGE);
}

static void take_entry_away(struct fixture *f)
{
	(void)renameat(f->base.fd, "home/a", f->base.fd, "away");
}

static void take_inner_away(struct fixture *f)
{
	(void)renameat(f->base.fd, "home/a/b/c", f->base.fd, "away");
}

static void remove_file_and_close_directory(struct fixture *f)
{
	(void)unlinkat(f->base.fd, "home/a/file", 0);
	if (fchmodat(f->base.fd, "home/a", 0, AT_SYMLINK_NOFOLLOW) < 0)
		return;
}

static void move_inner_to_victim(struct fixture *f)
{
	(void)renameat(f->base.fd, "home/a/b/c", f->base.fd, "victim/c");
}

static bool victim_kept_its_own(const struct fixture *f)
{
	return holds(f->base.fd, "victim/precious", "precious") && holds(f->base.fd, "victim/inner/precious", "precious");
}

/* As small as it can be: every call of its removal is one round. */
static void put_small_home(const struct fixture *f)
{
	put_dir(f->base.fd, "home");
	put_dir(f->base.fd, "home/a");
	put_dir(f->base.fd, "home/a/b");
	put_dir(f->base.fd, "home/a/b/c");
	put_file(f->base.fd, "home/file", "x");
	put_file(f->base.fd, "home/a/file", "x");
}

static void X17_an_entry_changes_before_each_call(void **state)
{
	struct fixture *f = *state;
	static void (*const meddlers[])(struct fixture *) = {
	    swap_for_link,	     swap_inner_for_link, swap_top_for_link, swap_file_for_directory,
	    swap_directory_for_file, take_entry_away,	  take_inner_away,   remove_file_and_close_directory,
	    move_inner_to_victim};
	for (size_t i = 0; i < COUNT(meddlers); i++) {
		unsigned at = 0;
		for (int status = 0; status == 0; at++) {
			put_victim(f->base.fd);
			put_small_home(f);
			assert_int_equal(symlinkat("victim", f->base.fd, "link"), 0);
			status = with_meddling_at(at + 1, remove_traced, meddlers[i], f);
			if (status == -2)
				SKIP_BECAUSE("nothing can be traced here");
			if (status > 0)
				fail_msg("meddler %zu before call %u: status %d", i, at + 1, status);
			assert_true(victim_kept_its_own(f));
			static const char *const rest[] = {"link", "away", "victim", "home"};
			for (size_t k = 0; k < COUNT(rest); k++)
				assert_int_equal(tree_remove(&f->base, rest[k], deadline_in_ms(SECONDS), NULL, NULL), 0);
		}
		assert_true(at > 20);
	}
}

static void mount_inside(const struct fixture *f)
{
	char victim[PATH_MAX + 32], bind[PATH_MAX + 32], tmpfs[PATH_MAX + 32], file[PATH_MAX + 32];
	snprintf(victim, sizeof victim, "%s/victim", f->path);
	snprintf(bind, sizeof bind, "%s/home/a/b/c", f->path);
	snprintf(tmpfs, sizeof tmpfs, "%s/home/empty", f->path);
	snprintf(file, sizeof file, "%s/home/file", f->path);
	CHECK(mount(victim, bind, NULL, MS_BIND, NULL) == 0);
	CHECK(mount("none", tmpfs, "tmpfs", 0, NULL) == 0);
	put_file(f->base.fd, "home/empty/kept", "kept");
	strcat(victim, "/precious");
	CHECK(mount(victim, file, NULL, MS_BIND, NULL) == 0);
}

static bool is_named(const struct tree_left *left, const char *path)
{
	for (size_t i = 0; i < left->count && i < TREE_LEFT_NAMED; i++)
		if (strcmp(left->named[i].path, path) == 0)
			return left->named[i].code == -EBUSY || left->named[i].code == -EXDEV;
	return false;
}

static void remove_around_mounts(struct fixture *f)
{
	CHECK(own_mounts(f));
	mount_inside(f);
	struct tree_left left = {0};
	CHECK(remove_home(f, 100, &left) == -ENOTEMPTY);
	CHECK(left.count == 3);
	CHECK(is_named(&left, "home/a/b/c") && is_named(&left, "home/empty") && is_named(&left, "home/file"));
	CHECK(victim_is_whole(f->base.fd) && holds(f->base.fd, "home/empty/kept", "kept"));
	CHECK(!exists(f->base.fd, "home/a/file"));
}

static void L17_X10_mounts_are_named_and_not_crossed(void **state)
{
	struct fixture *f = *state;
	NEED_MOUNTS(f);
	put_victim(f->base.fd);
	put_home(f);
	put_file(f->base.fd, "home/a/b/file", "x");
	assert_int_equal(in_child(remove_around_mounts, f), 0);
	assert_true(victim_is_whole(f->base.fd));
	assert_false(exists(f->base.fd, "home/a/b/file"));
	/* The mounts went with their namespace. */
	assert_home_goes(f);
	assert_true(victim_is_whole(f->base.fd));
}

static void remove_a_mount_point(struct fixture *f)
{
	char path[PATH_MAX + 32];
	CHECK(own_mounts(f));
	snprintf(path, sizeof path, "%s/home", f->path);
	CHECK(mount("none", path, "tmpfs", 0, NULL) == 0);
	put_file(f->base.fd, "home/kept", "kept");
	struct tree_left left = {0};
	CHECK(remove_home(f, 100, &left) == -ENOTEMPTY);
	CHECK(left.count == 1 && is_named(&left, "home"));
	CHECK(holds(f->base.fd, "home/kept", "kept"));
}

static void L17_the_top_may_be_a_mount(void **state)
{
	struct fixture *f = *state;
	NEED_MOUNTS(f);
	put_dir(f->base.fd, "home");
	assert_int_equal(in_child(remove_a_mount_point, f), 0);
	assert_home_goes(f);
}

static void mount_and_wait(struct fixture *f)
{
	char path[PATH_MAX + 32];
	CHECK(own_mounts(f));
	snprintf(path, sizeof path, "%s/home/a", f->path);
	CHECK(mount("none", path, "tmpfs", 0, NULL) == 0);
	CHECK(mkdirat(f->base.fd, "ready", 0700) == 0);
	for (;;)
		(void)pause();
}

static void X11_a_mount_of_another_namespace_is_no_obstacle(void **state)
{
	struct fixture *f = *state;
	NEED_MOUNTS(f);
	put_home(f);
	pid_t pid = fork();
	if (pid == 0)
		mount_and_wait(f);
	struct deadline end = deadline_in_ms(5 * SECONDS);
	for (struct backoff pause_a_little = {0}; !exists(f->base.fd, "ready") && !deadline_passed(end);)
		backoff_sleep(&pause_a_little, end);
	struct tree_left left;
	int r = remove_home(f, SECONDS, &left);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(exit_status(pid), 128 + SIGKILL);
	assert_true(exists(f->base.fd, "ready"));
	assert_int_equal(r, 0);
	assert_false(exists(f->base.fd, "home"));
}

static void remove_from_read_only(struct fixture *f)
{
	CHECK(own_mounts(f));
	CHECK(mount(f->path, f->path, NULL, MS_BIND, NULL) == 0);
	CHECK(mount(NULL, f->path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) == 0);
	pin_close(&f->base);
	CHECK(pin_open(f->path, &f->base, NULL) == 0);
	struct tree_left left = {0};
	CHECK(remove_home(f, 30 * SECONDS, &left) == -ENOTEMPTY);
	CHECK(left.count == 1 && left.named[0].code == -EROFS && strcmp(left.named[0].path, "home") == 0);
	CHECK(holds(f->base.fd, "home/a/b/c/file", "x"));
}

static void X18_a_read_only_file_system_is_said_at_once(void **state)
{
	struct fixture *f = *state;
	NEED_MOUNTS(f);
	put_home(f);
	int64_t start = monotonic_ns();
	assert_int_equal(in_child(remove_from_read_only, f), 0);
	assert_true(monotonic_ns() - start < 5000000000LL);
	assert_home_goes(f);
}

static void L18_names_are_bytes(void **state)
{
	struct fixture *f = *state;
	char longest[NAME_MAX + 1];
	memset(longest, '\xfe', NAME_MAX);
	longest[NAME_MAX] = '\0';
	const char *const names[] = {"a\nb", "\x1b[31m", "\xff", longest, "-rf", "--", " ", "*", "\\", "...", "\x01\x7f", "%s%n"};
	for (size_t i = 0; i < COUNT(names); i++) {
		/* Directly below the pin, as a directory with the same name inside, and a neighbour that must stay. */
		put_dir(f->base.fd, names[i]);
		AUTO_PIN struct pin pin = PIN_NONE;
		assert_int_equal(pin_child(&f->base, names[i], &pin, NULL), 0);
		put_file(pin.fd, names[i], "x");
	}
	put_file(f->base.fd, "neighbour", "kept");
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(tree_remove(&f->base, names[i], deadline_in_ms(SECONDS), NULL, NULL), 0);
		assert_false(exists(f->base.fd, names[i]));
		for (size_t k = i + 1; k < COUNT(names); k++)
			assert_true(exists(f->base.fd, names[k]));
	}
	assert_true(holds(f->base.fd, "neighbour", "kept"));
}

static int set_flags(int at, const char *name, int wanted)
{
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	int flags = 0;
	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -errno;
	flags = (flags & ~(FS_IMMUTABLE_FL | FS_APPEND_FL)) | wanted;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0 ? 0 : -errno;
}

static void X15_immutable_and_append_only_are_named(void **state)
{
	struct fixture *f = *state;
	put_home(f);
	int r = set_flags(f->base.fd, "home/a/file", FS_IMMUTABLE_FL);
	if (r < 0)
		SKIP_BECAUSE("this file system or user cannot make a file immutable: errno %d", -r);
	assert_int_equal(set_flags(f->base.fd, "home/file", FS_APPEND_FL), 0);
	assert_int_equal(set_flags(f->base.fd, "home/empty", FS_IMMUTABLE_FL), 0);
	struct tree_left left = {0};
	struct err err = {0};
	r = tree_remove(&f->base, "home", deadline_in_ms(100), &left, &err);
	int freed =
	    set_flags(f->base.fd, "home/a/file", 0) | set_flags(f->base.fd, "home/file", 0) | set_flags(f->base.fd, "home/empty", 0);
	assert_int_equal(r, -ENOTEMPTY);
	assert_int_equal(freed, 0);
	assert_int_equal(left.count, 3);
	for (size_t i = 0; i < left.count; i++)
		assert_int_equal(left.named[i].code, -EPERM);
	assert_non_null(strstr(err.text, "3 could not be removed"));
	assert_false(exists(f->base.fd, "home/a/b"));
	assert_home_goes(f);
}

static void X15_the_children_of_an_immutable_directory_are_emptied(void **state)
{
	struct fixture *f = *state;
	put_home(f);
	int r = set_flags(f->base.fd, "home/a", FS_IMMUTABLE_FL);
	if (r < 0)
		SKIP_BECAUSE("this file system or user cannot make a directory immutable: errno %d", -r);
	struct tree_left left = {0};
	r = remove_home(f, 100, &left);
	int freed = set_flags(f->base.fd, "home/a", 0);
	assert_int_equal(r, -ENOTEMPTY);
	assert_int_equal(freed, 0);
	/* home/a/b and home/a/file cannot leave it, but what is in home/a/b can. */
	assert_int_equal(left.count, 2);
	assert_false(exists(f->base.fd, "home/a/b/c"));
	assert_true(exists(f->base.fd, "home/a/b"));
	assert_false(exists(f->base.fd, "home/empty"));
	assert_home_goes(f);
}

static bool code_of(const struct tree_left *left, const char *path, int code)
{
	for (size_t i = 0; i < left->count && i < TREE_LEFT_NAMED; i++)
		if (strcmp(left->named[i].path, path) == 0)
			return left->named[i].code == code;
	return false;
}

static void plain_user_removes(struct fixture *f)
{
	CHECK(become_plain_user());
	struct tree_left left = {0};
	CHECK(remove_home(f, 100, &left) == -ENOTEMPTY);
	CHECK(left.count == 2);
	CHECK(code_of(&left, "home/a/open/file", -EACCES) && code_of(&left, "home/a/closed", -EACCES));
	CHECK(!exists(f->base.fd, "home/file") && !exists(f->base.fd, "home/a/b") && !exists(f->base.fd, "home/a/void"));
}

static void X16_a_foreign_directory_is_named_and_the_rest_goes(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(geteuid(), 0);
	put_home(f);
	static const char *const own[] = {"home", "home/a", "home/a/b", "home/a/b/c", "home/empty"};
	for (size_t i = 0; i < COUNT(own); i++)
		assert_int_equal(fchownat(f->base.fd, own[i], PLAIN_UID, PLAIN_UID, 0), 0);
	put_dir(f->base.fd, "home/a/open");
	put_file(f->base.fd, "home/a/open/file", "x");
	put_dir(f->base.fd, "home/a/closed");
	put_file(f->base.fd, "home/a/closed/file", "x");
	assert_int_equal(fchmodat(f->base.fd, "home/a/closed", 0700, 0), 0);
	put_dir(f->base.fd, "home/a/void");
	assert_int_equal(fchmodat(f->base.fd, "home/a/void", 0, 0), 0);
	assert_int_equal(fchown(f->base.fd, PLAIN_UID, PLAIN_UID), 0);
	assert_int_equal(in_child(plain_user_removes, f), 0);
	assert_true(holds(f->base.fd, "home/a/closed/file", "x"));
	assert_home_goes(f);
}

static void at_most_five_are_named_and_all_are_counted(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "home");
	int r = 0;
	for (int i = 0; i < 8 && !r; i++) {
		char name[16];
		snprintf(name, sizeof name, "home/%d", i);
		put_file(f->base.fd, name, "x");
		r = set_flags(f->base.fd, name, FS_IMMUTABLE_FL);
	}
	if (r < 0)
		SKIP_BECAUSE("this file system or user cannot make a file immutable: errno %d", -r);
	struct tree_left left = {0};
	r = remove_home(f, 100, &left);
	for (int i = 0; i < 8; i++) {
		char name[16];
		snprintf(name, sizeof name, "home/%d", i);
		assert_int_equal(set_flags(f->base.fd, name, 0), 0);
	}
	assert_int_equal(r, -ENOTEMPTY);
	assert_int_equal(left.count, 8);
	assert_home_goes(f);
}

/* What is left far below is named once, though the top is read several times, and goes when it can. */
static void what_is_left_below_4096_levels_is_named_once(void **state)
{
	struct fixture *f = *state;
	put_deep(f, 9000, 4);
	put_file(f->base.fd, "home/stuck", "x");
	int r = set_flags(f->base.fd, "home/stuck", FS_IMMUTABLE_FL);
	if (r < 0)
		SKIP_BECAUSE("this file system or user cannot make a file immutable: errno %d", -r);
	struct tree_left left = {0};
	r = remove_home(f, 100, &left);
	assert_int_equal(set_flags(f->base.fd, "home/stuck", 0), 0);
	assert_int_equal(r, -ENOTEMPTY);
	assert_int_equal(left.count, 1);
	assert_string_equal(left.named[0].path, "home/stuck");
	assert_false(exists(f->base.fd, "home/dddd"));
	assert_home_goes(f);
}

static int run(const char *title)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(every_type_goes_and_no_link_is_followed),
	    FS_TEST(what_is_not_there_is_success),
	    FS_TEST(the_top_may_be_a_file_or_a_link),
	    FS_TEST(L12_directories_without_permission_bits_are_repaired),
	    FS_BIG_TEST(X63_ten_descriptors_are_enough),
	    FS_BIG_TEST(L13_what_lies_too_deep_to_be_moved_is_named),
	    FS_BIG_TEST(a_bush_deeper_than_what_is_kept_open_goes),
	    FS_TEST(L15_a_writer_for_a_while_is_outlasted),
	    FS_TEST(L15_a_writer_for_ever_ends_at_the_deadline),
	    FS_TEST(a_directory_that_fills_again_is_named),
	    FS_TEST(L17_X10_mounts_are_named_and_not_crossed),
	    FS_TEST(L17_the_top_may_be_a_mount),
	    FS_TEST(X11_a_mount_of_another_namespace_is_no_obstacle),
	    FS_TEST(X18_a_read_only_file_system_is_said_at_once),
	    FS_TEST(L18_names_are_bytes),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

static int run_once(const char *title)
{
	const struct CMUnitTest tests[] = {
	    FS_BIG_TEST(X17_an_entry_changes_before_each_call),
	    FS_BIG_TEST(L13_5000_levels_of_40_bytes),
	    FS_BIG_TEST(L13_32768_levels_of_one_byte),
	    FS_BIG_TEST(X14_20000_levels),
	    FS_BIG_TEST(X14_5000_levels_of_255_bytes),
	    FS_BIG_TEST(L14_500000_files_in_one_directory),
	    FS_BIG_TEST(L16_control_a_planted_bug_is_found),
	    FS_BIG_TEST(L16_a_racer_never_reaches_the_victim),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

static int run_as_root(void)
{
	const struct CMUnitTest tests[] = {FS_TEST(X16_a_foreign_directory_is_named_and_the_rest_goes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

static int run_immutable(void)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(X15_immutable_and_append_only_are_named),
	    FS_TEST(X15_the_children_of_an_immutable_directory_are_emptied),
	    FS_TEST(at_most_five_are_named_and_all_are_counted),
	    FS_BIG_TEST(what_is_left_below_4096_levels_is_named_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

static int race_on_the_walk(const char *title)
{
	const struct CMUnitTest tests[] = {FS_BIG_TEST(X17_an_entry_changes_before_each_call),
					   FS_BIG_TEST(L16_a_racer_never_reaches_the_victim_by_the_walk)};
	pin_use_openat2 = false;
	int failed = cmocka_run_group_tests_name(title, tests, NULL, NULL);
	pin_use_openat2 = true;
	return failed;
}

int main(int argc, char **argv)
{
	if (asked_for(argc, argv, "as-root"))
		return run_as_root();
	if (asked_for(argc, argv, "immutable"))
		return run_immutable();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	int failed = run_on_every_host(run);
	failed |= run_once("big trees and races");
	return failed | race_on_the_walk("races on the walk");
}
