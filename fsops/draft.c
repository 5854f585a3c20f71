#include "fsops/draft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/deadline.h"
#include "fsops/listing.h"
#include "fsops/tree.h"

#define PREFIX ".draft-"
#define DIGITS 16
#define NAME_TRIES 8
#define REMOVE_MS 10000
#define REMOVE_TRIES 3

int draft_make(const struct pin *at, struct draft *ret_draft, struct err *err)
{
	struct draft draft = {.at = at, .dir = PIN_NONE};
	for (int i = 0; i < NAME_TRIES; i++) {
		uint64_t random;
		bool made = false;
		if (getentropy(&random, sizeof random) < 0)
			return err_code(err, -errno, "draft", "getentropy");
		(void)snprintf(draft.name, sizeof draft.name, PREFIX "%016" PRIx64, random);
		int r = pin_make_child(at, draft.name, 0700, &made, &draft.dir, err);
		if (r < 0) {
			(void)unlinkat(at->fd, draft.name, AT_REMOVEDIR); /* made and then not opened: nobody else has this name */
			return r;
		}
		if (made) {
			*ret_draft = draft;
			return 0;
		}
		pin_close(&draft.dir); /* somebody else's: not ours to fill or to remove */
	}
	return err_set(err, -EEXIST, "draft", draft.name, "no unused name was found");
}

void draft_remove(struct draft *draft)
{
	if (draft->dir.fd < 0)
		return;
	struct deadline until = deadline_in_ms(REMOVE_MS);
	pin_close(&draft->dir);
	for (int i = 0; i < REMOVE_TRIES && tree_remove(draft->at, draft->name, until, NULL, NULL) < 0; i++)
		; /* a passing error leaves nothing behind */
}

static bool is_draft_name(const char *name)
{
	const char *digits = name + sizeof PREFIX - 1;
	return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 && strspn(digits, "0123456789abcdef") == DIGITS && digits[DIGITS] == '\0';
}

void draft_sweep(const struct pin *at)
{
	int fd = openat(at->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		close_quietly(fd);
		return;
	}
	struct deadline until = deadline_in_ms(REMOVE_MS);
	for (const struct dirent *entry; listing_next(stream, &entry) > 0 && !deadline_passed(until);)
		if (is_draft_name(entry->d_name))
			(void)tree_remove(at, entry->d_name, until, NULL, NULL);
	(void)closedir(stream);
}

/* Two steps, but the name still appears at once and never replaces another. */
static int link_and_unlink(const struct pin *from, const char *name, const struct pin *to, const char *to_name)
{
	if (linkat(from->fd, name, to->fd, to_name, 0) < 0)
		return -errno;
	return unlinkat(from->fd, name, 0) < 0 ? -errno : 0;
}

/* rename(2) lets a directory replace an empty one only, and nothing else: one that somebody makes between the two calls holds nothing yet. To take the
 * name first with one of ours would leave that one, which nobody knows, to whoever is killed in between. */
static int move_to_unused(const struct pin *from, const char *name, const struct pin *to, const char *to_name)
{
	struct stat st;
	if (fstatat(to->fd, to_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	if (errno != ENOENT)
		return -errno;
	if (renameat(from->fd, name, to->fd, to_name) == 0)
		return 0;
	return errno == ENOTEMPTY || errno == ENOTDIR ? -EEXIST : -errno;
}

static int rename_in_two_steps(const struct pin *from, const char *name, const struct pin *to, const char *to_name)
{
	struct stat st;
	if (fstatat(from->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? move_to_unused(from, name, to, to_name) : link_and_unlink(from, name, to, to_name);
}

static int rename_new(const struct pin *from, const char *name, const struct pin *to, const char *to_name)
{
#ifdef RENAME_NOREPLACE
	if (renameat2(from->fd, name, to->fd, to_name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
#endif
	return rename_in_two_steps(from, name, to, to_name);
}

int publish_new(const struct pin *from, const char *name, const struct pin *to, const char *to_name, struct err *err)
{
	if (!pin_single_name(name) || !pin_single_name(to_name))
		return err_set(err, -EINVAL, "publish", to_name, "not a single name");
	int r = rename_new(from, name, to, to_name);
	return r < 0 ? err_code(err, r, "publish", to_name) : 0;
}
