/* Records and refusal notes on disk, below the pinned pods dir. */
#pragma once

#include "fsops/err.h"
#include "fsops/pin.h"
#include "pod/model/facts.h"
#include "pod/model/name.h"
#include "pod/model/record.h"

int record_load(const struct pin *pods_dir, const struct pod_name *name, struct record *ret_record, struct err *err); /* -ENOENT; REFUSAL_BAD_CONFIG */
/* The same of a name that a listing has just told; `regular`: as that of a regular file (file_read_listed). */
int record_load_listed(const struct pin *pods_dir, const struct pod_name *name, bool regular, struct record *ret_record, struct err *err);
/* The ID of the pod's record, checked, because it becomes part of names; "" when there is none. pods_dir may be NULL. An error when it could not be
 * read: the generation by which the pod's processes are known is not known then. */
int record_id(const struct pin *pods_dir, const struct pod_name *name, char ret_id[37], struct err *err);
int record_store(const struct pin *pods_dir, const struct pod_name *name, const struct record *record, struct err *err);
/* In two steps: old or new from the first on, and kept over a power cut after the second. */
int record_store_unsynced(const struct pin *pods_dir, const struct pod_name *name, const struct record *record, struct err *err);
int records_sync(const struct pin *pods_dir, struct err *err);
int record_delete(const struct pin *pods_dir, const struct pod_name *name, struct err *err);

int note_load(const struct pin *pods_dir, const struct pod_name *name, struct note *ret_note, struct err *err); /* never opens what is not a regular file */
int note_store(const struct pin *pods_dir, const struct pod_name *name, const struct err *why, struct err *err);
int note_delete(const struct pin *pods_dir, const struct pod_name *name, struct err *err);
/* Written before a `down` changes anything, deleted last: a `down` that was killed in between is seen. Without room for it: 0. Not synced: what
 * a power cut leaves of the pod is listed anyway. */
int farewell_store(const struct pin *pods_dir, const struct pod_name *name, struct err *err);
int farewell_delete(const struct pin *pods_dir, const struct pod_name *name, struct err *err);
/* Temporary files that a killed call left of this pod; the caller holds its name lock. */
int records_sweep(const struct pin *pods_dir, const struct pod_name *name, struct err *err);
int id_new(char out[37], struct err *err); /* libuuid */
