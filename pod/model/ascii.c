#include "pod/model/ascii.h"

#include <string.h>

bool ascii_name(const char *bytes, size_t len, size_t max)
{
	if (!len || len > max || !ascii_alnum(bytes[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!ascii_alnum(bytes[i]) && bytes[i] != '.' && bytes[i] != '_' && bytes[i] != '-')
			return false;
	return true;
}

bool ascii_decimal(const char *text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	if (!*text || (text[0] == '0' && text[1]))
		return false;
	for (const char *c = text; *c; c++) {
		if (!ascii_digit(*c))
			return false;
		uint64_t digit = (uint64_t)(*c - '0');
		if (digit > max || value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret_value = value;
	return true;
}

bool ascii_one_of(const char *text, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(text, *list))
			return true;
	return false;
}
