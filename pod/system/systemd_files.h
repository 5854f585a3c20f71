/* The unit files of a plane and of its pods on disk, below pins. Part of the systemd backend. systemd.unit(5). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/name.h"
#include "pod/model/plane.h"

#define UNIT_FILE_BYTES_MAX 65536
#define DROP_IN_NAME "50-kirocrew-pod.conf"

/* <config_home>/systemd/user; what is missing is made 0755 (with make) or -ENOENT. Links above config_home are resolved, below it they are
 * refused (REFUSAL_UNSAFE_PATH), as is a directory of another owner or one that others may write to. */
int unit_directory_open(const struct plane *plane, bool make, struct pin *ret_directory, struct err *err);
/* Is the plane's template on disk: then a pod that systemd has not loaded is defined all the same, and inactive. */
bool unit_template_exists(const struct plane *plane);
/* Does the template on disk belong to another plane, which has the same prefix? Then the units that the manager knows are that one's. Spellings
 * of one pods dir are told by identity; a template that says nothing of a plane is nobody else's. */
bool unit_template_is_others(const struct plane *plane);
/* The pod's drop-in directory in it, with the same rules. */
int drop_in_directory_open(const struct pin *directory, const char *name, bool make, struct pin *ret_drop_ins, struct err *err);

/* A file that is written, and can be taken back. Zero: nothing. */
struct unit_file {
	const struct pin *at;
	const char *name;
	char *before; /* NULL: there was none */
	size_t before_len;
	bool written;
};
void unit_file_free(struct unit_file *file);
#define AUTO_UNIT_FILE __attribute__((cleanup(unit_file_free)))
/* What is there now. A link is refused: it may be a mask, and that is not ours to undo. */
int unit_file_read(const struct pin *at, const char *name, struct unit_file *ret_file, struct err *err);
/* text NULL removes. Only when the bytes differ. */
int unit_file_write(struct unit_file *file, const char *text, struct err *err);
/* As it was before; a failure is prepended to *err. */
void unit_file_restore(struct unit_file *file, struct err *err);
