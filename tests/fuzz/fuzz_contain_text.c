/* Whatever the bytes: one cause, remote spellings first; what is clear folds to a path that folds to itself. */
#include "fuzz.h"

#include "fsops/contain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	enum contain_cause cause = contain_text(bytes, size);
	MUST(contain_text_remote(bytes, size) == (cause == CONTAIN_REMOTE_OR_DEVICE));
	if (cause != CONTAIN_CLEAR)
		return 0;
	char path[CONTAIN_PATH_MAX], once[CONTAIN_PATH_MAX], twice[CONTAIN_PATH_MAX];
	memcpy(path, bytes, size);
	path[size] = '\0';
	contain_text_fold(path, once);
	contain_text_fold(once, twice);
	MUST(!strcmp(once, twice) && once[0] == '/' && !strstr(once, "//"));
	MUST(contain_text_below(once, once) && contain_text_below(once, "/"));
	return 0;
}
