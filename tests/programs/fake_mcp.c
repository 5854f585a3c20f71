/* fake_mcp MODE [WORD]: an MCP server on its standard streams that is well or ill in one way. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char line[65536];

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	(void)fflush(stdout);
}
static void ask(void)
{
	if (!fgets(line, sizeof line, stdin))
		exit(0);
}
static int is(const char *method)
{
	char quoted[128];
	(void)snprintf(quoted, sizeof quoted, "\"method\":\"%s\"", method);
	return strstr(line, quoted) != NULL;
}
static int id(void)
{
	const char *key = strstr(line, "\"id\":");
	return key ? atoi(key + 5) : -1;
}
static void expect(const char *method)
{
	ask();
	if (!is(method)) {
		(void)fprintf(stderr, "expected %s, got %s", method, line);
		exit(90);
	}
}
static void initialize(const char *protocol)
{
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"fake\",\"version\":\"1\"}}}\n", id(), protocol);
}
static void tools(const char *names, const char *more)
{
	say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"tools\":[%s]%s}}\n", id(), names, more);
}
static void stay(void)
{
	for (;;)
		(void)sleep(60);
}
static void endless(FILE *to, const char *piece)
{
	for (;;)
		if (fputs(piece, to) < 0)
			exit(91);
}

static const char *try_write(const char *directory)
{
	char path[4096];
	(void)snprintf(path, sizeof path, "%s/written", directory ? directory : "/nonexistent");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EROFS ? "EROFS" : strerror(errno);
	(void)close(fd);
	(void)unlink(path);
	return "ok";
}
static void facts(const char *run)
{
	const char *tmpdir = getenv("TMPDIR"), *tmp = getenv("TMP"), *temp = getenv("TEMP"), *lower = getenv("tmpdir");
	struct stat st;
	char out[32768];
	(void)snprintf(out, sizeof out, "{\"name\":\"TMPDIR=%s\"},{\"name\":\"TMP=%s\"},{\"name\":\"TEMP=%s\"},{\"name\":\"tmpdir=%s\"},{\"name\":\"directory=%s\"},{\"name\":\"write=%s\"},{\"name\":\"run=%s\"}",
		       tmpdir ? tmpdir : "", tmp ? tmp : "", temp ? temp : "", lower ? lower : "", tmpdir && stat(tmpdir, &st) == 0 && S_ISDIR(st.st_mode) ? "yes" : "no", try_write(tmpdir),
		       try_write(run));
	tools(out, "");
}
static void use_temp(void)
{
	char path[4096], *block = malloc(1 << 20);
	(void)snprintf(path, sizeof path, "%s/big", getenv("TMPDIR") ? getenv("TMPDIR") : "/nonexistent");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	memset(block, 0xc3, 1 << 20); /* "ret" */
	for (int i = 0; i < 5; i++)
		if (fd < 0 || write(fd, block, 1 << 20) != 1 << 20)
			exit(92);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (code == MAP_FAILED)
		exit(93);
	void (*call)(void);
	memcpy(&call, &code, sizeof call);
	call();
	free(block);
}
static void ordinary(const char *names)
{
	expect("notifications/initialized");
	expect("tools/list");
	tools(names, "");
}
static void pages(void)
{
	expect("notifications/initialized");
	expect("tools/list");
	tools("{\"name\":\"a\"}", ",\"nextCursor\":\"two\"");
	expect("tools/list");
	if (!strstr(line, "\"cursor\":\"two\""))
		exit(94);
	tools("{\"name\":\"b\"}", ",\"nextCursor\":\"three\"");
	expect("tools/list");
	tools("{\"name\":\"c\"}", "");
}
static void noise(void)
{
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n");
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n");
	say("{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n");
	say("{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"roots/list\"}\n");
	say("{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{\"protocolVersion\":\"1\"}}\n");
	say("{\"jsonrpc\":\"2.0\",\"id\":\"%d\",\"result\":{\"protocolVersion\":\"1\"}}\n", id());
	char first[sizeof line];
	memcpy(first, line, sizeof line);
	ask();
	if (strcmp(line, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}\n"))
		exit(95);
	ask();
	if (!strstr(line, "\"id\":77") || !strstr(line, "-32601"))
		exit(96);
	memcpy(line, first, sizeof line);
}

static volatile sig_atomic_t told;
static void on_term(int signal)
{
	told = signal;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *word = argc > 2 ? argv[2] : "";
	if (!strcmp(mode, "echo")) { /* bytes as they come, then a status */
		int c;
		while ((c = getchar()) != EOF)
			(void)putchar(c);
		return atoi(word);
	}
	if (!strcmp(mode, "environ")) {
		extern char **environ;
		for (char **entry = environ; *entry; entry++)
			(void)printf("%s%c", *entry, 0);
		return 0;
	}
	if (!strcmp(mode, "term")) {
		struct sigaction action = {.sa_handler = on_term};
		(void)sigaction(SIGTERM, &action, NULL);
		say("ready\n");
		while (!told)
			(void)usleep(20000);
		return 42;
	}
	if (!strcmp(mode, "endless"))
		endless(stdout, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	expect("initialize");
	if (!strcmp(mode, "exit"))
		return atoi(word);
	if (!strcmp(mode, "closes")) {
		(void)close(1);
		stay();
	}
	if (!strcmp(mode, "never"))
		stay();
	if (!strcmp(mode, "error")) {
		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":-32000,\"message\":\"broken\"}}\n", id());
		stay();
	}
	if (!strcmp(mode, "junk"))
		say("first \x1b[1mline\nsecond\nthird\n\n\xef\xbb\xbf\n{}\n[1\nnull\n");
	if (!strcmp(mode, "bytes"))
		say("\xff\xfe\n\xc0\xaf\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\\ud800\"}\n");
	if (!strcmp(mode, "stderr"))
		for (int i = 0; i < 1 << 20; i += 64)
			(void)fputs("eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", stderr);
	if (!strcmp(mode, "stderr") && fork() == 0)
		endless(stderr, "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
	if (!strcmp(mode, "noise"))
		noise();
	if (!strcmp(mode, "temp"))
		use_temp();
	initialize(!strcmp(mode, "protocol") ? word : "2025-11-25");
	if (!strcmp(mode, "then-endless")) {
		ordinary("{\"name\":\"a\"}");
		endless(stdout, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	}
	if (!strcmp(mode, "endless-after-first"))
		endless(stdout, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	if (!strcmp(mode, "pages"))
		pages();
	else if (!strcmp(mode, "repeats")) {
		expect("notifications/initialized");
		for (;;) {
			expect("tools/list");
			tools("{\"name\":\"a\"}", ",\"nextCursor\":\"same\"");
		}
	} else if (!strcmp(mode, "grows")) {
		expect("notifications/initialized");
		for (int i = 0;; i++) {
			char more[64];
			expect("tools/list");
			(void)snprintf(more, sizeof more, ",\"nextCursor\":\"%d\"", i);
			tools("{\"name\":\"a\"}", more);
		}
	} else if (!strcmp(mode, "no-tools")) {
		expect("notifications/initialized");
		expect("tools/list");
		say("{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n", id());
	} else if (!strcmp(mode, "facts")) {
		expect("notifications/initialized");
		expect("tools/list");
		facts(word);
	} else {
		ordinary("{\"name\":\"a\"}");
	}
	stay();
	return 0;
}
