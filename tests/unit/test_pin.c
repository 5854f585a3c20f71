#include "fs_fixture.h"

static void a_child_is_pinned_with_its_identity(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	put_dir(f->base.fd, "d");
	assert_int_equal(fstatat(f->base.fd, "d", &st, 0), 0);
	AUTO_PIN struct pin pin = PIN_NONE;
	assert_int_equal(pin_child(&f->base, "d", &pin, NULL), 0);
	assert_true(pin.dev == st.st_dev && pin.ino == st.st_ino);
	assert_true(pin.mount != 0 && pin.mount == f->base.mount);
	assert_int_equal(fcntl(pin.fd, F_GETFD), FD_CLOEXEC);
	assert_false(pin_same(&pin, &f->base));
	struct pin taken = pin_take(&pin);
	assert_int_equal(pin.fd, -1);
	pin_close(&taken);
	assert_int_equal(taken.fd, -1);
}

static void what_is_no_directory_is_refused_by_its_errno(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "d");
	put_dir(f->base.fd, "d/e");
	put_file(f->base.fd, "file", "x");
	assert_int_equal(symlinkat("d", f->base.fd, "link"), 0);
	assert_int_equal(symlinkat("nowhere", f->base.fd, "dangling"), 0);
	assert_int_equal(symlinkat("loop", f->base.fd, "loop"), 0);
	assert_int_equal(symlinkat(f->path, f->base.fd, "d/absolute"), 0);
	assert_int_equal(mkfifoat(f->base.fd, "fifo", 0600), 0);
	static const struct {
		const char *path;
		int code;
	} rows[] = {
	    {"file", -ENOTDIR},	      {"fifo", -ENOTDIR}, {"link", -ELOOP},	  {"dangling", -ELOOP},	    {"loop", -ELOOP},
	    {"missing", -ENOENT},     {"link/e", -ELOOP}, {"d/absolute", -ELOOP}, {"d/absolute/d", -ELOOP}, {"file/x", -ENOTDIR},
	    {"d/missing/x", -ENOENT}, {"/", -EINVAL},	  {"/etc", -EINVAL},	  {"..", -EINVAL},	    {"d/..", -EINVAL},
	    {"d/../d", -EINVAL},      {"../x", -EINVAL},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pin pin = PIN_NONE;
		struct err err = {0};
		int r = pin_descend(&f->base, rows[i].path, &pin, &err);
		if (r != rows[i].code)
			fail_msg("%s: %d, not %d", rows[i].path, r, rows[i].code);
		assert_int_equal(pin.fd, -1);
		assert_int_equal(err.code, r);
		assert_true(err.text[0]);
		if (pin_single_name(rows[i].path))
			assert_int_equal(pin_child(&f->base, rows[i].path, &pin, NULL), rows[i].code);
	}
}

static void odd_spellings_of_a_path_mean_the_same(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "d");
	put_dir(f->base.fd, "d/...");
	put_dir(f->base.fd, "d/.../..x");
	static const char *const same[] = {"d/.../..x", "d//.../..x", "./d/./.../..x/", "d/.../..x/."};
	AUTO_PIN struct pin first = PIN_NONE;
	assert_int_equal(pin_descend(&f->base, same[0], &first, NULL), 0);
	for (size_t i = 1; i < COUNT(same); i++) {
		AUTO_PIN struct pin pin = PIN_NONE;
		assert_int_equal(pin_descend(&f->base, same[i], &pin, NULL), 0);
		assert_true(pin_same(&pin, &first));
	}
	put_dir(f->base.fd, "xy");
	put_dir(f->base.fd, ".y");
	static const char *const two[] = {"xy", ".y"};
	for (size_t i = 0; i < COUNT(two); i++) {
		AUTO_PIN struct pin pin = PIN_NONE;
		assert_int_equal(pin_descend(&f->base, two[i], &pin, NULL), 0);
	}
	static const char *const self[] = {"", ".", "./"};
	for (size_t i = 0; i < COUNT(self); i++) {
		AUTO_PIN struct pin pin = PIN_NONE;
		assert_int_equal(pin_descend(&f->base, self[i], &pin, NULL), 0);
		assert_true(pin_same(&pin, &f->base));
	}
}

