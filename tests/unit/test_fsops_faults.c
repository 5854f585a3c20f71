/* Every system call of each operation of fsops fails, with what its man page lists and with what old kernels, filters and odd file systems say: once,
 * and every call of that name. Whatever comes: a word for it, nothing of ours left open, old or new and nothing between, no stranger's file touched. */
#include "fs_fixture.h"

#include <dirent.h>

#include "fsops/bytes.h"
#include "fsops/contain_walk.h"
#include "fsops/descriptor.h"
#include "fsops/draft.h"
#include "fsops/file.h"
#include "fsops/folder.h"
#include "fsops/lock.h"
#include "fsops/regular.h"
#include "fsops/resolve.h"
#include "stepper.h"

#if STEPPER_CAN_FAIL

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define CODES 11 /* the last is 0 */
static const struct {
	long number;
	int codes[CODES];
} faults[] = {
	{SYS_openat, {EIO, EACCES, EMFILE, ENFILE, ENOENT, EEXIST, ELOOP, ENOTDIR, ENOMEM}},
	{SYS_openat2, {EIO, EACCES, EMFILE, ENFILE, ENOSYS, EPERM, EAGAIN, EINTR, ENOTDIR}},
	{SYS_mkdirat, {EIO, ENOSPC, EEXIST, EACCES}},
	{SYS_unlinkat, {EIO, EACCES, EPERM, EBUSY, ENOTEMPTY, EEXIST, EISDIR, ENOTDIR, EROFS}},
	{SYS_renameat, {EIO, ENOSPC, EXDEV}},
	{SYS_renameat2, {EIO, ENOSPC, EINVAL, ENOSYS, EEXIST}},
	{SYS_linkat, {EIO, EEXIST, EMLINK}},
	{SYS_fstat, {EIO, ESTALE}},
	{SYS_newfstatat, {EIO, ENOENT, EACCES}},
	{SYS_statx, {EIO, ENOSYS, ENOMEM}},
	{SYS_fstatfs, {EIO}},
	{SYS_getdents64, {EIO, ENOMEM, ENOENT}},
	{SYS_lseek, {EINVAL}},
	{SYS_readlink, {EIO, ENOENT}},
	{SYS_readlinkat, {EIO, EACCES}},
	{SYS_read, {EIO, EINTR}},
	{SYS_pread64, {EIO, EINTR}},
	{SYS_write, {EIO, EINTR, ENOSPC, EDQUOT}},
	{SYS_pwrite64, {EIO, EINTR, ENOSPC}},
	{SYS_copy_file_range, {EIO, EINTR, EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EPERM, ETXTBSY, EBADF}},
	{SYS_ftruncate, {EIO}},
	{SYS_fsync, {EIO, EINVAL, ENOSPC}},
	{SYS_chmod, {EIO, ENOENT, ENOTDIR, EROFS}},
	{SYS_fchmod, {EIO, EBADF}},
	{SYS_fchmodat2, {EIO, ENOSYS, EPERM, EINVAL}},
	{SYS_flock, {ENOLCK, EINTR, EWOULDBLOCK}},
	{SYS_fcntl, {EMFILE, EINTR, EINVAL, EOPNOTSUPP, ENOSYS, EBADF, EISDIR, EAGAIN, ENOLCK}},
	{SYS_getrandom, {ENOSYS, EINTR}},
	{SYS_pipe2, {EMFILE}},
	{SYS_clone, {EAGAIN}},
	{SYS_poll, {ENOMEM, EINTR}},
	{SYS_pidfd_open, {EMFILE, ENOSYS}},
};
static long eligible[COUNT(faults) + 1];

/* What the child says beside an errno. */
#define SILENT 200 /* it failed and said nothing, or something else than it returned */
#define LEAKED 201 /* a descriptor is still open */

struct trial {
	struct pin at;	   /* of a directory of its own, "w" */
	struct fixture *f;
	const struct operation *operation;
	int code;  /* that the call failed with */
	bool once; /* and only that call */
};
struct operation {
	const char *name;
	void (*make)(struct trial *t);
	int (*call)(struct trial *t, struct err *err);
	/* Judges what is there afterwards: result 0 means done. */
	bool (*judge)(struct trial *t, int result);
	enum { SPEECHLESS = 1, PATIENT = 2 } traits; /* has no struct err; waits 10 s for somebody who fills what it empties */
};

static int lowest_free(void)
{
	int fd = dup(STDERR_FILENO);
	(void)close(fd);
	return fd;
}

static int call_and_look(void *context)
{
	struct trial *t = context;
	struct err err = {0};
	int before = lowest_free();
	int r = t->operation->call(t, &err);
	if (r < 0 && !(t->operation->traits & SPEECHLESS) && (err.code != r || !err.text[0]))
		return -SILENT;
	return lowest_free() == before ? r : -LEAKED;
}

