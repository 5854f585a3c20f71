/* For coverage.sh: what is passed through by processes that end without a word, and what is not. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int choose(int number)
{
	if (number > 100) /* never */
		return 1;
	if (number == 1) /* by one that exits at once */
		return 2;
	return number == 2 ? 3 : 4; /* by one that is killed; by one that becomes another program */
}

static void in_child(int number)
{
	pid_t child = fork();
	if (child > 0) {
		(void)waitpid(child, (int *)0, 0);
		return;
	}
	(void)choose(number);
	if (number == 2)
		(void)kill(getpid(), SIGKILL);
	if (number == 3)
		(void)execl("/bin/true", "true", (char *)0);
	_exit(0);
}

int main(void)
{
	for (int number = 1; number <= 3; number++)
		in_child(number);
	return 0;
}