static void a_name_is_one_component(void **state)
{
	(void)state;
	static const char *const good[] = {"a", "...", "..a", ".a", "-", "\xff", "a\nb"};
	static const char *const bad[] = {"", ".", "..", "a/b", "/", "a/"};
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(pin_single_name(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(pin_single_name(bad[i]));
}

static void too_long_names_are_refused(void **state)
{
	struct fixture *f = *state;
	char name[NAME_MAX + 2];
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	struct pin pin = PIN_NONE;
	assert_int_equal(pin_child(&f->base, name, &pin, NULL), -ENAMETOOLONG);
	AUTO_FREE char *path = malloc(PATH_MAX + 1);
	for (size_t i = 0; i < PATH_MAX; i++)
		path[i] = i % 2 ? '/' : '.';
	path[PATH_MAX] = '\0';
	assert_int_equal(pin_descend(&f->base, path, &pin, NULL), -ENAMETOOLONG);
	snprintf(path, PATH_MAX, "%s/%s", f->path, name);
	assert_int_equal(pin_make_path(path, 0700, &pin, NULL), -ENAMETOOLONG);
}

static void open_follows_links_once_and_only_there(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX + 32];
	put_dir(f->base.fd, "d");
	put_file(f->base.fd, "file", "x");
	assert_int_equal(symlinkat("d", f->base.fd, "link"), 0);
	AUTO_PIN struct pin pin = PIN_NONE, direct = PIN_NONE;
	snprintf(path, sizeof path, "%s/link", f->path);
	assert_int_equal(pin_open(path, &pin, NULL), 0);
	assert_int_equal(pin_child(&f->base, "d", &direct, NULL), 0);
	assert_true(pin_same(&pin, &direct));
	AUTO_PIN struct pin elsewhere = PIN_NONE;
	assert_int_equal(pin_open("/proc", &elsewhere, NULL), 0);
	assert_false(pin_same(&pin, &elsewhere));
	snprintf(path, sizeof path, "%s/file", f->path);
	struct pin none = PIN_NONE;
	assert_int_equal(pin_open(path, &none, NULL), -ENOTDIR);
	snprintf(path, sizeof path, "%s/missing", f->path);
	assert_int_equal(pin_open(path, &none, NULL), -ENOENT);
	assert_int_equal(pin_open("relative", &none, NULL), -EINVAL);
	assert_int_equal(pin_open("", &none, NULL), -EINVAL);
}

static void adopting_takes_directories_only(void **state)
{
	struct fixture *f = *state;
	put_file(f->base.fd, "file", "x");
	int fd = openat(f->base.fd, "file", O_RDONLY | O_CLOEXEC);
	struct pin pin = PIN_NONE;
	assert_int_equal(pin_adopt(fd, &pin, NULL), -ENOTDIR);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	fd = openat(f->base.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pin_adopt(fd, &pin, NULL), 0);
	assert_true(pin_same(&pin, &f->base));
	pin_close(&pin);
	assert_int_equal(pin_adopt(-1, &pin, NULL), -EBADF);
}

static void modes_are_forced_whatever_the_umask(void **state)
{
	struct fixture *f = *state;
	static const mode_t masks[] = {0, 022, 0777};
	for (size_t i = 0; i < COUNT(masks); i++) {
		char name[8], path[PATH_MAX + 32];
		snprintf(name, sizeof name, "m%zu", i);
		bool made = false;
		struct pin pin = PIN_NONE, deep = PIN_NONE;
		snprintf(path, sizeof path, "%s/p%zu/q//r/", f->path, i);
		mode_t before = umask(masks[i]);
		int first = pin_make_child(&f->base, name, 0700, &made, &pin, NULL);
		int second = pin_make_path(path, 0750, &deep, NULL);
		(void)umask(before);
		assert_int_equal(first, 0);
		assert_int_equal(second, 0);
		assert_true(made);
		assert_int_equal(mode_of(f->base.fd, name), 0700);
		assert_int_equal(mode_of(deep.fd, "."), 0750);
		assert_int_equal(mode_of(deep.fd, ".."), 0750);
		pin_close(&pin);
		pin_close(&deep);
	}
}

static void an_existing_child_is_taken_and_its_mode_forced(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "d");
	assert_int_equal(fchmodat(f->base.fd, "d", 0, 0), 0);
	bool made = true;
	AUTO_PIN struct pin pin = PIN_NONE;
	assert_int_equal(pin_make_child(&f->base, "d", 0700, &made, &pin, NULL), 0);
	assert_false(made);
	assert_int_equal(mode_of(f->base.fd, "d"), 0700);
}