static void begin(struct trial *t)
{
	put_dir(t->f->base.fd, "w");
	assert_int_equal(pin_child(&t->f->base, "w", &t->at, NULL), 0);
	if (t->operation->make)
		t->operation->make(t);
}

static void end(struct trial *t)
{
	pin_close(&t->at);
	assert_int_equal(tree_remove(&t->f->base, "w", DEADLINE_NEVER, NULL, NULL), 0);
}

static struct stepped_end run_trial(struct trial *t, const struct stepped *plan)
{
	begin(t);
	struct stepped stepped = *plan;
	stepped.call = call_and_look;
	stepped.context = t;
	t->code = plan->fail_with;
	t->once = !plan->fail_on;
	struct stepped_end found = step_run(&stepped);
	const char *wrong = found.result == -SILENT   ? "it failed and did not say so"
			    : found.result == -LEAKED ? "a descriptor is left open"
			    : found.result == -ECHILD ? "it died"
			    : !victim_is_whole(t->f->base.fd)                                    ? "a stranger's file was touched"
			    : t->operation->judge && !t->operation->judge(t, found.result) ? "what is there is neither old nor new"
											   : NULL;
	if (wrong)
		fail_msg("%s, %s: call %d (number %ld) %s %s: result %d, %s", t->operation->name, pin_use_openat2 ? "openat2" : "walk", plan->at, found.number,
			 plan->fail_on ? "and all like it failed with" : "failed with", strerrorname_np(plan->fail_with), found.result, wrong);
	end(t);
	return found;
}

static const int *codes_of(long number)
{
	for (size_t i = 0; i < COUNT(faults); i++)
		if (faults[i].number == number)
			return faults[i].codes;
	return NULL;
}

#define CALLS_IN_DETAIL 60 /* of a walk through a tree the later ones are like the earlier ones */

/* Returns how many calls were made to fail. */
static int each_call_once(struct trial *t, bool *ret_seen)
{
	int injected = 0;
	for (int n = 0;; n++) {
		struct stepped plan = {.at = n, .fail_with = EIO, .eligible = eligible};
		struct stepped_end found = run_trial(t, &plan);
		if (!found.acted)
			return found.result == 0 ? injected : -1;
		injected++;
		for (size_t i = 0; i < COUNT(faults); i++)
			ret_seen[i] |= faults[i].number == found.number;
		const int *codes = codes_of(found.number);
		for (int i = 1; n < CALLS_IN_DETAIL && i < CODES && codes[i]; i++) {
			plan.fail_with = codes[i];
			if (codes[i] == EINTR || codes[i] == ENOENT || i == 1 + n % 3) /* of the others each has its turn */
				injected += run_trial(t, &plan).acted;
		}
	}
}

static int every_call_like_it(struct trial *t, const bool *seen)
{
	int injected = 0;
	for (size_t i = 0; i < COUNT(faults); i++) {
		const long only[] = {faults[i].number, -1};
		for (const int *code = faults[i].codes; seen[i] && *code; code++) {
			struct stepped plan = {.fail_with = *code, .fail_on = true, .eligible = only};
			bool waited_for = (*code == ENOTEMPTY || *code == EEXIST) && t->operation->traits & PATIENT;
			if (*code != EINTR && !waited_for) /* no call is interrupted for ever */
				injected += run_trial(t, &plan).acted;
		}
	}
	return injected;
}

static void fails_everywhere(struct fixture *f, const struct operation *operations, size_t count)
{
	put_victim(f->base.fd);
	for (size_t i = 0; i < count; i++) {
		struct trial t = {.f = f, .at = PIN_NONE, .operation = &operations[i]};
		bool seen[COUNT(faults)] = {false};
		int once = each_call_once(&t, seen), all = every_call_like_it(&t, seen);
		print_message("%s: %d calls failed once, %d kinds of failure for ever\n", operations[i].name, once, all);
		if (once <= 0 || all <= 0)
			fail_msg("%s: %d calls failed once, %d kinds of call for ever", operations[i].name, once, all);
	}
}

/* --- files --- */

static void make_old(struct trial *t)
{
	put_file(t->at.fd, "name", "old");
	assert_int_equal(symlinkat("../victim/precious", t->at.fd, "link"), 0);
}

static int read_file(struct trial *t, struct err *err)
{
	AUTO_FREE char *bytes = NULL;
	size_t len = 0;
	int r = file_read(&t->at, "name", 4096, &bytes, &len, err);
	return r == 0 && (len != 3 || memcmp(bytes, "old", 3) != 0) ? -EBADE : r;
}

