#include "pod/model/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pod/model/utf8.h"

static size_t expected_length(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef)
		return 3;
	return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

size_t utf8_next(const char *bytes, size_t len, uint32_t *ret_code_point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char lead = (unsigned char)bytes[0];
	size_t n = expected_length(lead);
	if (!n || n > len)
		return 0;
	uint32_t code_point = n == 1 ? lead : lead & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		unsigned char next = (unsigned char)bytes[i];
		if ((next & 0xc0) != 0x80)
			return 0;
		code_point = code_point << 6 | (next & 0x3f);
	}
	if (code_point < least[n] || code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff))
		return 0;
	*ret_code_point = code_point;
	return n;
}

bool utf8_hostile(uint32_t code_point)
{
	static const struct {
		uint32_t first, last;
	} hostile[] = {
	    {0x00, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
	};
	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
		if (code_point >= hostile[i].first && code_point <= hostile[i].last)
			return true;
	return false;
}

size_t text_plain_run(const char *bytes, size_t len)
{
	size_t n = 0;
	while (n < len && bytes[n] >= 0x20 && bytes[n] < 0x7f)
		n++;
	return n;
}

/* One piece of the output: a whole character or a whole escape. */
static size_t piece(const char *bytes, size_t len, char out[16], size_t *ret_size)
{
	uint32_t code_point = 0;
	size_t n = utf8_next(bytes, len, &code_point);
	int size;
	if (!n || (n == 1 && utf8_hostile(code_point))) {
		n = 1;
		size = snprintf(out, 16, "\\x%02x", (unsigned)(unsigned char)bytes[0]);
	} else if (utf8_hostile(code_point)) {
		size = snprintf(out, 16, "\\u{%x}", (unsigned)code_point);
	} else {
		memcpy(out, bytes, n);
		size = (int)n;
	}
	*ret_size = (size_t)size;
	return n;
}

size_t text_escape(const char *bytes, size_t len, char *out, size_t size)
{
	size_t written = 0;
	if (!size)
		return 0;
	for (size_t i = 0; i < len;) {
		size_t plain = text_plain_run(bytes + i, len - i), room = size - 1 - written;
		if (plain) {
			size_t taken = plain < room ? plain : room;
			memcpy(out + written, bytes + i, taken);
			written += taken;
			i += plain;
			if (taken < plain)
				break;
			continue;
		}
		char buffer[16];
		size_t part;
		i += piece(bytes + i, len - i, buffer, &part);
		if (part > room)
			break;
		memcpy(out + written, buffer, part);
		written += part;
	}
	out[written] = '\0';
	return written;
}

bool text_is_utf8(const char *bytes, size_t len)
{
	uint32_t code_point;
	for (size_t i = text_plain_run(bytes, len); i < len; i += text_plain_run(bytes + i, len - i)) {
		size_t n = utf8_next(bytes + i, len - i, &code_point);
		if (!n)
			return false;
		i += n;
	}
	return true;
}

char *shell_quote(const char *value)
{
	size_t quotes = 0;
	for (const char *c = value; *c; c++)
		quotes += *c == '\'';
	char *quoted = malloc(strlen(value) + quotes * 3 + 3);
	if (!quoted)
		return NULL;
	char *out = quoted;
	*out++ = '\'';
	for (const char *c = value; *c; c++) {
		if (*c == '\'') {
			memcpy(out, "'\\'", 3); /* close, a quoted quote, and the quote itself opens again */
			out += 3;
		}
		*out++ = *c;
	}
	*out++ = '\'';
	*out = '\0';
	return quoted;
}
