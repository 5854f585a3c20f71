#include "pod/model/http.h"

#include <stdio.h>
#include <string.h>

#include "pod/model/ascii.h"

/* reader->len: bytes of the status line so far; behind it the states of a 1xx answer that is skipped, and the end. */
enum {
	LINE_LEN = 12,	 /* "HTTP/1.1 200" */
	SKIP_LINE = 32,	 /* inside a line of a 1xx answer */
	SKIP_START = 33, /* at the start of one */
	SKIP_CR = 34,	 /* behind a CR at the start of one */
	ENDED = 40,
	SPOILT = 41,
};

static bool belongs(size_t at, char c)
{
	static const char version[] = "HTTP/1.";
	if (at < sizeof version - 1)
		return c == version[at];
	if (at == 8)
		return c == ' ';
	if (at == 9)
		return c >= '1' && c <= '5';
	if (at < LINE_LEN)
		return ascii_digit(c);
	return c == ' ' || c == '\r' || c == '\n';
}

static void skip(struct http_status_reader *reader, char c)
{
	if (c == '\n' && reader->len != SKIP_LINE)
		*reader = (struct http_status_reader){.len = 0};
	else if (c == '\n')
		reader->len = SKIP_START;
	else
		reader->len = c == '\r' && reader->len == SKIP_START ? SKIP_CR : SKIP_LINE;
}

static void status_byte(struct http_status_reader *reader, char c)
{
	if (!belongs(reader->len, c)) {
		reader->len = SPOILT;
		return;
	}
	if (reader->len < LINE_LEN) {
		reader->line[reader->len++] = c;
		return;
	}
	const char *digits = reader->line + 9;
	int status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
	if (status < 200) {
		reader->len = c == '\n' ? SKIP_START : SKIP_LINE;
		return;
	}
	reader->status = status;
	reader->len = ENDED;
}

enum http_progress http_status_feed(struct http_status_reader *reader, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len && reader->len < ENDED; i++) {
		if (reader->len < SKIP_LINE)
			status_byte(reader, bytes[i]);
		else
			skip(reader, bytes[i]);
	}
	if (reader->len == ENDED)
		return HTTP_STATUS;
	return reader->len == SPOILT ? HTTP_GARBAGE : HTTP_MORE;
}

size_t http_request(const char *path, int port, char *out, size_t size)
{
	if (*path != '/')
		return 0;
	for (const char *c = path; *c; c++)
		if (*c <= ' ' || *c > '~')
			return 0;
	int n = snprintf(out, size, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\nConnection: close\r\n\r\n", path, port);
	return n > 0 && (size_t)n < size ? (size_t)n : 0;
}
