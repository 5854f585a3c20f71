/* exchanger A B…: exchanges the two names of each pair without end (RENAME_EXCHANGE), as fast as it can; a pair that is not there is passed over.
 * Writes "racing\n" when it begins, and how often it has exchanged when SIGTERM ends it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t over;

static void end(int signal)
{
	(void)signal;
	over = 1;
}

int main(int argc, char **argv)
{
	unsigned long exchanged = 0;
	if (argc < 3 || argc % 2 == 0)
		return 64;
	(void)signal(SIGTERM, end);
	if (puts("racing") < 0 || fflush(stdout) != 0)
		return 65;
	while (!over)
		for (int i = 1; i < argc; i += 2)
			exchanged += renameat2(AT_FDCWD, argv[i], AT_FDCWD, argv[i + 1], RENAME_EXCHANGE) == 0;
	return printf("%lu\n", exchanged) < 0;
}
