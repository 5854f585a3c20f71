#include "fs_fixture.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fsops/file.h"
#include "fsops/regular.h"

#define MAX 65536

static size_t count_names(const struct fixture *f)
{
	DIR *dir = opendir(f->path);
	size_t count = 0;
	for (struct dirent *e; dir && (e = readdir(dir));)
		count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (dir)
		closedir(dir);
	return count;
}

static int read_code(const struct fixture *f, const char *name, size_t max)
{
	AUTO_FREE char *bytes = NULL;
	size_t len = 0;
	return file_read(&f->base, name, max, &bytes, &len, NULL);
}

static void a_file_is_read_whole_with_a_nul_behind(void **state)
{
	struct fixture *f = *state;
	static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 65535, 65536};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		AUTO_FREE char *content = malloc(sizes[i] + 1);
		memset(content, 'x', sizes[i]);
		assert_int_equal(file_replace(&f->base, "file", content, sizes[i], 0600, NULL), 0);
		AUTO_FREE char *bytes = NULL, *listed = NULL;
		size_t len = 1;
		assert_int_equal(file_read_listed(&f->base, "file", MAX, &listed, &len, NULL), 0);
		assert_int_equal(len, sizes[i]);
		assert_memory_equal(listed, content, len);
		assert_int_equal(file_read(&f->base, "file", MAX, &bytes, &len, NULL), 0);
		assert_int_equal(len, sizes[i]);
		assert_memory_equal(bytes, content, len);
		assert_int_equal(bytes[len], '\0');
	}
}

static void more_than_the_limit_is_refused(void **state)
{
	struct fixture *f = *state;
	put_file(f->base.fd, "file", "12345");
	assert_int_equal(read_code(f, "file", 5), 0);
	assert_int_equal(read_code(f, "file", 4), -EFBIG);
	assert_int_equal(read_code(f, "file", 0), -EFBIG);
	put_file(f->base.fd, "empty", "");
	assert_int_equal(read_code(f, "empty", 0), 0);
	/* A sparse terabyte is refused before a byte is read. */
	AUTO_CLOSE int fd = openat(f->base.fd, "file", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	assert_int_equal(read_code(f, "file", MAX), -EFBIG);
}

static void a_file_of_no_stated_size_is_bounded_too(void **state)
{
	(void)state;
	AUTO_FREE char *bytes = NULL, *again = NULL;
	size_t len = 0;
	assert_int_equal(file_read_path("/proc/self/status", MAX, &bytes, &len, NULL), 0);
	assert_true(len > 100 && strncmp(bytes, "Name:", 5) == 0);
	assert_int_equal(file_read_path("/proc/self/status", 10, &again, &len, NULL), -EFBIG);
	assert_null(again);
	assert_int_equal(file_read_path("/proc/self/smaps", 1 << 20, &again, &len, NULL), 0);
	assert_true(len > 4096 && again[len - 1] == '\n' && strlen(again) == len);
}

static void limits_and_paths_out_of_range_are_refused(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX + 8];
	AUTO_FREE char *bytes = NULL;
	size_t len = 0;
	struct err err = {0};
	put_file(f->base.fd, "file", "x");
	assert_int_equal(file_read(&f->base, "file", SIZE_MAX / 2, &bytes, &len, &err), -EINVAL);
	assert_non_null(strstr(err.text, "limit"));
	assert_int_equal(file_read_path("/nowhere-at-all", MAX, &bytes, &len, &err), -ENOENT);
	memset(path, 'p', sizeof path);
	path[0] = path[PATH_MAX + 5] = '/';
	path[PATH_MAX + 7] = '\0';
	assert_int_equal(file_read_path(path, MAX, &bytes, &len, &err), -ENAMETOOLONG);
	assert_int_equal(file_read_path("/nowhere-at-all/file", MAX, &bytes, &len, &err), -ENOENT);
	assert_null(bytes);
}

