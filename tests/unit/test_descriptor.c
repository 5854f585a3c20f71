/* Descriptors, bytes and errors by themselves. */
#include "fs_fixture.h"

#include <sys/resource.h>

#include "fsops/bytes.h"
#include "fsops/descriptor.h"
#include "fsops/draft.h"
#include "fsops/folder.h"
#include "fsops/tree_pair.h"

static void every_type_has_a_word(void **state)
{
	static const struct {
		mode_t type;
		const char *word;
	} rows[] = {{S_IFREG, "regular"}, {S_IFDIR, "directory"}, {S_IFLNK, "link"},	{S_IFIFO, "FIFO"},
		    {S_IFSOCK, "socket"}, {S_IFCHR, "device"},	  {S_IFBLK, "device"}, {0, "type"}};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (!strstr(mode_type_text(rows[i].type | 0644), rows[i].word))
			fail_msg("%o is \"%s\"", rows[i].type, mode_type_text(rows[i].type));
}

static void where_a_mount_is_unknown_the_device_decides(void **state)
{
	(void)state;
	assert_true(identity_same_mount(1, 7, 1, 7));
	assert_false(identity_same_mount(1, 7, 1, 8));
	assert_true(identity_same_mount(1, 7, 1, 0));
	assert_true(identity_same_mount(1, 0, 1, 7));
	assert_false(identity_same_mount(1, 0, 2, 0));
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void close_one_by_one(struct fixture *f)
{
	(void)f;
	struct rlimit limit = {64, 64};
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(dup2(STDERR_FILENO, 40) == 40 && dup2(STDERR_FILENO, 41) == 41 && dup2(STDERR_FILENO, 42) == 42 && dup2(STDERR_FILENO, 63) == 63);
	CHECK(deny_calls(SYS_close_range, -1, ENOSYS));
	descriptor_close_range(41, 41);
	CHECK(is_open(40) && !is_open(41) && is_open(42));
	descriptor_close_range(41, ~0U);
	CHECK(is_open(40) && !is_open(42) && !is_open(63));
}

static void without_close_range_they_are_closed_one_by_one(void **state)
{
	assert_int_equal(in_child(close_one_by_one, *state), 0);
}

static void copy_when_it_is_too_late(struct fixture *f)
{
	static char bytes[512];
	struct err err = {0};
	put_file(f->base.fd, "from", "some bytes");
	AUTO_CLOSE int from = openat(f->base.fd, "from", O_RDONLY | O_CLOEXEC), to = openat(f->base.fd, "to", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (int denied = 0; denied < 2; denied++) {
		CHECK(!denied || deny_calls(SYS_copy_file_range, -1, ENOSYS));
		CHECK(deny_calls(SYS_ioctl, -1, EOPNOTSUPP));
		CHECK(bytes_copy(from, to, 10, deadline_in_ms(-1), &err) == -ETIMEDOUT);
		CHECK(strstr(err.text, "the time was up after 0 of 10 bytes"));
		CHECK(pread(to, bytes, sizeof bytes, 0) == 0);
	}
	CHECK(bytes_copy(from, to, 11, DEADLINE_NEVER, &err) == -EAGAIN); /* one more than there is */
	CHECK(bytes_copy(from, to, 0, deadline_in_ms(-1), &err) == 0);
}

static void a_copy_ends_at_its_deadline(void **state)
{
	assert_int_equal(in_child(copy_when_it_is_too_late, *state), 0);
}

static void an_error_that_nobody_hears_stays_one(void **state)
{
	struct err err = {.code = -EIO, .text = "inner"};
	(void)state;
	assert_int_equal(err_set(NULL, -EINVAL, "stage", NULL, "text"), -EINVAL);
	assert_int_equal(err_prepend(NULL, "context"), -EIO);
	assert_int_equal(err_prepend(&err, "context"), -EIO);
	assert_string_equal(err.text, "context: inner");
}

static void a_draft_is_published_under_one_name(void **state)
{
	struct fixture *f = *state;
	struct err err = {0};
	put_file(f->base.fd, "file", "x");
	assert_int_equal(publish_new(&f->base, "a/b", &f->base, "new", &err), -EINVAL);
	assert_int_equal(publish_new(&f->base, "file", &f->base, "..", &err), -EINVAL);
	assert_true(holds(f->base.fd, "file", "x"));
}

/* The first five are named, all are counted. */
static void what_was_left_is_added_up(void **state)
{
	struct tree_left left = {.count = 0}, three = {.count = 3, .named = {{"a", -1}, {"b", -2}, {"c", -3}}}, many = {.count = 99, .named = {{"d", -4}, {"e", -5}, {"f", -6}}};
	(void)state;
	tree_left_add(&left, &three);
	assert_int_equal(left.count, 3);
	tree_left_add(&left, &many);
	assert_int_equal(left.count, 102);
	assert_string_equal(left.named[2].path, "c");
	assert_string_equal(left.named[4].path, "e");
	left = (struct tree_left){.count = 0};
	tree_left_add(&left, &many);
	assert_string_equal(left.named[0].path, "d");
	assert_int_equal(left.count, 99);
}

static void a_folder_goes_with_the_files_that_were_ours_and_stays_with_others(void **state)
{
	static const char *const files[] = {"ours", "odd"};
	struct fixture *f = *state;
	bool removed = true;
	const int at = f->base.fd;
	assert_int_equal(folder_forget(&f->base, "none", files, COUNT(files), &removed, NULL), 0);
	put_file(at, "file", "x");
	assert_int_equal(symlinkat("file", at, "link"), 0);
	assert_int_equal(folder_forget(&f->base, "file", files, COUNT(files), NULL, NULL), 0);
	assert_int_equal(folder_forget(&f->base, "link", files, COUNT(files), NULL, NULL), 0);
	assert_true(exists(at, "file") && exists(at, "link"));
	put_dir(at, "folder");
	put_dir(at, "folder/odd");
	put_file(at, "folder/ours", "x");
	assert_int_equal(folder_forget(&f->base, "folder", files, COUNT(files), &removed, NULL), 0);
	assert_true(removed && exists(at, "folder/odd") && !exists(at, "folder/ours"));
	assert_int_equal(unlinkat(at, "folder/odd", AT_REMOVEDIR), 0);
	assert_int_equal(folder_forget(&f->base, "folder", files, COUNT(files), &removed, NULL), 0);
	assert_true(!removed && !exists(at, "folder"));
}

static void look_and_remove_nothing(struct fixture *f)
{
	static const char *const files[] = {"ours"};
	struct err err = {0};
	CHECK(mkdirat(f->base.fd, "folder", 0700) == 0);
	CHECK(deny_calls(SYS_unlinkat, -1, EACCES));
	CHECK(folder_forget(&f->base, "folder", files, COUNT(files), NULL, NULL) == -EACCES);
	CHECK(folder_forget(&f->base, "folder", files, COUNT(files), NULL, &err) == -EACCES && err.code == -EACCES);
}

static void a_folder_that_cannot_be_removed_is_told(void **state)
{
	assert_int_equal(in_child(look_and_remove_nothing, *state), 0);
}

static void publish_without_renameat2(struct fixture *f)
{
	struct stat st;
	const int at = f->base.fd;
	put_file(at, "file", "new");
	put_file(at, "taken", "old");
	CHECK(mkdirat(at, "directory", 0700) == 0 && mkdirat(at, "directory/in", 0700) == 0 && mkdirat(at, "empty", 0700) == 0);
	CHECK(deny_calls(SYS_renameat2, -1, EINVAL)); /* as on FUSE, NFS, 9p */
	CHECK(publish_new(&f->base, "file", &f->base, "taken", NULL) == -EEXIST);
	CHECK(publish_new(&f->base, "directory", &f->base, "taken", NULL) == -EEXIST);
	CHECK(publish_new(&f->base, "directory", &f->base, "empty", NULL) == -EEXIST);
	CHECK(publish_new(&f->base, "missing", &f->base, "new", NULL) == -ENOENT);
	CHECK(fstatat(at, "taken", &st, 0) == 0 && st.st_size == 3 && fstatat(at, "directory/in", &st, 0) == 0);
	CHECK(publish_new(&f->base, "file", &f->base, "new file", NULL) == 0);
	CHECK(publish_new(&f->base, "directory", &f->base, "new directory", NULL) == 0);
	CHECK(fstatat(at, "new directory/in", &st, 0) == 0 && fstatat(at, "new file", &st, 0) == 0 && st.st_nlink == 1);
	CHECK(fstatat(at, "directory", &st, 0) < 0 && fstatat(at, "file", &st, 0) < 0);
}

static void where_rename_cannot_refuse_to_replace_nothing_is_replaced(void **state)
{
	assert_int_equal(in_child(publish_without_renameat2, *state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(every_type_has_a_word),
	    FS_TEST(where_a_mount_is_unknown_the_device_decides),
	    FS_TEST(without_close_range_they_are_closed_one_by_one),
	    FS_TEST(a_copy_ends_at_its_deadline),
	    FS_TEST(an_error_that_nobody_hears_stays_one),
	    FS_TEST(a_draft_is_published_under_one_name),
	    FS_TEST(a_folder_goes_with_the_files_that_were_ours_and_stays_with_others),
	    FS_TEST(a_folder_that_cannot_be_removed_is_told),
	    FS_TEST(where_rename_cannot_refuse_to_replace_nothing_is_replaced),
	    FS_TEST(what_was_left_is_added_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
