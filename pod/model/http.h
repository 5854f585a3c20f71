/* The status line of an HTTP/1.x answer, read byte by byte (RFC 9112, section 4). Pure. */
#pragma once

#include <stddef.h>

enum http_progress { HTTP_MORE, HTTP_STATUS, HTTP_GARBAGE };
struct http_status_reader {
	char line[64];
	size_t len;
	int status; /* 100..599 once HTTP_STATUS */
};
/* A 1xx answer is skipped; garbage is told at the first byte that cannot belong to a status line. */
enum http_progress http_status_feed(struct http_status_reader *reader, const char *bytes, size_t len);
size_t http_request(const char *path, int port, char *out, size_t size); /* GET with Host and Connection: close; 0 if it does not fit */