static int read_path(struct trial *t, struct err *err)
{
	char path[PATH_MAX + 8];
	AUTO_FREE char *bytes = NULL;
	size_t len = 0;
	snprintf(path, sizeof path, "%s/w/name", t->f->path);
	int r = file_read_path(path, 4096, &bytes, &len, err);
	return r == 0 && (len != 3 || memcmp(bytes, "old", 3) != 0) ? -EBADE : r;
}

static bool still_old(struct trial *t, int result)
{
	return result != -EBADE && holds(t->at.fd, "name", "old");
}

static int create_file(struct trial *t, struct err *err)
{
	return file_create(&t->at, "fresh", "new", 3, 0640, err);
}

static size_t names_there(const struct trial *t)
{
	AUTO_CLOSE int fd = openat(t->at.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(take_fd(&fd));
	size_t count = 0;
	while (dir && readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 2;
}

/* A single fault leaves nothing half made: the calls that take it back succeed. */
static bool made_or_not_there(struct trial *t, int result)
{
	if (result == 0)
		return holds(t->at.fd, "fresh", "new") && mode_of(t->at.fd, "fresh") == 0640;
	return t->once ? names_there(t) == 0 : !exists(t->at.fd, "fresh") || holds(t->at.fd, "fresh", "");
}

static int replace_file(struct trial *t, struct err *err)
{
	return file_replace(&t->at, "name", "new", 3, 0600, err);
}

static bool old_or_new(struct trial *t, int result)
{
	if (t->once && names_there(t) != 2)
		return false;
	return holds(t->at.fd, "name", "new") || (result < 0 && holds(t->at.fd, "name", "old"));
}

static int remove_file(struct trial *t, struct err *err)
{
	bool removed;
	int r = file_remove(&t->at, "link", &removed, err);
	return r < 0 ? r : file_remove(&t->at, "name", &removed, err);
}

static bool removed_or_old(struct trial *t, int result)
{
	return result == 0 ? !exists(t->at.fd, "name") && !exists(t->at.fd, "link") : holds(t->at.fd, "name", "old");
}

static void make_left_over(struct trial *t)
{
	make_old(t);
	put_file(t->at.fd, ".tmp-0123456789abcdef@name", "half");
	put_file(t->at.fd, ".tmp-0123456789abcdef@other", "half");
}

static int sweep_files(struct trial *t, struct err *err)
{
	static const char *const names[] = {"else", "name"};
	return file_sweep(&t->at, names, COUNT(names), err);
}

static bool swept_what_was_named(struct trial *t, int result)
{
	return holds(t->at.fd, "name", "old") && exists(t->at.fd, ".tmp-0123456789abcdef@other") &&
	       (result < 0 || t->code == ENOENT || !exists(t->at.fd, ".tmp-0123456789abcdef@name"));
}

static void make_folder(struct trial *t)
{
	put_dir(t->at.fd, "folder");
	put_file(t->at.fd, "folder/ours", "x");
}

static int forget_folder(struct trial *t, struct err *err)
{
	static const char *const files[] = {"ours", "another"};
	return folder_forget(&t->at, "folder", files, COUNT(files), NULL, err);
}

/* An errno that says what the entry is, and not that it could not be looked at, is believed of what is not there and of what is not empty. */
static bool forgotten_if_it_says_so(struct trial *t, int result)
{
	bool believed = t->code == ENOENT || t->code == ENOTEMPTY || t->code == EEXIST;
	return result < 0 || !exists(t->at.fd, "folder") || believed;
}

static int open_regular(struct trial *t, struct err *err)
{
	AUTO_CLOSE int fd = regular_open(&t->at, "name", O_RDWR, NULL, err);
	return fd < 0 ? fd : 0;
}

static int open_to_write_anew(struct trial *t, struct err *err)
{
	AUTO_CLOSE int fd = pin_open_file(&t->at, "name", O_WRONLY | O_TRUNC, 0, err);
	return fd < 0 ? fd : 0;
}

static bool old_or_empty(struct trial *t, int result)
{
	return holds(t->at.fd, "name", "") || (result < 0 && holds(t->at.fd, "name", "old"));
}

/* Whatever refuses the unlink refuses the look, too. */
static void nothing_is_removed_where_nothing_may_be(void **state)
{
	static const struct operation operation = {"file_remove", make_old, remove_file, removed_or_old, 0};
	static const long only[] = {SYS_unlinkat, SYS_newfstatat, -1};
	struct trial t = {.f = *state, .at = PIN_NONE, .operation = &operation};
	struct stepped plan = {.fail_with = EPERM, .fail_on = true, .eligible = only};
	put_victim(t.f->base.fd);
	assert_int_equal(run_trial(&t, &plan).result, -EPERM);
}

static void X32_files(void **state)
{
	static const struct operation operations[] = {
		{"file_read", make_old, read_file, still_old, 0},
		{"file_read_path", make_old, read_path, still_old, 0},
		{"file_create", NULL, create_file, made_or_not_there, 0},
		{"file_replace", make_old, replace_file, old_or_new, 0},
		{"file_remove", make_old, remove_file, removed_or_old, 0},
		{"folder_forget", make_folder, forget_folder, forgotten_if_it_says_so, 0},
		{"file_sweep", make_left_over, sweep_files, swept_what_was_named, 0},
		{"regular_open", make_old, open_regular, still_old, 0},
		{"pin_open_file, O_TRUNC", make_old, open_to_write_anew, old_or_empty, 0},
	};
	fails_everywhere(*state, operations, COUNT(operations));
}

/* --- bytes --- */

#define LONG_FILE (300u << 10) /* more than one buffer of bytes_copy */
static char content[LONG_FILE];

static void make_long(struct trial *t)
{
	for (size_t i = 0; i < sizeof content; i++)
		content[i] = (char)(i * 7 + (i >> 9));
	AUTO_CLOSE int fd = openat(t->at.fd, "from", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write_all(fd, content, sizeof content), 0);
}

static bool is_whole(int at, const char *name)
{
	AUTO_FREE char *got = malloc(sizeof content + 1);
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, got, sizeof content + 1) == (ssize_t)sizeof content && memcmp(got, content, sizeof content) == 0;
}

static int copy_bytes(struct trial *t, struct err *err)
{
	AUTO_CLOSE int from = regular_open(&t->at, "from", O_RDONLY, NULL, err);
	if (from < 0)
		return from;
	AUTO_CLOSE int to = regular_create(&t->at, "copy", 0600, err);
	return to < 0 ? to : bytes_copy(from, to, sizeof content, DEADLINE_NEVER, err);
}

static bool copied_whole(struct trial *t, int result)
{
	return result < 0 || is_whole(t->at.fd, "copy");
}

static int copy_one(struct trial *t, struct err *err)
{
	return tree_copy_file(&t->at, "from", &t->at, "copy", err);
}

static bool copied_or_not_there(struct trial *t, int result)
{
	if (result == 0)
		return is_whole(t->at.fd, "copy") && mode_of(t->at.fd, "copy") == 0600;
	return is_whole(t->at.fd, "from") && (!t->once || !exists(t->at.fd, "copy"));
}

static void X32_bytes(void **state)
{
	static const struct operation operations[] = {
		{"bytes_copy", make_long, copy_bytes, copied_whole, 0},
		{"tree_copy_file", make_long, copy_one, copied_or_not_there, 0},
	};
	fails_everywhere(*state, operations, COUNT(operations));
}

/* A file system that shares blocks, as far as a caller can tell: ioctl(FICLONE) succeeds and the bytes are there. */
static size_t shared_len;
static void share_blocks(void *context, int n)
{
	struct trial *t = context;
	AUTO_CLOSE int to = openat(t->at.fd, "copy", O_WRONLY | O_CLOEXEC);
	(void)n;
	assert_int_equal(write_all(to, content, shared_len), 0);
}

static void blocks_are_shared_where_that_can_be_had(void **state)
{
	static const struct operation operations[] = {
		{"bytes_copy", make_long, copy_bytes, copied_whole, 0},
		{"tree_copy_file", make_long, copy_one, copied_or_not_there, 0},
	};
	static const long ioctl_only[] = {SYS_ioctl, -1};
	put_victim(((struct fixture *)*state)->base.fd);
	for (size_t i = 0; i < COUNT(operations); i++) {
		struct trial t = {.f = *state, .at = PIN_NONE, .operation = &operations[i]};
		struct stepped plan = {.stand_in = true, .before = share_blocks, .eligible = ioctl_only};
		shared_len = sizeof content;
		struct stepped_end found = run_trial(&t, &plan);
		assert_true(found.acted);
		assert_int_equal(found.result, 0);
	}
	/* It became shorter meanwhile: what was shared is no copy of what was asked for, and is copied anew. */
	struct trial t = {.f = *state, .at = PIN_NONE, .operation = &operations[0]};
	struct stepped plan = {.stand_in = true, .before = share_blocks, .eligible = ioctl_only};
	shared_len = sizeof content - 1;
	assert_int_equal(run_trial(&t, &plan).result, 0);
}

/* --- directories --- */

static int open_path(struct trial *t, struct err *err)
{
	AUTO_PIN struct pin pin = PIN_NONE;
	char path[PATH_MAX + 8];
	snprintf(path, sizeof path, "%s/w", t->f->path);
	int r = pin_open(path, &pin, err);
	return r == 0 && !pin_same(&pin, &t->at) ? -EBADE : r;
}

static void make_levels(struct trial *t)
{
	put_dir(t->at.fd, "a");
	put_dir(t->at.fd, "a/b");
	put_dir(t->at.fd, "a/b/c");
	put_dir(t->at.fd, "mine");
	assert_int_equal(fchmodat(t->at.fd, "mine", 0, 0), 0);
}

static int descend(struct trial *t, struct err *err)
{
	AUTO_PIN struct pin pin = PIN_NONE;
	return pin_descend(&t->at, "a/./b//c/", &pin, err);
}

static int make_path(struct trial *t, struct err *err)
{
	AUTO_PIN struct pin pin = PIN_NONE;
	char path[PATH_MAX + 16];
	snprintf(path, sizeof path, "%s/w/x/y", t->f->path);
	mode_t before = umask(0777);
	int r = pin_make_path(path, 0700, &pin, err);
	(void)umask(before);
	return r;
}

static bool made_private(struct trial *t, int result)
{
	return result < 0 || (mode_of(t->at.fd, "x") == 0700 && mode_of(t->at.fd, "x/y") == 0700);
}

static int make_child(struct trial *t, struct err *err)
{
	AUTO_PIN struct pin fresh = PIN_NONE, old = PIN_NONE;
	mode_t before = umask(0777);
	int r = pin_make_child(&t->at, "fresh", 0700, NULL, &fresh, err);
	(void)umask(before);
	return r < 0 ? r : pin_make_child(&t->at, "mine", 0700, NULL, &old, err);
}

static bool children_are_private(struct trial *t, int result)
{
	if (result == 0)
		return mode_of(t->at.fd, "fresh") == 0700 && mode_of(t->at.fd, "mine") == 0700;
	return !exists(t->at.fd, "fresh") || mode_of(t->at.fd, "fresh") == 0700 || !t->once;
}

static int force_mode(struct trial *t, struct err *err)
{
	AUTO_CLOSE int fd = openat(t->at.fd, "mine", O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)err;
	return fd < 0 ? -errno : descriptor_force_mode(fd, 0700);
}

static int force_mode_of_an_open_one(struct trial *t, struct err *err)
{
	AUTO_CLOSE int fd = openat(t->at.fd, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)err;
	return fd < 0 ? -errno : descriptor_force_mode(fd, 0711);
}

static bool open_mode_is_forced(struct trial *t, int result)
{
	return result < 0 || mode_of(t->at.fd, "a") == 0711;
}

static bool mode_is_forced(struct trial *t, int result)
{
	return result < 0 || mode_of(t->at.fd, "mine") == 0700;
}

/* Without /proc and without fchmodat2 there is only fchmod, and it may fail as well. */
static void no_way_to_force_a_mode_is_an_error(void **state)
{
	static const struct operation operation = {"descriptor_force_mode", make_levels, force_mode_of_an_open_one, open_mode_is_forced, SPEECHLESS};
	static const long only[] = {SYS_chmod, SYS_fchmod, -1};
	struct trial t = {.f = *state, .at = PIN_NONE, .operation = &operation};
	struct stepped plan = {.fail_with = ENOENT, .fail_on = true, .eligible = only};
	put_victim(t.f->base.fd);
	assert_int_equal(run_trial(&t, &plan).result, -ENOENT);
}

static void X32_directories(void **state)
{
	static const struct operation operations[] = {
		{"pin_open", NULL, open_path, NULL, 0},
		{"pin_descend", make_levels, descend, NULL, 0},
		{"pin_make_path", NULL, make_path, made_private, 0},
		{"pin_make_child", make_levels, make_child, children_are_private, 0},
		{"descriptor_force_mode", make_levels, force_mode, mode_is_forced, SPEECHLESS},
		{"descriptor_force_mode of an open one", make_levels, force_mode_of_an_open_one, open_mode_is_forced, SPEECHLESS},
	};
	fails_everywhere(*state, operations, COUNT(operations));
}

/* --- drafts and locks --- */

static int draft_and_publish(struct trial *t, struct err *err)
{
	struct draft draft = DRAFT_NONE;
	int r = draft_make(&t->at, &draft, err);
	if (r == 0)
		r = file_create(&draft.dir, "name", "new", 3, 0600, err);
	if (r == 0)
		r = publish_new(&draft.dir, "name", &t->at, "fresh", err);
	draft_remove(&draft);
	return r;
}

static bool published_whole(struct trial *t, int result)
{
	if (t->once && names_there(t) != (size_t)exists(t->at.fd, "fresh"))
		return false;
	return holds(t->at.fd, "fresh", "new") || (result < 0 && !exists(t->at.fd, "fresh"));
}

static void make_drafts(struct trial *t)
{
	put_dir(t->at.fd, ".draft-0123456789abcdef");
	put_file(t->at.fd, ".draft-0123456789abcdef/half", "half");
	put_dir(t->at.fd, ".draft-mine");
	put_dir(t->at.fd, ".draft-0123456789abcdef0");
	put_dir(t->at.fd, ".draft-0123456789abcdef-");
}

static int sweep_drafts(struct trial *t, struct err *err)
{
	(void)err;
	draft_sweep(&t->at);
	return 0;
}

static bool others_are_there(struct trial *t, int result)
{
	(void)result;
	return exists(t->at.fd, ".draft-mine") && exists(t->at.fd, ".draft-0123456789abcdef0") && exists(t->at.fd, ".draft-0123456789abcdef-");
}

static int take_lock(struct trial *t, struct err *err)
{
	AUTO_LOCK struct lock lock = LOCK_NONE;
	return lock_take(&t->at, "lock", LOCK_MODE_EXCLUSIVE, deadline_in_ms(0), &lock, err);
}

static int take_shared_and_keep(struct trial *t, struct err *err)
{
	AUTO_LOCK struct lock lock = LOCK_NONE;
	int r = lock_take(&t->at, "lock", LOCK_MODE_SHARED, deadline_in_ms(0), &lock, err);
	return r < 0 ? r : lock_keep_over_exec(&lock, err);
}

static int ask_lock(struct trial *t, struct err *err)
{
	bool held = false, missing = false;
	int r = lock_is_held(&t->at, "missing", &missing, err);
	if (r == 0)
		r = lock_is_held(&t->at, "name", &held, err);
	return r == 0 && missing ? -EBADE : r;
}

static bool lock_is_free_again(struct trial *t, int result)
{
	bool held = true;
	return result != -EBADE && lock_is_held(&t->at, "lock", &held, NULL) == 0 && !held;
}

static void X32_drafts_and_locks(void **state)
{
	static const struct operation operations[] = {
		{"draft_make", NULL, draft_and_publish, published_whole, PATIENT},
		{"draft_sweep", make_drafts, sweep_drafts, others_are_there, SPEECHLESS | PATIENT},
		{"lock_take", NULL, take_lock, lock_is_free_again, 0},
		{"lock_keep_over_exec", NULL, take_shared_and_keep, lock_is_free_again, 0},
		{"lock_is_held", make_old, ask_lock, lock_is_free_again, 0},
	};
	fails_everywhere(*state, operations, COUNT(operations));
}

/* --- trees --- */

/* Deeper than what is kept open of it, so that the way back has to be found. */
#define LEVELS 10
static void make_tree(struct trial *t)
{
	AUTO_CLOSE int at = fcntl(t->at.fd, F_DUPFD_CLOEXEC, 0);
	put_dir(at, "to");
	put_dir(at, "tree");
	for (int i = 0; i < LEVELS; i++) {
		int next = openat(at, i ? "sub" : "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close_quietly(at);
		at = next;
		put_file(at, "file", "old");
		if (i < LEVELS - 1)
			put_dir(at, "sub");
	}
}

static int remove_tree(struct trial *t, struct err *err)
{
	return tree_remove(&t->at, "tree", deadline_in_ms(2), NULL, err);
}

/* ENOENT: somebody else has removed it, says the system. */
static bool gone_if_it_says_so(struct trial *t, int result)
{
	return result < 0 || t->code == ENOENT || !exists(t->at.fd, "tree");
}

static int copy_tree(struct trial *t, struct err *err)
{
	AUTO_PIN struct pin from = PIN_NONE, to = PIN_NONE;
	int r = pin_child(&t->at, "tree", &from, err);
	if (r == 0)
		r = pin_child(&t->at, "to", &to, err);
	return r < 0 ? r : tree_copy(&from, &to, "sub2", err);
}

static bool copied_all(struct trial *t, int result)
{
	return result < 0 || t->code == ENOENT || holds(t->at.fd, "to/sub/sub/sub/sub/sub/sub/sub/sub/sub/file", "old");
}

static int last_change(struct trial *t, struct err *err)
{
	int64_t ns = 0;
	int r = tree_last_change(&t->at, "tree", 1000, &ns, err);
	if (r < 0)
		return r;
	return ns ? 0 : err_set(err, -EBADE, "look", "tree", "no time was told");
}

static bool tree_is_there(struct trial *t, int result)
{
	return (result != -EBADE || t->code == ENOENT) && holds(t->at.fd, "tree/sub/sub/sub/sub/sub/sub/sub/sub/sub/file", "old");
}

static void X32_trees(void **state)
{
	static const struct operation operations[] = {
		{"tree_remove", make_tree, remove_tree, gone_if_it_says_so, 0},
		{"tree_copy", make_tree, copy_tree, copied_all, 0},
		{"tree_last_change", make_tree, last_change, tree_is_there, 0},
	};
	fails_everywhere(*state, operations, COUNT(operations));
}

static void make_shut(struct trial *t)
{
	put_dir(t->at.fd, "tree");
	put_dir(t->at.fd, "tree/shut");
	put_file(t->at.fd, "tree/shut/file", "old");
	assert_int_equal(fchmodat(t->at.fd, "tree/shut", 0, 0), 0);
}

static void X32_a_directory_without_permission_bits(void **state)
{
	static const struct operation operations[] = {{"tree_remove of a shut one", make_shut, remove_tree, gone_if_it_says_so, 0}};
	fails_everywhere(*state, operations, COUNT(operations));
}

/* A directory on the way is moved out while what is below it is removed: whatever goes was in the tree, and the way back is found or given up. */
static void move_away(void *context, int n)
{
	struct trial *t = context;
	(void)n;
	(void)renameat(t->at.fd, "tree/sub/sub", t->at.fd, "away");
}

static void X09_a_directory_is_moved_away_before_every_call(void **state)
{
	static const struct operation operation = {"tree_remove", make_tree, remove_tree, NULL, 0};
	struct trial t = {.f = *state, .at = PIN_NONE, .operation = &operation};
	put_victim(t.f->base.fd);
	struct stepped_end found = {.acted = true};
	int n = 0;
	for (; found.acted; n++) {
		struct stepped plan = {.at = n, .before = move_away, .eligible = eligible};
		found = run_trial(&t, &plan);
		assert_true(found.result == 0 || found.result == -ENOTEMPTY);
	}
	assert_true(n > LEVELS);
}

/* Nothing could be removed, but then it was somebody else's to keep: it is not said to be left here. */
static void move_all_of_it(void *context, int n)
{
	struct trial *t = context;
	(void)n;
	(void)renameat(t->at.fd, "tree", t->at.fd, "kept");
}

static bool kept_whole(struct trial *t, int result)
{
	return result == 0 && !exists(t->at.fd, "tree") && holds(t->at.fd, "kept/sub/sub/file", "old");
}

static void what_was_moved_away_is_not_left(void **state)
{
	static const struct operation operation = {"tree_remove", make_tree, remove_tree, kept_whole, 0};
	static const long only[] = {SYS_unlinkat, -1};
	struct trial t = {.f = *state, .at = PIN_NONE, .operation = &operation};
	struct stepped plan = {.at = -1, .fail_with = EBUSY, .before = move_all_of_it, .eligible = only};
	put_victim(t.f->base.fd);
	(void)run_trial(&t, &plan);
}

/* --- containment --- */

static void make_maze(struct trial *t)
{
	put_dir(t->at.fd, "sealed");
	put_dir(t->at.fd, "sealed/deep");
	put_dir(t->at.fd, "way");
	assert_int_equal(symlinkat("../sealed/./deep", t->at.fd, "way/in"), 0);
	assert_int_equal(symlinkat("/proc/self/cwd", t->at.fd, "way/magic"), 0);
}

/* Whether it is sealed must be told, or that it could not be: never that the way is clear. */
static int check_way(struct trial *t, struct err *err)
{
	char path[PATH_MAX + 64], sealed[PATH_MAX + 16];
	snprintf(path, sizeof path, "%s/w/way/../way/in/../deep/not/there/../file", t->f->path);
	snprintf(sealed, sizeof sealed, "%s/w/sealed", t->f->path);
	struct contain_seal seal = {.path = sealed};
	struct contain_answer answer = contain_check(path, &seal, deadline_in_ms(5000));
	(void)err;
	return answer.cause == CONTAIN_SEALED ? 0 : answer.cause == CONTAIN_CHECK_FAILED && answer.detail[0] ? -EAGAIN : -EBADE;
}

static bool never_clear(struct trial *t, int result)
{
	(void)t;
	return result != -EBADE;
}

/* In this process, so that its calls can be made to fail. */
static int walk_way(struct trial *t, const char *way, const char *end_of_it)
{
	char path[PATH_MAX + 64];
	AUTO_FREE struct contain_place *place = malloc(sizeof *place);
	snprintf(path, sizeof path, "%s/w/%s", t->f->path, way);
	contain_walk(path, place);
	if (place->cause != CONTAIN_CLEAR)
		return place->cause == CONTAIN_CHECK_FAILED && place->detail[0] ? -EAGAIN : -EBADE;
	size_t len = strlen(end_of_it);
	return place->len > len && strcmp(place->text + place->len - len, end_of_it) == 0 ? 0 : -EBADE;
}

static int walk_links(struct trial *t, struct err *err)
{
	(void)err;
	return walk_way(t, "./way/../way/in/../deep/not/there/../file", "/sealed/deep/not/file");
}

static int walk_magic(struct trial *t, struct err *err)
{
	(void)err;
	return fchdir(t->at.fd) < 0 ? -errno : walk_way(t, "way/magic/sealed", "/w/sealed");
}

/* That something was not there is no fault of the walk: then the rest of the way is missing, and its text stands. */
static bool never_elsewhere(struct trial *t, int result)
{
	(void)t, (void)result;
	return true;
}

static void X32_containment(void **state)
{
	static const struct operation operations[] = {
		{"contain_check", make_maze, check_way, never_clear, SPEECHLESS},
		{"contain_walk", make_maze, walk_links, never_elsewhere, SPEECHLESS},
		{"contain_walk of /proc", make_maze, walk_magic, never_elsewhere, SPEECHLESS},
	};
	fails_everywhere(*state, operations, COUNT(operations));
}

/* --- a control: what a fault in the test's own subject would look like --- */

static int leaks_when_refused(struct trial *t, struct err *err)
{
	int fd = openat(t->at.fd, "name", O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return err_code(err, -errno, "open", "name");
	if (fstat(fd, &st) < 0)
		return err_code(err, -errno, "look", "name");
	return close(fd);
}

static int says_nothing(struct trial *t, struct err *err)
{
	(void)err;
	return faccessat(t->at.fd, "name", F_OK, 0) < 0 || openat(t->at.fd, "name", O_RDONLY | O_CLOEXEC) < 0 ? -errno : 0;
}

static void a_planted_fault_is_found(void **state)
{
	static const struct operation leaky = {"leaks", make_old, leaks_when_refused, NULL, 0}, silent = {"silent", make_old, says_nothing, NULL, 0};
	static const long fstat_only[] = {SYS_fstat, SYS_newfstatat, -1}, openat_only[] = {SYS_openat, -1};
	struct trial t = {.f = *state, .at = PIN_NONE, .operation = &leaky};
	struct stepped plan = {.call = call_and_look, .context = &t, .fail_with = EIO, .eligible = fstat_only};
	begin(&t);
	struct stepped_end found = step_run(&plan);
	assert_true(found.acted);
	assert_int_equal(found.result, -LEAKED);
	t.operation = &silent;
	plan.eligible = openat_only;
	found = step_run(&plan);
	assert_true(found.acted);
	assert_int_equal(found.result, -SILENT);
	end(&t);
}

static int run(const char *title)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(a_planted_fault_is_found),
	    FS_TEST(X32_files),
	    FS_TEST(X32_bytes),
	    FS_TEST(blocks_are_shared_where_that_can_be_had),
	    FS_TEST(X32_directories),
	    FS_TEST(X32_drafts_and_locks),
	    FS_TEST(X32_trees),
	    FS_TEST(X32_a_directory_without_permission_bits),
	    FS_TEST(X09_a_directory_is_moved_away_before_every_call),
	    FS_TEST(what_was_moved_away_is_not_left),
	    FS_TEST(nothing_is_removed_where_nothing_may_be),
	    FS_TEST(X32_containment),
	};
	return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

/* One that knows none of the calls for which there is another way. What needs neither is not done twice. */
static int run_on_an_old_kernel(void)
{
	const struct CMUnitTest tests[] = {
	    FS_TEST(X32_files), FS_TEST(X32_bytes), FS_TEST(X32_directories), FS_TEST(X32_drafts_and_locks), FS_TEST(X32_a_directory_without_permission_bits),
	    FS_TEST(no_way_to_force_a_mode_is_an_error),
	};
	pin_use_openat2 = false;
	if (!deny_calls(SYS_copy_file_range, SYS_renameat2, ENOSYS) || !deny_calls(SYS_fchmodat2, SYS_statx, ENOSYS) || !deny_calls(SYS_close_range, -1, ENOSYS))
		return 1;
	return cmocka_run_group_tests_name("an old kernel", tests, NULL, NULL);
}

int main(void)
{
	for (size_t i = 0; i < COUNT(faults); i++)
		eligible[i] = faults[i].number;
	eligible[COUNT(faults)] = -1;
	int failed = run("openat2");
	return run_on_an_old_kernel() | failed;
}

#else

int main(void)
{
	const char *must = getenv("MUST_WORK");
	(void)fprintf(stderr, "skipped: failures are injected on x86-64 only\n");
	return must && strcmp(must, "1") == 0 ? 1 : 77;
}

#endif
