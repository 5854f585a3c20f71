#include "fsops/contain.h"

#include <stdint.h>
#include <string.h>

static const char *const names[CONTAIN_CAUSES] = {
	[CONTAIN_CLEAR] = "clear",
	[CONTAIN_REMOTE_OR_DEVICE] = "remote-or-device",
	[CONTAIN_RELATIVE] = "relative",
	[CONTAIN_EMPTY] = "empty",
	[CONTAIN_TOO_LONG] = "too-long",
	[CONTAIN_NOT_UTF8] = "not-utf8",
	[CONTAIN_SEALED] = "sealed",
	[CONTAIN_LOOP] = "loop",
	[CONTAIN_CHECK_FAILED] = "check-failed",
};

const char *contain_cause_name(enum contain_cause cause)
{
	return cause < CONTAIN_CAUSES ? names[cause] : "check-failed";
}

static bool is_separator(char c)
{
	return c == '/' || c == '\\';
}

bool contain_text_remote(const char *bytes, size_t len)
{
	return len >= 2 && is_separator(bytes[0]) && is_separator(bytes[1]);
}

/* Length of the UTF-8 sequence at `at`, 0 when it is none: no overlong form, no surrogate, nothing above U+10FFFF (RFC 3629). */
static size_t utf8_sequence(const unsigned char *at, size_t left)
{
	if (at[0] < 0x80)
		return 1;
	size_t n = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	if (at[0] < 0xc2 || at[0] > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f))
		return 0;
	if ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return n;
}

static bool is_utf8(const char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = utf8_sequence((const unsigned char *)bytes + at, len - at);
		if (!n)
			return false;
		at += n;
	}
	return true;
}

enum contain_cause contain_text(const char *bytes, size_t len)
{
	if (contain_text_remote(bytes, len))
		return CONTAIN_REMOTE_OR_DEVICE;
	if (!len)
		return CONTAIN_EMPTY;
	if (bytes[0] != '/')
		return CONTAIN_RELATIVE;
	if (len >= CONTAIN_PATH_MAX)
		return CONTAIN_TOO_LONG;
	if (memchr(bytes, '\0', len))
		return CONTAIN_CHECK_FAILED;
	return is_utf8(bytes, len) ? CONTAIN_CLEAR : CONTAIN_NOT_UTF8;
}

void contain_text_fold(const char *path, char *out)
{
	size_t len = 0;
	while (*path) {
		path += strspn(path, "/");
		size_t n = strcspn(path, "/");
		if (n == 2 && !memcmp(path, "..", 2)) {
			while (len && out[--len] != '/')
				;
		} else if (n && !(n == 1 && *path == '.')) {
			out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		path += n;
	}
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
}

bool contain_text_below(const char *path, const char *parent)
{
	size_t n = strlen(parent);
	if (n == 1 && *parent == '/')
		return *path == '/';
	return !strncmp(path, parent, n) && (path[n] == '\0' || path[n] == '/');
}
