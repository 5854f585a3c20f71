#include "pod/system/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <uuid/uuid.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "pod/model/refusal.h"

#define NOTE_BYTES_MAX 8192

typedef int read_file(const struct pin *at, const char *name, size_t max, char **ret_bytes, size_t *ret_len, struct err *err);

static int load(const struct pin *pods_dir, const struct pod_name *name, read_file *read, struct record *ret_record, struct err *err)
{
	struct pod_file file = pod_file_record(name);
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	struct err why = {0};
	int r = read(pods_dir, file.text, RECORD_BYTES_MAX, &text, &len, &why);
	if (r == -ENOENT)
		return err_set(err, r, "record", file.text, "there is no record");
	if (r < 0)
		return refuse(err, REFUSAL_BAD_CONFIG, file.text, "the record cannot be read: %s", why.text);
	return record_parse(text, len, ret_record, err);
}

int record_load(const struct pin *pods_dir, const struct pod_name *name, struct record *ret_record, struct err *err)
{
	return load(pods_dir, name, file_read, ret_record, err);
}

int record_load_listed(const struct pin *pods_dir, const struct pod_name *name, bool regular, struct record *ret_record, struct err *err)
{
	return load(pods_dir, name, regular ? file_read_listed : file_read, ret_record, err);
}

/* A record that is none, or is damaged, names nobody. */
static bool names_nobody(const struct pin *pods_dir, const char *file, int code)
{
	bool damaged = code == -ENOENT || code == -EINVAL || code == -EFBIG || code == -EPERM;
	return damaged || pin_other_stands(pods_dir, file, S_IFREG);
}

int record_id(const struct pin *pods_dir, const struct pod_name *name, char ret_id[37], struct err *err)
{
	AUTO_RECORD struct record record = {0};
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	struct err why = {0};
	int r = pods_dir ? file_read(pods_dir, pod_file_record(name).text, RECORD_BYTES_MAX, &text, &len, &why) : -ENOENT;
	if (r == 0)
		r = record_parse(text, len, &record, &why);
	if (r < 0 && !names_nobody(pods_dir, pod_file_record(name).text, r)) {
		if (err)
			*err = why;
		(void)err_prepend(err, "the record cannot be read");
		return r;
	}
	const char *id = r < 0 ? NULL : record_get(&record, "ID");
	bool good = id && strlen(id) == 36 && strspn(id, "0123456789abcdefABCDEF-") == 36;
	(void)snprintf(ret_id, 37, "%s", good ? id : "");
	return 0;
}

int record_store_unsynced(const struct pin *pods_dir, const struct pod_name *name, const struct record *record, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = record_render(record, &text, &len, err);
	if (r < 0)
		return r;
	r = file_replace_unsynced(pods_dir, pod_file_record(name).text, text, len, 0600, err);
	return r < 0 ? err_prepend(err, "the record cannot be written") : 0;
}

int records_sync(const struct pin *pods_dir, struct err *err)
{
	int r = file_sync_names(pods_dir, err);
	return r < 0 ? err_prepend(err, "the record cannot be written") : 0;
}

int record_store(const struct pin *pods_dir, const struct pod_name *name, const struct record *record, struct err *err)
{
	int r = record_store_unsynced(pods_dir, name, record, err);
	return r < 0 ? r : records_sync(pods_dir, err);
}

int record_delete(const struct pin *pods_dir, const struct pod_name *name, struct err *err)
{
	return file_remove(pods_dir, pod_file_record(name).text, NULL, err);
}

static void note_odd(struct note *note, const char *what)
{
	note->kind = NOTE_ODD;
	(void)snprintf(note->sentence, sizeof note->sentence, "the refusal note is not a regular file (%s), it was not opened", what);
}

static const char *type_word(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return "a link";
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

/* "code\nsentence\n": what does not fit or has no second line is all sentence. */
static void note_parse(const char *text, size_t len, struct note *note)
{
	const char *end = memchr(text, '\n', len);
	size_t first = end ? (size_t)(end - text) : len;
	const char *sentence = text;
	size_t left = len;
	if (end && first < sizeof note->code && first + 1 < len) {
		memcpy(note->code, text, first);
		sentence = end + 1;
		left = len - first - 1;
	}
	while (left && sentence[left - 1] == '\n')
		left--;
	if (left >= sizeof note->sentence)
		left = sizeof note->sentence - 1;
	memcpy(note->sentence, sentence, left);
	note->sentence[strnlen(note->sentence, left)] = '\0';
	note->kind = *note->sentence ? NOTE_TEXT : NOTE_EMPTY;
}

int note_load(const struct pin *pods_dir, const struct pod_name *name, struct note *ret_note, struct err *err)
{
	struct pod_file file = pod_file_note(name);
	struct note note = {0};
	struct stat st;
	if (fstatat(pods_dir->fd, file.text, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return err_code(err, -errno, "note", file.text);
		*ret_note = note;
		return 0;
	}
	if (!S_ISREG(st.st_mode)) {
		note_odd(&note, type_word(st.st_mode));
		*ret_note = note;
		return 0;
	}
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	struct err why = {0};
	int r = file_read(pods_dir, file.text, NOTE_BYTES_MAX, &text, &len, &why);
	if (r < 0) {
		note.kind = NOTE_EMPTY;
		(void)snprintf(note.sentence, sizeof note.sentence, "refused; the note cannot be read: %.400s", why.text);
	} else {
		note_parse(text, len, &note);
	}
	*ret_note = note;
	return 0;
}

int note_store(const struct pin *pods_dir, const struct pod_name *name, const struct err *why, struct err *err)
{
	char sentence[4096], text[4160];
	err_sentence(why, sentence, sizeof sentence);
	for (char *c = sentence; *c; c++)
		if (*c == '\n')
			*c = ' ';
	int n = snprintf(text, sizeof text, "%s\n%s\n", refusal_entry((enum refusal)why->refusal)->code, sentence);
	return file_replace(pods_dir, pod_file_note(name).text, text, (size_t)n, 0600, err);
}

int note_delete(const struct pin *pods_dir, const struct pod_name *name, struct err *err)
{
	return file_remove(pods_dir, pod_file_note(name).text, NULL, err);
}

int farewell_store(const struct pin *pods_dir, const struct pod_name *name, struct err *err)
{
	struct err why = {0};
	int r = file_create(pods_dir, pod_file_farewell(name).text, "", 0, 0600, &why);
	/* A `down` that makes room needs none: if it is killed, the record still tells of the pod. */
	if (r == 0 || r == -EEXIST || r == -ENOSPC || r == -EDQUOT)
		return 0;
	if (err)
		*err = why;
	return r;
}

int farewell_delete(const struct pin *pods_dir, const struct pod_name *name, struct err *err)
{
	return file_remove(pods_dir, pod_file_farewell(name).text, NULL, err);
}

int records_sweep(const struct pin *pods_dir, const struct pod_name *name, struct err *err)
{
	struct pod_file record = pod_file_record(name), note = pod_file_note(name), farewell = pod_file_farewell(name),
			socket = pod_file_socket(name);
	const char *const names[] = {record.text, note.text, farewell.text, socket.text};
	return file_sweep(pods_dir, names, sizeof names / sizeof *names, err);
}

int id_new(char out[37], struct err *err)
{
	(void)err;
	uuid_t id;
	uuid_generate_random(id);
	uuid_unparse_lower(id, out);
	return 0;
}