static void making_never_goes_through_a_link(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX + 32];
	put_victim(f->base.fd);
	put_file(f->base.fd, "file", "x");
	assert_int_equal(symlinkat("victim", f->base.fd, "link"), 0);
	assert_int_equal(symlinkat("nowhere", f->base.fd, "dangling"), 0);
	struct pin pin = PIN_NONE;
	assert_int_equal(pin_make_child(&f->base, "link", 0700, NULL, &pin, NULL), -ELOOP);
	assert_int_equal(pin_make_child(&f->base, "dangling", 0700, NULL, &pin, NULL), -ELOOP);
	assert_int_equal(pin_make_child(&f->base, "file", 0700, NULL, &pin, NULL), -ENOTDIR);
	assert_int_equal(pin_make_child(&f->base, "a/b", 0700, NULL, &pin, NULL), -EINVAL);
	snprintf(path, sizeof path, "%s/dangling/x", f->path);
	assert_int_equal(pin_make_path(path, 0700, &pin, NULL), -ELOOP);
	snprintf(path, sizeof path, "%s/file/x", f->path);
	assert_int_equal(pin_make_path(path, 0700, &pin, NULL), -ENOTDIR);
	assert_false(exists(f->base.fd, "nowhere"));
	assert_true(victim_is_whole(f->base.fd));
	assert_int_equal(pin_make_path("relative", 0700, &pin, NULL), -EINVAL);
}

static void a_path_that_exists_keeps_its_modes(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "d");
	assert_int_equal(fchmodat(f->base.fd, "d", 0755, 0), 0);
	assert_int_equal(symlinkat("d", f->base.fd, "link"), 0);
	char path[PATH_MAX + 32];
	snprintf(path, sizeof path, "%s/link/new", f->path);
	AUTO_PIN struct pin pin = PIN_NONE;
	assert_int_equal(pin_make_path(path, 0700, &pin, NULL), 0);
	assert_int_equal(mode_of(f->base.fd, "d"), 0755);
	assert_int_equal(mode_of(f->base.fd, "d/new"), 0700);
}

