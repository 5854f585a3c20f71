#include "fuzz.h"

#include "pod/model/floor.h"
#include "pod/model/json.h"

/* Laid over a second time the floor changes nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = NULL, *again = NULL;
	size_t len = 0, again_len = 0;
	struct err err = {0};
	if (floor_apply((const char *)data, size, &text, &len, &err) < 0) {
		MUST(!text && *err.text);
		return 0;
	}
	MUST(text && strlen(text) == len);
	MUST(floor_apply(text, len, &again, &again_len, NULL) == 0);
	MUST(again_len == len && !memcmp(again, text, len));
	free(text);
	free(again);
	return 0;
}
