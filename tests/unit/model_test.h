/* What the tests of pod/model share. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "fsops/err.h"
#include "pod/model/refusal.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The call was refused, for this reason, and the message names `needle` (in subject or text). */
static inline void assert_refused(int r, const struct err *err, enum refusal refusal, const char *needle)
{
	if (r != -EPERM || err->refusal != (int)refusal)
		fail_msg("expected refusal %d, got %d (refusal %d, %s: %s)", (int)refusal, r, err->refusal, err->subject, err->text);
	if (needle && !strstr(err->text, needle) && !strstr(err->subject, needle))
		fail_msg("expected \"%s\" in \"%s: %s\"", needle, err->subject, err->text);
}

static inline void assert_done(int r, const struct err *err)
{
	if (r != 0)
		fail_msg("expected success, got %d (%s: %s)", r, err->subject, err->text);
}
