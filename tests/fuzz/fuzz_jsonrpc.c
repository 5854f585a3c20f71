#include "fuzz.h"

#include "pod/model/jsonrpc.h"

static void check_answer(const struct jsonrpc_event *event)
{
	char *line = jsonrpc_result(event->id, NULL);
	struct jsonrpc_reader reader = {0};
	AUTO_JSONRPC_EVENT struct jsonrpc_event again = {0};
	size_t taken = 0;
	MUST(line && line[strlen(line) - 1] == '\n' && !memchr(line, '\n', strlen(line) - 1));
	MUST(jsonrpc_read(&reader, line, strlen(line), &taken, &again, NULL) == 0 && taken == strlen(line));
	MUST(again.kind == JSONRPC_RESPONSE && json_kind(again.id) == json_kind(event->id));
	jsonrpc_reader_free(&reader);
	free(line);
}

/* Sums up the events, so that the way in which the bytes were cut can be seen to make no difference. */
static unsigned run(const uint8_t *data, size_t size, size_t step)
{
	struct jsonrpc_reader reader = {0};
	unsigned sum = 0;
	for (size_t at = 0; at < size;) {
		size_t taken = 0, left = size - at < step ? size - at : step;
		AUTO_JSONRPC_EVENT struct jsonrpc_event event = {0};
		MUST(jsonrpc_read(&reader, (const char *)data + at, left, &taken, &event, NULL) == 0 && taken > 0 && taken <= left);
		at += taken;
		if (event.kind != JSONRPC_MORE)
			sum = sum * 31 + event.kind;
		MUST((event.kind == JSONRPC_REQUEST || event.kind == JSONRPC_NOTIFICATION) == (event.method != NULL));
		MUST((event.kind == JSONRPC_RESPONSE) == (event.result != NULL || event.error != NULL));
		if (event.kind == JSONRPC_REQUEST)
			check_answer(&event);
	}
	jsonrpc_reader_free(&reader);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MUST(run(data, size, 1 << 20) == run(data, size, 3));
	return 0;
}