static void only_its_own_file_is_taken_back(void **state)
{
	struct fixture *f = *state;
	put_file(f->base.fd, "file", "ours");
	AUTO_CLOSE int ours = openat(f->base.fd, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(renameat(f->base.fd, "file", f->base.fd, "away"), 0);
	regular_take_back(&f->base, "file", ours);
	put_file(f->base.fd, "file", "theirs");
	regular_take_back(&f->base, "file", ours);
	regular_take_back(&f->base, "file", -1);
	AUTO_CLOSE int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	regular_take_back(&f->base, "file", zero);
	assert_true(holds(f->base.fd, "file", "theirs"));
	regular_take_back(&f->base, "away", ours);
	assert_false(exists(f->base.fd, "away"));
}

static void put_socket(const struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%.90s/socket", f->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
}

static void X08_only_regular_files_are_read(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "dir");
	put_file(f->base.fd, "target", "x");
	put_socket(f);
	assert_int_equal(mkfifoat(f->base.fd, "fifo", 0600), 0);
	assert_int_equal(symlinkat("target", f->base.fd, "link"), 0);
	assert_int_equal(symlinkat("nowhere", f->base.fd, "dangling"), 0);
	static const struct row {
		const char *name;
		int code;
		const char *word;
	} rows[] = {{"dir", -EINVAL, "directory"}, {"fifo", -EINVAL, "FIFO"},	 {"socket", -EINVAL, "socket"},
		    {"link", -ELOOP, "link"},	   {"dangling", -ELOOP, "link"}, {"missing", -ENOENT, "No such file"}};
	int (*const readers[])(const struct pin *, const char *, size_t, char **, size_t *, struct err *) = {file_read, file_read_listed};
	for (size_t i = 0; i < COUNT(rows) * COUNT(readers); i++) {
		const struct row *row = &rows[i / COUNT(readers)];
		AUTO_FREE char *bytes = NULL;
		size_t len;
		struct err err = {0};
		assert_int_equal(readers[i % COUNT(readers)](&f->base, row->name, MAX, &bytes, &len, &err), row->code);
		assert_non_null(strstr(err.text, row->word));
		assert_string_equal(err.subject, row->name);
	}
	assert_int_equal(read_code(f, "../x", MAX), -EINVAL);
	struct err err = {0};
	AUTO_FREE char *bytes = NULL;
	size_t len;
	assert_int_equal(file_read_path("/dev/zero", MAX, &bytes, &len, &err), -EINVAL);
	assert_non_null(strstr(err.text, "device"));
	assert_int_equal(file_read_path("relative", MAX, &bytes, &len, NULL), -EINVAL);
	assert_int_equal(file_read_path("/etc/", MAX, &bytes, &len, NULL), -EINVAL);
	assert_int_equal(file_read_path("", MAX, &bytes, &len, NULL), -EINVAL);
}

static void creating_forces_the_mode_and_never_overwrites(void **state)
{
	struct fixture *f = *state;
	static const mode_t masks[] = {0, 022, 0777};
	for (size_t i = 0; i < COUNT(masks); i++) {
		char name[8];
		snprintf(name, sizeof name, "f%zu", i);
		mode_t before = umask(masks[i]);
		int r = file_create(&f->base, name, "bytes", 5, 0644, NULL);
		(void)umask(before);
		assert_int_equal(r, 0);
		assert_int_equal(mode_of(f->base.fd, name), 0644);
		assert_int_equal(file_create(&f->base, name, "other", 5, 0600, NULL), -EEXIST);
		assert_true(holds(f->base.fd, name, "bytes"));
		assert_int_equal(mode_of(f->base.fd, name), 0644);
	}
	assert_int_equal(symlinkat("nowhere", f->base.fd, "dangling"), 0);
	assert_int_equal(file_create(&f->base, "dangling", "x", 1, 0600, NULL), -EEXIST);
	assert_false(exists(f->base.fd, "nowhere"));
	assert_int_equal(file_create(&f->base, "a/b", "x", 1, 0600, NULL), -EINVAL);
}

