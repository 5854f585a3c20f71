#include "model_test.h"

#include "pod/model/http.h"

static void answers_are_read_however_they_are_cut(void **state)
{
	static const struct {
		const char *bytes;
		enum http_progress progress;
		int status;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\n", HTTP_STATUS, 200},
		{"HTTP/1.0 401\r\n", HTTP_STATUS, 401},
		{"HTTP/1.1 403 ", HTTP_STATUS, 403},
		{"HTTP/1.1 503\n", HTTP_STATUS, 503},
		{"HTTP/1.9 599 x", HTTP_STATUS, 599},
		{"HTTP/1.1 200", HTTP_MORE, 0},
		{"HTTP/1.", HTTP_MORE, 0},
		{"", HTTP_MORE, 0},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 \r\n", HTTP_STATUS, 204},
		{"HTTP/1.1 100\n\nHTTP/1.1 204\n", HTTP_STATUS, 204},
		{"HTTP/1.1 103 Early\r\nLink: x\r\n\ry: \r\r\n\r\nHTTP/1.1 102\r\n\r\nHTTP/1.1 500 \r\n", HTTP_STATUS, 500},
		{"HTTP/1.1 101 Switching\r\n\r\n\x81\x05", HTTP_GARBAGE, 0},
		{"HTTP/1.1 100 Continue\r\nHTTP/1.1 200 OK\r\n", HTTP_MORE, 0},
		{"HTTP/2.0 200 OK\r\n", HTTP_GARBAGE, 0},
		{"HTTP/1.x 200 OK\r\n", HTTP_GARBAGE, 0},
		{"http/1.1 200 OK\r\n", HTTP_GARBAGE, 0},
		{"HTTP/1.1  200 OK\r\n", HTTP_GARBAGE, 0},
		{"HTTP/1.1 099 x\r\n", HTTP_GARBAGE, 0},
		{"HTTP/1.1 600 x\r\n", HTTP_GARBAGE, 0},
		{"HTTP/1.1 2000 x\r\n", HTTP_GARBAGE, 0},
		{"HTTP/1.1 20x\r\n", HTTP_GARBAGE, 0},
		{"HTTP/1.1\t200", HTTP_GARBAGE, 0},
		{"\r\nHTTP/1.1 200 OK\r\n", HTTP_GARBAGE, 0},
		{"SSH-2.0-OpenSSH_9.2\r\n", HTTP_GARBAGE, 0},
		{"\x16\x03\x01", HTTP_GARBAGE, 0},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t len = strlen(cases[i].bytes);
		for (size_t cut = 1; cut <= len + 1; cut++) {
			struct http_status_reader reader = {.len = 0};
			enum http_progress progress = HTTP_MORE;
			for (size_t at = 0; at < len; at += cut)
				progress = http_status_feed(&reader, cases[i].bytes + at, at + cut < len ? cut : len - at);
			assert_int_equal(progress, cases[i].progress);
			assert_int_equal(reader.status, cases[i].status);
		}
	}
}

static void X35_garbage_is_told_at_its_first_byte(void **state)
{
	struct http_status_reader reader = {.len = 0};
	(void)state;
	assert_int_equal(http_status_feed(&reader, "HTTP/", 5), HTTP_MORE);
	assert_int_equal(http_status_feed(&reader, "\0", 1), HTTP_GARBAGE);
	assert_int_equal(http_status_feed(&reader, "1.1 200 OK\r\n", 12), HTTP_GARBAGE);
	assert_int_equal(reader.status, 0);
}

static void an_answer_once_read_stays(void **state)
{
	struct http_status_reader reader = {.len = 0};
	(void)state;
	assert_int_equal(http_status_feed(&reader, "HTTP/1.1 302 F", 14), HTTP_STATUS);
	assert_int_equal(http_status_feed(&reader, "HTTP/1.1 500 F", 14), HTTP_STATUS);
	assert_int_equal(reader.status, 302);
}

static void X35_endless_interim_answers_take_no_memory(void **state)
{
	static const char answer[] = "HTTP/1.1 100 Continue\r\nA: b\r\n\r\n";
	struct http_status_reader reader = {.len = 0};
	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_int_equal(http_status_feed(&reader, answer, sizeof answer - 1), HTTP_MORE);
	assert_int_equal(http_status_feed(&reader, "HTTP/1.1 200 \r\n", 15), HTTP_STATUS);
}

static void requests_are_whole_or_not_made(void **state)
{
	static const char *const bad[] = {"", "x", "/a b", "/a\r\nX: y", "/\x7f", "/\xc3\xa4", "/\n", "http://x/"};
	char out[256], expected[] = "GET /api/health HTTP/1.1\r\nHost: 127.0.0.1:7971\r\nAccept: */*\r\nConnection: close\r\n\r\n";
	(void)state;
	assert_int_equal(http_request("/api/health", 7971, out, sizeof out), strlen(expected));
	assert_string_equal(out, expected);
	assert_int_equal(http_request("/api/health", 7971, out, strlen(expected) + 1), strlen(expected));
	assert_int_equal(http_request("/api/health", 7971, out, strlen(expected)), 0);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(http_request(bad[i], 80, out, sizeof out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_read_however_they_are_cut),
		cmocka_unit_test(X35_garbage_is_told_at_its_first_byte),
		cmocka_unit_test(an_answer_once_read_stays),
		cmocka_unit_test(X35_endless_interim_answers_take_no_memory),
		cmocka_unit_test(requests_are_whole_or_not_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
