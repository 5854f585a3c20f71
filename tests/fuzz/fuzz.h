/* What every fuzz target is: one input, and invariants that end the program when they do not hold. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(3), which a release build leaves out. */
#define MUST(condition)                                                                          \
	do {                                                                                     \
		if (!(condition)) {                                                              \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                 \
		}                                                                                \
	} while (0)

/* The input as a C string, cut at its first NUL; owned. */
static inline char *fuzz_string(const uint8_t *data, size_t size)
{
	char *text = size ? strndup((const char *)data, size) : strdup("");
	MUST(text);
	return text;
}
