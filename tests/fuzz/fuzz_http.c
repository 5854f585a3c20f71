#include "fuzz.h"

#include "pod/model/http.h"

static enum http_progress feed(const uint8_t *data, size_t size, size_t chunk, int *ret_status)
{
	struct http_status_reader reader = {.len = 0};
	enum http_progress progress = HTTP_MORE;
	for (size_t at = 0; at < size; at += chunk) {
		enum http_progress next = http_status_feed(&reader, (const char *)data + at, size - at < chunk ? size - at : chunk);
		MUST(progress == HTTP_MORE || next == progress); /* what was said stays */
		progress = next;
		MUST(reader.len < sizeof reader.line);
	}
	*ret_status = reader.status;
	return progress;
}

static void check_request(const char *path)
{
	char out[512];
	size_t len = http_request(path, 80, out, sizeof out);
	if (!len)
		return;
	MUST(strlen(out) == len && len < sizeof out);
	size_t lines = 0;
	for (const char *c = out; (c = strstr(c, "\r\n")); c += 2)
		lines++;
	MUST(lines == 5 && !strncmp(out + 4, path, strlen(path))); /* a path adds no line of its own */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int whole_status, part_status;
	enum http_progress whole = feed(data, size, size ? size : 1, &whole_status);
	for (size_t chunk = 1; chunk <= 3; chunk++) {
		MUST(feed(data, size, chunk, &part_status) == whole && part_status == whole_status);
	}
	MUST(whole == HTTP_STATUS ? whole_status >= 200 && whole_status <= 599 : whole_status == 0);
	if (whole == HTTP_STATUS)
		MUST(size > 12 && !memcmp(data, "HTTP/1.", 7));
	char *path = fuzz_string(data, size);
	check_request(path);
	free(path);
	return 0;
}
