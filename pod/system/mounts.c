#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fsops/cleanup.h"
#include "pod/system/process.h"

#define MOUNTINFO_MAX (16UL << 20)

void mount_list_free(struct mount_list *list)
{
	free(list->v);
	free(list->text);
	*list = (struct mount_list){0};
}

static bool octal(char c)
{
	return c >= '0' && c <= '7';
}

void unescape_octal(char *text)
{
	char *out = text;
	for (const char *in = text; *in;) {
		if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && octal(in[2]) && octal(in[3])) {
			*out++ = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
			in += 4;
		} else {
			*out++ = *in++;
		}
	}
	*out = '\0';
}

/* "36 35 98:0 /root /point options optional… - type source super": the optional fields end at a lone "-". */
static bool parse_line(char *line, struct mount *ret_mount)
{
	char *separator = strstr(line, " - ");
	unsigned major_, minor_;
	uint64_t id;
	int at = 0;
	if (!separator || sscanf(line, "%" SCNu64 " %*u %u:%u %n", &id, &major_, &minor_, &at) != 3 || !at)
		return false;
	*separator = '\0';
	char *rest = line + at, *tail = separator + 3;
	char *root = strsep(&rest, " "), *point = strsep(&rest, " ");
	char *type = strsep(&tail, " ");
	(void)strsep(&tail, " ");
	if (!root || !point || !type)
		return false;
	unescape_octal(root);
	unescape_octal(point);
	*ret_mount = (struct mount){
	    .id = id, .dev = makedev(major_, minor_), .root = root, .point = point, .type = type, .options = tail ? tail : ""};
	return true;
}

int mounts_read(int process_directory, struct mount_list *ret_list)
{
	AUTO_MOUNTS struct mount_list list = {0};
	size_t len, lines = 0;
	int r = process_file(process_directory, "mountinfo", MOUNTINFO_MAX, &list.text, &len);
	if (r < 0)
		return r;
	for (const char *c = list.text; *c; c++)
		lines += *c == '\n';
	list.v = calloc(lines + 1, sizeof *list.v);
	if (!list.v)
		return -ENOMEM;
	char *rest = list.text;
	for (char *line; (line = strsep(&rest, "\n")) && list.n < lines;)
		if (parse_line(line, &list.v[list.n]))
			list.n++;
	*ret_list = list;
	list = (struct mount_list){0};
	return 0;
}
