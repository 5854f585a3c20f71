#include "pod/model/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pod/model/ascii.h"
#include "pod/model/refusal.h"

int pod_name_parse(const char *bytes, size_t len, struct pod_name *ret_name, struct err *err)
{
	if (!ascii_name(bytes, len, POD_NAME_MAX)) {
		char shown[POD_NAME_MAX + 4];
		(void)snprintf(shown, sizeof shown, "%.*s", (int)(len < sizeof shown ? len : sizeof shown - 1), bytes);
		return refuse(err, REFUSAL_BAD_NAME, shown, NULL);
	}
	struct pod_name name = {{0}};
	memcpy(name.text, bytes, len);
	*ret_name = name;
	return 0;
}

static struct pod_file file_of(const char *a, const char *b, const char *c, const char *d)
{
	struct pod_file file;
	(void)snprintf(file.text, sizeof file.text, "%s%s%s%s", a, b, c, d);
	return file;
}

struct pod_file pod_file_record(const struct pod_name *name)
{
	return file_of(name->text, ".env", "", "");
}

struct pod_file pod_file_note(const struct pod_name *name)
{
	return file_of(name->text, ".refused", "", "");
}

struct pod_file pod_file_farewell(const struct pod_name *name)
{
	return file_of(name->text, ".down", "", "");
}

struct pod_file pod_file_socket(const struct pod_name *name)
{
	return file_of(name->text, ".sock", "", "");
}

struct pod_file pod_file_lock(const char *prefix, const struct pod_name *name)
{
	return file_of(prefix, "@", name->text, ".lock");
}

struct pod_file pod_file_gate(const char *prefix, const struct pod_name *name)
{
	return file_of(prefix, "@", name->text, "@boot.lock");
}

struct pod_file pod_file_plane_lock(const char *prefix)
{
	return file_of(prefix, "@@plane.lock", "", "");
}

struct pod_file pod_file_retired(const struct pod_name *name)
{
	return file_of(".", name->text, "@retired", "");
}

struct pod_file pod_file_unit(const char *prefix, const struct pod_name *name)
{
	return file_of(prefix, "@", name->text, ".service");
}

struct pod_file pod_file_watch_unit(const char *prefix, const struct pod_name *name, const char *id)
{
	struct pod_file file;
	(void)snprintf(file.text, sizeof file.text, "%s:watch:%s:%.8s.service", prefix, name->text, id);
	return file;
}

int pod_name_from_file(const char *file, const char *suffix, struct pod_name *ret_name)
{
	size_t len = strlen(file), tail = strlen(suffix);
	if (len <= tail || strcmp(file + len - tail, suffix))
		return -EINVAL;
	return pod_name_parse(file, len - tail, ret_name, NULL) < 0 ? -EINVAL : 0;
}

int pod_name_from_retired(const char *entry, struct pod_name *ret_name)
{
	return entry[0] == '.' ? pod_name_from_file(entry + 1, "@retired", ret_name) : -EINVAL;
}
