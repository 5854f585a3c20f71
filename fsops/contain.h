/* Does a path lie in a sealed directory? Answered from the text first, then from a walk that follows links one by one, and by identity
 * (st_dev, st_ino) of every ancestor that exists (path_resolution(7)). Never opens what it looks at (O_PATH), never triggers an automount,
 * never waits longer than its deadline: the walk runs in a child that holds no other descriptor, so a hung file system keeps nothing of ours. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/deadline.h"
#include "fsops/pin.h"

#define CONTAIN_PATH_MAX 4096 /* with the NUL */
#define CONTAIN_LINKS_MAX 40

enum contain_cause {
	CONTAIN_CLEAR,
	CONTAIN_REMOTE_OR_DEVICE,
	CONTAIN_RELATIVE,
	CONTAIN_EMPTY,
	CONTAIN_TOO_LONG,
	CONTAIN_NOT_UTF8,
	CONTAIN_SEALED,
	CONTAIN_LOOP,
	CONTAIN_CHECK_FAILED, /* the question stays open; the detail says why */
	CONTAIN_CAUSES,
};
const char *contain_cause_name(enum contain_cause cause); /* "clear", "remote-or-device", … */

/* Pure, fsops/contain_text.c. */
bool contain_text_remote(const char *bytes, size_t len); /* two leading separators, '/' or '\' in any mix */
/* What the text alone decides: CLEAR when it is an absolute path that a file system could be asked about. A NUL inside: CHECK_FAILED. */
enum contain_cause contain_text(const char *bytes, size_t len);
/* "//", "." and ".." folded, without a look at the file system; `out` holds CONTAIN_PATH_MAX. The path is absolute and shorter than that. */
void contain_text_fold(const char *path, char *out);
/* Is folded `path` equal to or below folded `parent`? Whole components, exact bytes. */
bool contain_text_below(const char *path, const char *parent);

struct contain_answer {
	enum contain_cause cause;
	char detail[160]; /* of LOOP and CHECK_FAILED: one phrase; else "" */
};

struct contain_seal {
	const char *path;      /* absolute, as the pod spells it; its links are resolved here too. It need not exist */
	const struct pin *pin; /* the directory itself where the caller holds it, or NULL */
};
/* The true cause, or CLEAR. A remote spelling is answered without a single system call. `until` may be far: a local walk takes microseconds. */
struct contain_answer contain_check(const char *path, const struct contain_seal *seal, struct deadline until);