static void replacing_is_whole_and_leaves_no_other_name(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	assert_int_equal(file_replace(&f->base, "file", "one", 3, 0600, NULL), 0);
	mode_t before = umask(0777);
	int r = file_replace(&f->base, "file", "two", 3, 0640, NULL);
	(void)umask(before);
	assert_int_equal(r, 0);
	assert_true(holds(f->base.fd, "file", "two"));
	assert_int_equal(mode_of(f->base.fd, "file"), 0640);
	assert_int_equal(symlinkat("victim/precious", f->base.fd, "link"), 0);
	assert_int_equal(file_replace(&f->base, "link", "new", 3, 0600, NULL), 0);
	struct stat st;
	assert_int_equal(fstatat(f->base.fd, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_true(victim_is_whole(f->base.fd));
	put_dir(f->base.fd, "dir");
	assert_int_equal(file_replace(&f->base, "dir", "x", 1, 0600, NULL), -EISDIR);
	assert_int_equal(file_replace(&f->base, "..", "x", 1, 0600, NULL), -EINVAL);
	assert_int_equal(count_names(f), 4);
}

static void a_name_of_255_bytes_can_be_replaced(void **state)
{
	struct fixture *f = *state;
	char name[NAME_MAX + 2];
	memset(name, 'n', sizeof name);
	name[NAME_MAX] = '\0';
	assert_int_equal(file_replace(&f->base, name, "x", 1, 0600, NULL), 0);
	assert_true(holds(f->base.fd, name, "x"));
	name[NAME_MAX] = 'n';
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(file_replace(&f->base, name, "x", 1, 0600, NULL), -ENAMETOOLONG);
	assert_int_equal(count_names(f), 1);
}

static void temporary_names_are_told_from_others(void **state)
{
	(void)state;
	assert_true(file_is_temporary(".tmp-0123456789abcdef@demo.env"));
	static const char *const others[] = {".tmp-",
					     ".tmp-0123456789abcdef",
					     ".tmp-0123456789abcdef@",
					     ".tmp-0123456789ABCDEF@x",
					     ".tmp-0123456789abcde@x",
					     ".tmp-0123456789abcdef0@x",
					     "tmp-0123456789abcdef@x",
					     "",
					     "demo.env"};
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(file_is_temporary(others[i]));
}

static void write_past_the_size_limit(struct fixture *f)
{
	static char big[8192];
	struct rlimit limit = {1024, 1024};
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK(file_create(&f->base, "new", big, sizeof big, 0600, NULL) == -EFBIG);
	CHECK(file_replace(&f->base, "old", big, sizeof big, 0600, NULL) == -EFBIG);
}

static void a_failed_write_takes_its_name_away(void **state)
{
	struct fixture *f = *state;
	put_file(f->base.fd, "old", "old");
	assert_int_equal(in_child(write_past_the_size_limit, f), 0);
	assert_true(holds(f->base.fd, "old", "old"));
	assert_int_equal(count_names(f), 1);
}

static void removing_takes_names_not_targets(void **state)
{
	struct fixture *f = *state;
	bool removed = false;
	put_victim(f->base.fd);
	put_file(f->base.fd, "file", "x");
	assert_int_equal(symlinkat("victim/precious", f->base.fd, "link"), 0);
	assert_int_equal(file_remove(&f->base, "file", &removed, NULL), 0);
	assert_true(removed);
	assert_int_equal(file_remove(&f->base, "file", &removed, NULL), 0);
	assert_false(removed);
	assert_int_equal(file_remove(&f->base, "link", NULL, NULL), 0);
	assert_int_equal(file_remove(&f->base, "victim", &removed, NULL), -EISDIR);
	assert_int_equal(file_remove(&f->base, "victim/precious", &removed, NULL), -EINVAL);
	assert_true(victim_is_whole(f->base.fd));
	assert_int_equal(count_names(f), 1);
}

static void swap_file_for_link(struct fixture *f)
{
	(void)renameat2(f->base.fd, "link", f->base.fd, "file", RENAME_EXCHANGE);
}

static void replace_and_read(struct fixture *f)
{
	AUTO_FREE char *bytes = NULL;
	size_t len = 0;
	int r = file_read(&f->base, "file", MAX, &bytes, &len, NULL);
	CHECK(r == -ELOOP || (r == 0 && len == 3 && memcmp(bytes, "old", 3) == 0));
	CHECK(file_replace(&f->base, "file", "new", 3, 0600, NULL) == 0);
	CHECK(file_create(&f->base, "file", "bad", 3, 0600, NULL) == -EEXIST);
}

static void X09_a_swap_before_each_call_is_never_followed(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	int status = 0;
	unsigned at = 0;
	for (; status == 0; at++) {
		put_file(f->base.fd, "file", "old");
		assert_int_equal(symlinkat("victim/precious", f->base.fd, "link"), 0);
		status = with_meddling_at(at + 1, replace_and_read, swap_file_for_link, f);
		assert_true(victim_is_whole(f->base.fd));
		assert_int_equal(count_names(f), 3);
		assert_int_equal(unlinkat(f->base.fd, "file", 0), 0);
		assert_int_equal(unlinkat(f->base.fd, "link", 0), 0);
	}
	if (status == -2)
		SKIP_BECAUSE("nothing can be traced here");
	assert_int_equal(status, -1);
	assert_true(at > 8);
}

static void writing_ends_with_the_error_of_the_target(void **state)
{
	(void)state;
	AUTO_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(write_all(full, "x", 1), -ENOSPC);
	assert_int_equal(write_all(full, "", 0), 0);
	assert_int_equal(write_all(-1, "x", 1), -EBADF);
}

static int run(const char *title)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(a_file_is_read_whole_with_a_nul_behind),
	    FS_TEST(more_than_the_limit_is_refused),
	    FS_TEST(a_file_of_no_stated_size_is_bounded_too),
	    FS_TEST(limits_and_paths_out_of_range_are_refused),
	    FS_TEST(only_its_own_file_is_taken_back),
	    FS_TEST(X08_only_regular_files_are_read),
	    FS_TEST(creating_forces_the_mode_and_never_overwrites),
	    FS_TEST(replacing_is_whole_and_leaves_no_other_name),
	    FS_TEST(a_name_of_255_bytes_can_be_replaced),
	    FS_TEST(temporary_names_are_told_from_others),
	    FS_TEST(a_failed_write_takes_its_name_away),
	    FS_TEST(removing_takes_names_not_targets),
	    FS_TEST(X09_a_swap_before_each_call_is_never_followed),
	    FS_TEST(writing_ends_with_the_error_of_the_target),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

int main(void)
{
	return run_on_every_host(run);
}
