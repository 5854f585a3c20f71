#include "fuzz.h"

#include "pod/model/name.h"
#include "pod/model/port.h"
#include "pod/model/refusal.h"

/* The grammar once more, as slowly and plainly as it can be said. */
static int is_name(const char *bytes, size_t len)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", more[] = "._-";
	if (len < 1 || len > POD_NAME_MAX || !memchr(first, bytes[0], sizeof first - 1))
		return 0;
	for (size_t i = 1; i < len; i++)
		if (!memchr(first, bytes[i], sizeof first - 1) && !memchr(more, bytes[i], sizeof more - 1))
			return 0;
	return 1;
}

static void check_files(const struct pod_name *name)
{
	struct pod_name back;
	MUST(pod_name_from_file(pod_file_record(name).text, ".env", &back) == 0 && !strcmp(back.text, name->text));
	MUST(pod_name_from_file(pod_file_note(name).text, ".refused", &back) == 0 && !strcmp(back.text, name->text));
	MUST(pod_name_from_file(pod_file_socket(name).text, ".sock", &back) == 0 && !strcmp(back.text, name->text));
	MUST(pod_name_from_retired(pod_file_retired(name).text, &back) == 0 && !strcmp(back.text, name->text));
	MUST(pod_name_from_file(pod_file_lock("p", name).text, ".lock", &back) < 0);
	MUST(pod_name_parse(pod_file_retired(name).text, strlen(pod_file_retired(name).text), &back, NULL) < 0);
	MUST(strlen(pod_file_socket(name).text) <= 66 && !strchr(pod_file_unit("p", name).text, '/'));
}

static void check_ports(const struct pod_name *name)
{
	struct plane plane = {.base_port = 100, .port_span = 7, .live_port = 103};
	int step = 0, count = 0, port;
	struct port_set seen = {{0}};
	while ((port = port_next(&plane, name, &seen, &step))) {
		MUST(port > 100 && port <= 107 && port != 103 && !port_set_has(&seen, port));
		port_set_add(&seen, port);
		count++;
	}
	MUST(count == 6);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pod_name name;
	struct err err = {0};
	int r = pod_name_parse((const char *)data, size, &name, &err);
	MUST((r == 0) == is_name((const char *)data, size));
	if (r < 0) {
		MUST(err.refusal == REFUSAL_BAD_NAME);
		return 0;
	}
	MUST(strlen(name.text) == size && !memcmp(name.text, data, size));
	check_files(&name);
	check_ports(&name);
	return 0;
}
