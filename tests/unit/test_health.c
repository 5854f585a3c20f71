#include "tests/unit/process_help.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "pod/system/network.h"

/* A server in a child that treats every connection in the same way. */
struct server {
	void (*treat)(int fd);
	const char *answer;
	int port;
	int64_t *sent; /* shared: bytes that left the server */
	pid_t pid;
};
static struct server *now;

static void serve(void *argument)
{
	struct server *server = argument;
	char bytes[4096];
	(void)signal(SIGPIPE, SIG_IGN);
	int fd = listen_on(AF_INET, "127.0.0.1", &server->port, false, false);
	CHILD_CHECK(fd >= 0 && listen(fd, 1024) == 0);
	now = server;
	ready();
	for (;;) {
		int connection = accept(fd, NULL, NULL);
		if (server->treat) {
			server->treat(connection);
			continue;
		}
		(void)!read(connection, bytes, sizeof bytes);
		(void)!write(connection, server->answer, strlen(server->answer));
		(void)close(connection);
	}
}

/* In shared memory, so that the port that the child was given is seen here. */
static struct server *start_server(void (*treat)(int fd), const char *answer)
{
	struct server *server = mmap(NULL, sizeof *server + sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(server != MAP_FAILED);
	*server = (struct server){.treat = treat, .answer = answer, .sent = (int64_t *)(void *)(server + 1)};
	pid_t pid = start_child(serve, server);
	server->pid = pid;
	return server;
}

static void end_server(struct server *server)
{
	end_child(server->pid);
	(void)munmap(server, sizeof *server + sizeof(int64_t));
}

static struct health_question question(enum health_kind kind, bool kirocrew, int port)
{
	struct health_question asked = {.health = {.kind = kind, .path = "/api/health", .kirocrew = kirocrew}, .port = port};
	asked.result.answer = HEALTH_NOT_ASKED;
	return asked;
}

static int64_t ask(struct health_question *questions, size_t count, int64_t ms)
{
	int64_t began = monotonic_ns();
	struct err err = {0};
	assert_int_equal(health_ask(questions, count, deadline_in_ms(ms), &err), 0);
	return (monotonic_ns() - began) / 1000000;
}

static void L31_which_status_is_healthy(void **state)
{
	(void)state;
	const struct {
		const char *answer;
		int status;
		bool kirocrew_healthy, command_healthy;
	} cases[] = {
	    {"HTTP/1.1 200 OK\r\n\r\n", 200, true, true},
	    {"HTTP/1.1 401 No\r\n\r\n", 401, true, false},
	    {"HTTP/1.1 403 No\r\n\r\n", 403, true, false},
	    {"HTTP/1.1 503 Busy\r\n\r\n", 503, false, false},
	    {"HTTP/1.1 302 Found\r\n\r\n", 302, false, true},
	    {"HTTP/1.0 204 None\r\n\r\n", 204, false, true},
	    {"HTTP/1.1 404 Not Found\r\n\r\n", 404, false, false},
	    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200, true, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct server *server = start_server(NULL, cases[i].answer);
		struct health_question both[] = {question(HEALTH_HTTP, true, server->port), question(HEALTH_HTTP, false, server->port)};
		assert_true(ask(both, 2, 5000) < 4000);
		assert_int_equal(both[0].result.answer, cases[i].kirocrew_healthy ? HEALTH_OK : HEALTH_BAD_STATUS);
		assert_int_equal(both[1].result.answer, cases[i].command_healthy ? HEALTH_OK : HEALTH_BAD_STATUS);
		assert_int_equal(both[0].result.http_status, cases[i].status);
		assert_int_equal(both[1].result.http_status, cases[i].status);
		end_server(server);
	}
}

static void silence(int fd)
{
	(void)fd; /* kept open */
}

static void X35_accepts_and_never_answers(void **state)
{
	(void)state;
	struct server *server = start_server(silence, NULL);
	struct health_question asked = question(HEALTH_HTTP, true, server->port), tcp = question(HEALTH_TCP, false, server->port);
	int64_t ms = ask(&asked, 1, 300);
	assert_true(ms >= 290 && ms < 2000);
	assert_int_equal(asked.result.answer, HEALTH_NO_ANSWER);
	assert_true(ask(&tcp, 1, 5000) < 4000);
	assert_int_equal(tcp.result.answer, HEALTH_OK);
	end_server(server);
}

static void drip(int fd)
{
	const char *answer = "HTTP/1.1 200 OK\r\n\r\n";
	for (const char *c = answer; *c && write(fd, c, 1) == 1; c++)
		nap_ms(5000);
}

static void X35_a_byte_in_five_seconds(void **state)
{
	(void)state;
	struct server *server = start_server(drip, NULL);
	struct health_question asked = question(HEALTH_HTTP, true, server->port);
	int64_t ms = ask(&asked, 1, 400);
	assert_true(ms >= 390 && ms < 2000);
	assert_int_equal(asked.result.answer, HEALTH_NO_ANSWER);
	assert_int_equal(asked.result.http_status, 0);
	end_server(server);
}

static void flood(int fd, const char *first, const char *again)
{
	(void)!write(fd, first, strlen(first));
	for (ssize_t n = 0; n >= 0;) {
		n = write(fd, again, strlen(again));
		if (n > 0)
			*now->sent += n;
	}
	(void)close(fd);
}
static void endless_body(int fd)
{
	char block[8192];
	memset(block, 'x', sizeof block - 1);
	block[sizeof block - 1] = '\0';
	flood(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4294967296\r\n\r\n", block);
}
static void endless_header(int fd)
{
	flood(fd, "HTTP/1.1 100 Continue\r\n",
	      "X-More: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n");
}
static void endless_continue(int fd)
{
	flood(fd, "", "HTTP/1.1 100 Continue\r\n\r\n");
}

static void X35_four_gigabytes(void **state)
{
	(void)state;
	const struct {
		void (*treat)(int fd);
		enum health_answer answer;
	} cases[] = {{endless_body, HEALTH_OK}, {endless_header, HEALTH_GARBAGE}, {endless_continue, HEALTH_GARBAGE}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct server *server = start_server(cases[i].treat, NULL);
		struct health_question asked = question(HEALTH_HTTP, true, server->port);
		assert_true(ask(&asked, 1, 60000) < 30000); /* not at the deadline */
		assert_int_equal(asked.result.answer, cases[i].answer);
		int64_t sent = -1; /* what socket buffers took; far below what was offered */
		for (int tries = 0; *server->sent != sent && tries < 200; tries++) {
			sent = *server->sent;
			nap_ms(50);
		}
		assert_true(*server->sent == sent);
		assert_true(sent < 64 << 20);
		end_server(server);
	}
}

static void X35_garbage_is_told_at_once(void **state)
{
	(void)state;
	const char *answers[] = {
	    "SSH-2.0-OpenSSH_9.2\r\n", "\n", "HTTP/2 200\r\n", "HTTP/1.1 99 Low\r\n", "<html>", "HTTP/1.1 2", "\377\376\375"};
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct server *server = start_server(NULL, answers[i]);
		struct health_question asked = question(HEALTH_HTTP, true, server->port);
		assert_true(ask(&asked, 1, 60000) < 30000); /* not at the deadline */
		assert_int_equal(asked.result.answer, HEALTH_GARBAGE);
		end_server(server);
	}
}

static void garbage_then_silence(int fd)
{
	(void)!write(fd, "garbage", 7);
}
static void reset(int fd)
{
	const struct linger hard = {.l_onoff = 1, .l_linger = 0};
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	(void)close(fd);
}
static void close_at_once(int fd)
{
	(void)close(fd);
}

static void X35_reset_and_early_ends(void **state)
{
	(void)state;
	const struct {
		void (*treat)(int fd);
		enum health_answer answer;
	} cases[] = {{reset, HEALTH_NO_ANSWER}, {close_at_once, HEALTH_NO_ANSWER}, {garbage_then_silence, HEALTH_GARBAGE}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct server *server = start_server(cases[i].treat, NULL);
		struct health_question asked = question(HEALTH_HTTP, true, server->port);
		assert_true(ask(&asked, 1, 60000) < 30000); /* not at the deadline */
		assert_int_equal(asked.result.answer, cases[i].answer);
		end_server(server);
	}
}

static void L33_nobody_listens(void **state)
{
	(void)state;
	int port = 0;
	int fd = listen_on(AF_INET, "127.0.0.1", &port, false, false);
	close_quietly(fd);
	struct health_question asked[] = {question(HEALTH_HTTP, true, port), question(HEALTH_TCP, false, port),
					  question(HEALTH_NONE, false, port)};
	assert_true(ask(asked, 3, 10000) < 5000);
	assert_int_equal(asked[0].result.answer, HEALTH_REFUSED_CONNECTION);
	assert_int_equal(asked[1].result.answer, HEALTH_REFUSED_CONNECTION);
	assert_int_equal(asked[2].result.answer, HEALTH_NOT_ASKED);
	assert_int_equal(health_ask(NULL, 0, deadline_in_ms(10), NULL), 0);
}

static void only_loopback_is_asked(void **state)
{
	(void)state;
	int port = 0;
	AUTO_CLOSE int fd = listen_on(AF_INET, "127.0.0.2", &port, false, false);
	assert_true(fd >= 0);
	struct health_question asked = question(HEALTH_TCP, false, port);
	(void)ask(&asked, 1, 1000);
	assert_int_equal(asked.result.answer, HEALTH_REFUSED_CONNECTION);
}

static void a_path_that_cannot_be_asked_for(void **state)
{
	(void)state;
	struct server *server = start_server(NULL, "HTTP/1.1 200 OK\r\n\r\n");
	struct health_question asked[] = {question(HEALTH_HTTP, true, server->port), question(HEALTH_HTTP, true, server->port)};
	(void)snprintf(asked[0].health.path, sizeof asked[0].health.path, "/a\r\nX: y");
	assert_true(ask(asked, 2, 5000) < 4000);
	assert_int_equal(asked[0].result.answer, HEALTH_NO_ANSWER);
	assert_int_equal(asked[1].result.answer, HEALTH_OK);
	end_server(server);
}

static void few_descriptors(void *argument)
{
	const int *port = argument;
	enum { MANY = 200 };
	struct health_question *asked = calloc(MANY, sizeof *asked);
	struct rlimit limit = {24, 24};
	CHILD_CHECK(asked && setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < MANY; i++)
		asked[i] = question(HEALTH_HTTP, true, *port);
	CHILD_CHECK(health_ask(asked, MANY, deadline_in_ms(20000), NULL) == 0);
	for (int i = 0; i < MANY; i++)
		CHILD_CHECK(asked[i].result.answer == HEALTH_OK);
	free(asked);
}

static void many_pods_and_few_descriptors(void **state)
{
	(void)state;
	struct server *server = start_server(NULL, "HTTP/1.1 200 OK\r\n\r\n");
	assert_int_equal(run_child(few_descriptors, &server->port), 0);
	end_server(server);
}

static void silent_and_quick_ones_together(void **state)
{
	(void)state;
	struct server *silent = start_server(silence, NULL), *quick = start_server(NULL, "HTTP/1.1 200 OK\r\n\r\n");
	enum { PAIRS = 150 };
	struct health_question *asked = calloc(2 * PAIRS, sizeof *asked);
	for (int i = 0; i < PAIRS; i++) {
		asked[2 * i] = question(HEALTH_HTTP, true, silent->port);
		asked[2 * i + 1] = question(HEALTH_HTTP, true, quick->port);
	}
	int64_t ms = ask(asked, 2 * PAIRS, 3000);
	assert_true(ms >= 2990 && ms < 6000);
	for (int i = 0; i < PAIRS; i++) {
		assert_int_equal(asked[2 * i].result.answer, HEALTH_NO_ANSWER);
		assert_int_equal(asked[2 * i + 1].result.answer, HEALTH_OK);
	}
	free(asked);
	end_server(silent);
	end_server(quick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(L31_which_status_is_healthy),
	    cmocka_unit_test(X35_accepts_and_never_answers),
	    cmocka_unit_test(X35_a_byte_in_five_seconds),
	    cmocka_unit_test(X35_four_gigabytes),
	    cmocka_unit_test(X35_garbage_is_told_at_once),
	    cmocka_unit_test(X35_reset_and_early_ends),
	    cmocka_unit_test(L33_nobody_listens),
	    cmocka_unit_test(only_loopback_is_asked),
	    cmocka_unit_test(a_path_that_cannot_be_asked_for),
	    cmocka_unit_test(many_pods_and_few_descriptors),
	    cmocka_unit_test(silent_and_quick_ones_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
