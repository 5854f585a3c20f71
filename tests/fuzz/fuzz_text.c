#include "fuzz.h"

#include "pod/model/text.h"

static int is_hostile_byte(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	size_t room = size * 6 + 1;
	char *whole = malloc(room), *again = malloc(room);
	MUST(whole && again);
	size_t len = text_escape(bytes, size, whole, room);
	MUST(strlen(whole) == len && text_is_utf8(whole, len));
	for (size_t i = 0; i < len; i++)
		MUST(!is_hostile_byte(whole[i]));
	MUST(text_escape(whole, len, again, room) == len && !strcmp(whole, again)); /* nothing is left to escape */

	/* A smaller buffer holds a beginning of it, whole in itself. */
	size_t small = size ? data[0] : 0;
	char *cut = malloc(small + 1);
	MUST(cut);
	size_t cut_len = text_escape(bytes, size, cut, small);
	if (small) {
		MUST(cut_len < small && strlen(cut) == cut_len && text_is_utf8(cut, cut_len) && !memcmp(cut, whole, cut_len));
		MUST(cut_len == len || small - 1 - cut_len < 10); /* an escape is 10 bytes at most */
	}
	free(cut);
	free(again);
	free(whole);
	return 0;
}
