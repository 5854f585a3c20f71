/* fake_agent MODE [WORD]: an agent of the Agent Client Protocol that is well or ill in one way. */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char answer[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{},\"authMethods\":[]}}\n";

static void say(const char *text)
{
	(void)fputs(text, stdout);
	(void)fflush(stdout);
}
static void wait_for_initialize(void)
{
	char line[4096];
	if (!fgets(line, sizeof line, stdin) || !strstr(line, "\"initialize\"") || !strstr(line, "\"protocolVersion\":1"))
		exit(99);
}
static void stay(void)
{
	for (;;)
		(void)sleep(60);
}
static void ms(long n)
{
	struct timespec pause = {.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000};
	(void)nanosleep(&pause, NULL);
}
static void daemonize(const char *pid_file)
{
	if (fork() == 0) {
		(void)setsid();
		(void)signal(SIGTERM, SIG_IGN);
		FILE *f = fopen(pid_file, "w"); /* held open: the test sees when nobody holds it any more */
		if (f) {
			(void)fprintf(f, "x\n");
			(void)fflush(f);
		}
		stay();
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *word = argc > 2 ? argv[2] : "";
	if (!strcmp(mode, "exit")) {
		(void)fprintf(stderr, "%s\n", argc > 3 ? argv[3] : "");
		return atoi(word);
	}
	if (!strcmp(mode, "signal")) {
		(void)fprintf(stderr, "about to die\n");
		(void)raise(atoi(word));
	}
	if (!strcmp(mode, "closes-stdin")) {
		(void)close(0);
		ms(50);
		say(answer);
		stay();
	}
	wait_for_initialize();
	if (!strcmp(mode, "at-once"))
		say(answer);
	else if (!strcmp(mode, "slow")) {
		ms(atol(word));
		say(answer);
	} else if (!strcmp(mode, "flood")) {
		char block[4096];
		memset(block, 'e', sizeof block);
		for (int i = 0; i < 2048; i++)
			if (fwrite(block, 1, sizeof block, stderr) != sizeof block)
				return 98;
		say(answer);
		for (;;)
			(void)fwrite(block, 1, sizeof block, stderr);
	} else if (!strcmp(mode, "daemon")) {
		daemonize(word);
		ms(100);
		say(answer);
	} else if (!strcmp(mode, "garbage")) {
		say("hello\n\n{}\n[1\n\xff\xfe\n{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n");
		char line[4096];
		if (!fgets(line, sizeof line, stdin) || strcmp(line, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n"))
			return 97;
		say(answer);
	} else if (!strcmp(mode, "wrong-id")) {
		say("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"protocolVersion\":1}}\n{\"jsonrpc\":\"2.0\",\"id\":\"0\",\"result\":{\"protocolVersion\":1}}\n");
	} else if (!strcmp(mode, "invalid")) {
		say("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n");
	} else if (!strcmp(mode, "error")) {
		say("{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32000,\"message\":\"no\\u001b[2J\"}}\n");
	} else if (!strcmp(mode, "closes-stdout")) {
		(void)close(1);
	} else if (!strcmp(mode, "answers-and-exits")) {
		say(answer);
		return 1;
	} else if (!strcmp(mode, "stdout-login")) {
		say("You are not logged in\n");
		return 1;
	} else if (!strcmp(mode, "argv0")) {
		/* A program of many names: finds its sibling by the name it was called by. */
		char own[4096], sibling[4200];
		struct stat st;
		(void)snprintf(own, sizeof own, "%s", argv[0]);
		(void)snprintf(sibling, sizeof sibling, "%s/sibling", dirname(own));
		if (strcmp(basename(argv[0]), word) || stat(sibling, &st) < 0)
			return 96;
		say(answer);
	} else if (!strcmp(mode, "writes-run")) {
		int fd = open(word, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			return 95;
		say(answer);
	} else if (strcmp(mode, "never")) {
		return 2;
	}
	stay();
	return 0;
}
