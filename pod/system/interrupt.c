#include "pod/system/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define ENDS (sizeof ends / sizeof *ends)

static volatile sig_atomic_t noted;

static int give_way(int number, void (*from)(int), const struct sigaction *to)
{
	struct sigaction now;
	if (sigaction(number, NULL, &now) < 0)
		return -errno;
	return now.sa_handler == from && sigaction(number, to, NULL) < 0 ? -errno : 0;
}

static void note(int number)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	noted = number;
	for (size_t i = 0; i < ENDS; i++)
		(void)give_way(ends[i], note, &usual);
}

int interrupt_hold(struct err *err)
{
	struct sigaction only_note = {.sa_handler = note, .sa_flags = SA_RESTART};
	int r = 0;
	for (size_t i = 0; i < ENDS; i++)
		(void)sigaddset(&only_note.sa_mask, ends[i]);
	for (size_t i = 0; r == 0 && !noted && i < ENDS; i++)
		r = give_way(ends[i], SIG_DFL, &only_note);
	return r < 0 ? err_code(err, r, "signals", NULL) : 0;
}

int interrupt_noted(void)
{
	return noted;
}

void interrupt_obey(void)
{
	if (noted)
		(void)raise(noted);
}
