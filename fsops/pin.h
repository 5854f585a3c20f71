/* A directory held by descriptor, with its identity. A path is used once, to make a pin; after that it is pin + single name.
 * Resolution never follows a link and never crosses a mount below the pin: openat2(2) with BENEATH, NO_SYMLINKS, NO_XDEV,
 * NO_MAGICLINKS where the kernel has it, else a component walk with O_NOFOLLOW and statx(2) mount ids. Same answers from both. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fsops/err.h"

struct pin {
	int fd; /* O_DIRECTORY | O_RDONLY | O_CLOEXEC, or -1 */
	dev_t dev;
	ino_t ino;
	uint64_t mount; /* statx mount id, 0 where unknown */
};
#define PIN_NONE ((struct pin){.fd = -1})

/* Takes fd over (closed on failure). -ENOTDIR if it is no directory. */
int pin_adopt(int fd, struct pin *ret_pin, struct err *err);

/* Absolute path, used this once. Links on the way and at the end are resolved here and only here. -ENOENT, -ENOTDIR, -ELOOP, -EACCES. */
int pin_open(const char *path, struct pin *ret_pin, struct err *err);

/* The same, and makes every missing component with `mode`, forced whatever the umask. A dangling link is refused, never made through. */
int pin_make_path(const char *path, mode_t mode, struct pin *ret_pin, struct err *err);

/* The directory `name` (one component: no '/', not "." or "..") in `at`. -ELOOP for a link, -ENOTDIR for another type, -EXDEV for a mount. */
int pin_child(const struct pin *at, const char *name, struct pin *ret_pin, struct err *err);

/* The directory that the relative path names; "" is `at` itself. ".." is refused (-EINVAL). */
int pin_descend(const struct pin *at, const char *relative, struct pin *ret_pin, struct err *err);

/* mkdir `name` if it is missing, pin it no-follow, check that it is ours (owner, -EPERM) and force `mode` on the descriptor.
 * *ret_made (may be NULL) tells whether this call made it. */
int pin_make_child(const struct pin *at, const char *name, mode_t mode, bool *ret_made, struct pin *ret_pin, struct err *err);

/* openat of a single name: no-follow, close-on-exec, beneath, same mount. Returns a descriptor or -errno. */
int pin_open_file(const struct pin *at, const char *name, int flags, mode_t mode, struct err *err);

/* Is there an entry of another type (S_IFDIR, S_IFREG …) than this? The errno of opening it is no proof of that. */
bool pin_other_stands(const struct pin *at, const char *name, mode_t type);

bool pin_same(const struct pin *a, const struct pin *b); /* device and inode */
bool pin_single_name(const char *name);                  /* is it one ordinary component? */
void pin_close(struct pin *pin);
struct pin pin_take(struct pin *pin);
#define AUTO_PIN __attribute__((cleanup(pin_close)))

/* Tests only: false makes every resolution use the component walk. */
extern bool pin_use_openat2;
