#include <string.h>

#include "pod/model/ascii.h"
#include "pod/model/record.h"

#define CPU_QUOTA_MAX 1000000 /* percent: ten thousand processors */

/* The number in front of `suffix_len` last bytes; 0 when it is none. */
static uint64_t number_before(const char *text, size_t suffix_len, uint64_t max)
{
	char digits[32];
	size_t len = strlen(text);
	if (len >= sizeof digits || len <= suffix_len)
		return 0;
	memcpy(digits, text, len - suffix_len);
	digits[len - suffix_len] = '\0';
	uint64_t value = 0;
	return ascii_decimal(digits, max, &value) ? value : 0;
}

static bool ends_with(const char *text, char c)
{
	size_t len = strlen(text);
	return len && text[len - 1] == c;
}

bool memory_max_valid(const char *text)
{
	static const char units[] = "KMGTPE";
	if (!strcmp(text, "infinity"))
		return true;
	if (ends_with(text, '%'))
		return number_before(text, 1, 100) != 0;
	for (unsigned i = 0; i < sizeof units - 1; i++)
		if (ends_with(text, units[i]))
			return number_before(text, 1, UINT64_MAX >> (10 * (i + 1))) != 0;
	return number_before(text, 0, UINT64_MAX - 1) != 0; /* UINT64_MAX means infinity there */
}

bool cpu_quota_valid(const char *text)
{
	return ends_with(text, '%') && number_before(text, 1, CPU_QUOTA_MAX) != 0;
}

bool stop_secs_valid(const char *text)
{
	uint64_t seconds;
	return ascii_decimal(text, STOP_SECS_MOST, &seconds) && seconds;
}

unsigned spec_stop_secs(const struct spec *spec)
{
	uint64_t seconds;
	return ascii_decimal(spec->stop_secs, STOP_SECS_MOST, &seconds) && seconds ? (unsigned)seconds : STOP_SECS_DEFAULT;
}
