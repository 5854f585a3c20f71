#include "fuzz.h"

#include "pod/model/launchd_print.h"

static bool is_one_line(const char *text, size_t room)
{
	size_t len = strnlen(text, room);
	return len < room && !memchr(text, '\n', len);
}

static void check_state(const struct unit_state *state, const char *text, int status)
{
	MUST(status == 0 || state->active == UNIT_ABSENT);
	if (state->active == UNIT_ABSENT)
		MUST(status == 113 && strstr(text, "Could not find service"));
	MUST(state->main_pid >= 0 && is_one_line(state->detail, sizeof state->detail));
}

/* The first byte is launchctl's exit status. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unit_state state = {.active = UNIT_UNKNOWN};
	struct err err = {0};
	char words[120];
	int status = size ? data[0] : 0;
	char *text = fuzz_string(data + (size > 0), size - (size > 0));
	launchd_words(text, words, sizeof words);
	MUST(is_one_line(words, sizeof words));
	int r = launchd_print_parse(status, text, &state, &err);
	MUST(r <= 0);
	if (r == 0)
		check_state(&state, text, status);
	else
		MUST(state.active == UNIT_UNKNOWN && err.code == r && *err.text);
	free(text);
	return 0;
}
