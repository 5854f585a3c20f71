#include "fuzz.h"

#include "pod/model/life.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct life_owner owner = {.pid = -7}, owner_again;
	struct life_limit limit = {.epoch_s = -7}, limit_again;
	char out[LIFE_TEXT_MAX];
	char *text = fuzz_string(data, size);
	if (life_owner_parse(text, &owner)) {
		life_owner_render(&owner, out);
		MUST(owner.pid > 0 && life_owner_parse(out, &owner_again));
		MUST(owner.pid == owner_again.pid && owner.start == owner_again.start && !strcmp(owner.boot, owner_again.boot));
	}
	if (life_limit_parse(text, &limit)) {
		life_limit_render(&limit, out);
		MUST(life_limit_parse(out, &limit_again));
		MUST(limit.epoch_s == limit_again.epoch_s && limit.boot_ms == limit_again.boot_ms && !strcmp(limit.boot, limit_again.boot));
	}
	free(text);
	return 0;
}
