#include "fuzz.h"

#include "pod/model/worktree_list.h"

static bool occurs(const char *bytes, size_t len, const char *text)
{
	size_t wanted = strlen(text) + 1; /* with its NUL: a whole field's end */
	for (size_t i = 0; i + wanted <= len; i++)
		if (!memcmp(bytes + i, text, wanted))
			return true;
	return false;
}

/* What is found is a path that git listed. The name is what stands before the first newline. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char out[256];
	const char *bytes = (const char *)data;
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	size_t head = end ? (size_t)(end - data) : 0;
	char *name = fuzz_string(data, head);
	size_t rest = head + (end != NULL);
	bool found = worktree_list_find(bytes + rest, size - rest, name, out, sizeof out);
	if (found)
		MUST(strnlen(out, sizeof out) < sizeof out && *out && occurs(bytes + rest, size - rest, out));
	free(name);
	return 0;
}
