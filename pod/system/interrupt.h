/* Signals that ask for the end while something is half made: the first is only noted, so that it can be taken back; the second ends this process at
 * once. sigaction(2). */
#pragma once

#include "fsops/err.h"

int interrupt_hold(struct err *err); /* from now on, for INT, TERM, HUP and QUIT; what the caller left ignored stays so */
int interrupt_noted(void);           /* the number of the one that came, else 0 */
void interrupt_obey(void);           /* at the very end: one that was noted ends this process after all, as whoever waits for it expects */