static void opening_a_file_is_no_follow(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	assert_int_equal(symlinkat("victim/precious", f->base.fd, "link"), 0);
	assert_int_equal(symlinkat("nowhere", f->base.fd, "dangling"), 0);
	put_file(f->base.fd, "file", "old");
	assert_int_equal(pin_open_file(&f->base, "link", O_RDONLY, 0, NULL), -ELOOP);
	assert_int_equal(pin_open_file(&f->base, "link", O_WRONLY | O_TRUNC, 0, NULL), -ELOOP);
	assert_int_equal(pin_open_file(&f->base, "dangling", O_WRONLY | O_CREAT, 0600, NULL), -ELOOP);
	assert_int_equal(pin_open_file(&f->base, "dangling", O_WRONLY | O_CREAT | O_EXCL, 0600, NULL), -EEXIST);
	assert_int_equal(pin_open_file(&f->base, "file", O_RDONLY | O_DIRECTORY, 0, NULL), -ENOTDIR);
	assert_int_equal(pin_open_file(&f->base, "file", O_WRONLY | O_CREAT | O_EXCL, 0600, NULL), -EEXIST);
	assert_int_equal(pin_open_file(&f->base, "victim", O_WRONLY, 0, NULL), -EISDIR);
	assert_int_equal(pin_open_file(&f->base, "missing", O_RDONLY, 0, NULL), -ENOENT);
	assert_int_equal(pin_open_file(&f->base, "../x", O_RDONLY, 0, NULL), -EINVAL);
	assert_false(exists(f->base.fd, "nowhere"));
	assert_true(victim_is_whole(f->base.fd));
	AUTO_CLOSE int held = pin_open_file(&f->base, "link", O_PATH | O_NOFOLLOW, 0, NULL);
	struct stat st;
	assert_true(held >= 0 && fstat(held, &st) == 0 && S_ISLNK(st.st_mode));
	AUTO_CLOSE int fd = pin_open_file(&f->base, "file", O_WRONLY | O_TRUNC, 0, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(holds(f->base.fd, "file", ""));
}

static void mounts_are_refused(struct fixture *f)
{
	char path[PATH_MAX + 32];
	CHECK(own_mounts(f));
	snprintf(path, sizeof path, "%s/bind", f->path);
	char victim[PATH_MAX + 32];
	snprintf(victim, sizeof victim, "%s/victim", f->path);
	CHECK(mount(victim, path, NULL, MS_BIND, NULL) == 0);
	snprintf(path, sizeof path, "%s/tmpfs", f->path);
	CHECK(mount("none", path, "tmpfs", 0, "mode=0") == 0);
	snprintf(path, sizeof path, "%s/file", f->path);
	snprintf(victim, sizeof victim, "%s/victim/precious", f->path);
	CHECK(mount(victim, path, NULL, MS_BIND, NULL) == 0);
	/* The same file system: only the mount id differs. */
	struct stat inside, outside;
	CHECK(fstatat(f->base.fd, "bind", &inside, 0) == 0 && fstat(f->base.fd, &outside) == 0);
	CHECK(inside.st_dev == outside.st_dev);
	struct pin pin = PIN_NONE;
	CHECK(pin_child(&f->base, "bind", &pin, NULL) == -EXDEV);
	CHECK(pin_child(&f->base, "tmpfs", &pin, NULL) == -EXDEV);
	CHECK(pin_descend(&f->base, "bind/inner", &pin, NULL) == -EXDEV);
	CHECK(pin_make_child(&f->base, "bind", 0700, NULL, &pin, NULL) == -EXDEV);
	CHECK(pin_open_file(&f->base, "file", O_WRONLY | O_TRUNC, 0, NULL) == -EXDEV);
	CHECK(pin_open_file(&f->base, "file", O_WRONLY | O_CREAT | O_EXCL, 0600, NULL) == -EXDEV);
	snprintf(path, sizeof path, "%s/bind", f->path);
	CHECK(pin_open(path, &pin, NULL) == 0);
	CHECK(pin.mount != f->base.mount);
	pin_close(&pin);
	CHECK(victim_is_whole(f->base.fd));
}

static void X10_a_bind_mount_of_the_same_file_system_is_seen(void **state)
{
	struct fixture *f = *state;
	NEED_MOUNTS(f);
	put_victim(f->base.fd);
	put_dir(f->base.fd, "bind");
	put_dir(f->base.fd, "tmpfs");
	put_file(f->base.fd, "file", "x");
	assert_int_equal(in_child(mounts_are_refused, f), 0);
}

static void swap_directory_for_link(struct fixture *f)
{
	(void)renameat2(f->base.fd, "link", f->base.fd, "d", RENAME_EXCHANGE);
}

static void make_something_in_d(struct fixture *f)
{
	AUTO_PIN struct pin d = PIN_NONE, e = PIN_NONE;
	int r = pin_make_child(&f->base, "d", 0700, NULL, &d, NULL);
	CHECK(r == 0 || r == -ELOOP || r == -ENOTDIR);
	if (r == 0)
		CHECK(pin_make_child(&d, "made", 0700, NULL, &e, NULL) == 0);
}

static void X09_a_swap_before_each_call_is_never_followed(void **state)
{
	struct fixture *f = *state;
	put_victim(f->base.fd);
	put_dir(f->base.fd, "d");
	assert_int_equal(symlinkat("victim", f->base.fd, "link"), 0);
	unsigned at = 1;
	int status;
	while ((status = with_meddling_at(at, make_something_in_d, swap_directory_for_link, f)) == 0) {
		assert_true(victim_is_whole(f->base.fd));
		struct stat st;
		/* Back to where it was. */
		if (fstatat(f->base.fd, "d", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
			swap_directory_for_link(f);
		(void)unlinkat(f->base.fd, "d/made", AT_REMOVEDIR);
		at++;
	}
	if (status == -2)
		SKIP_BECAUSE("nothing can be traced here");
	assert_int_equal(status, -1);
	assert_true(at > 5);
}

static void an_unreadable_directory_is_EACCES(void **state)
{
	struct fixture *f = *state;
	put_dir(f->base.fd, "d");
	put_dir(f->base.fd, "d/e");
	assert_int_equal(fchmodat(f->base.fd, "d", 0, 0), 0);
	struct pin pin = PIN_NONE;
	int direct = pin_child(&f->base, "d", &pin, NULL);
	pin_close(&pin);
	int beyond = pin_descend(&f->base, "d/e", &pin, NULL);
	pin_close(&pin);
	/* Search permission is enough on the way. */
	assert_int_equal(fchmodat(f->base.fd, "d", 0100, 0), 0);
	int searched = pin_descend(&f->base, "d/e", &pin, NULL);
	pin_close(&pin);
	bool root = geteuid() == 0;
	assert_int_equal(direct, root ? 0 : -EACCES);
	assert_int_equal(beyond, root ? 0 : -EACCES);
	assert_int_equal(searched, 0);
}

static void plain_user_meets_a_foreign_directory(struct fixture *f)
{
	struct pin pin = PIN_NONE;
	CHECK(become_plain_user());
	CHECK(pin_make_child(&f->base, "foreign", 0700, NULL, &pin, NULL) == -EPERM);
}

static void a_foreign_directory_is_not_taken(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(geteuid(), 0);
	put_dir(f->base.fd, "foreign");
	assert_int_equal(fchmod(f->base.fd, 0755), 0);
	assert_int_equal(in_child(plain_user_meets_a_foreign_directory, f), 0);
	assert_int_equal(mode_of(f->base.fd, "foreign"), 0755);
}

static int run(const char *title)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(a_child_is_pinned_with_its_identity),
	    FS_TEST(what_is_no_directory_is_refused_by_its_errno),
	    FS_TEST(odd_spellings_of_a_path_mean_the_same),
	    FS_TEST(a_name_is_one_component),
	    FS_TEST(too_long_names_are_refused),
	    FS_TEST(open_follows_links_once_and_only_there),
	    FS_TEST(adopting_takes_directories_only),
	    FS_TEST(modes_are_forced_whatever_the_umask),
	    FS_TEST(an_existing_child_is_taken_and_its_mode_forced),
	    FS_TEST(making_never_goes_through_a_link),
	    FS_TEST(a_path_that_exists_keeps_its_modes),
	    FS_TEST(opening_a_file_is_no_follow),
	    FS_TEST(X10_a_bind_mount_of_the_same_file_system_is_seen),
	    FS_TEST(X09_a_swap_before_each_call_is_never_followed),
	    FS_TEST(an_unreadable_directory_is_EACCES),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest as_root[] = {FS_TEST(a_foreign_directory_is_not_taken)};
	return asked_for(argc, argv, "as-root") ? cmocka_run_group_tests(as_root, NULL, NULL) : run_on_every_host(run);
}
