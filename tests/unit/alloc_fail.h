/* Every allocation fails, once and from then on. Programs named test_*_memory.c are linked with malloc and its kin wrapped (tests/CMakeLists.txt);
 * including this file in one of them defines the wrappers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

static struct {
	long left;    /* allocations that succeed before one fails; negative: all do */
	bool for_ever;
	bool failed;
} alloc_plan = {.left = -1};

static bool alloc_fails(void)
{
	if (alloc_plan.left < 0)
		return false;
	if (alloc_plan.left) {
		alloc_plan.left--;
		return false;
	}
	if (!alloc_plan.for_ever)
		alloc_plan.left = -1;
	return alloc_plan.failed = true;
}

void *__wrap_malloc(size_t size)
{
	return alloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return alloc_fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strndup(const char *text, size_t n)
{
	size_t len = strnlen(text, n);
	char *copy = __wrap_malloc(len + 1);
	if (copy) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	return copy;
}

char *__wrap_strdup(const char *text)
{
	return __wrap_strndup(text, strlen(text));
}

/* Runs `step` with the first, second, … allocation failing until it succeeds untouched; returns how many runs failed. `step` returns 0 on success,
 * -ENOMEM for what it must say, anything else being a fault that ends the walk with -1. */
static long alloc_walk(int (*step)(void *context), void *context, int no_memory)
{
	for (int for_ever = 0; for_ever < 2; for_ever++)
		for (long n = 0;; n++) {
			alloc_plan.left = n;
			alloc_plan.for_ever = for_ever;
			alloc_plan.failed = false;
			int r = step(context);
			bool failed = alloc_plan.failed;
			alloc_plan.left = -1;
			if ((r != 0 && r != no_memory) || failed != (r != 0)) {
				(void)fprintf(stderr, "allocation %ld failed %s: the call returned %d\n", n, for_ever ? "and all that follow" : "once", r);
				return -1;
			}
			if (!failed) {
				if (for_ever)
					return n;
				break;
			}
		}
	return -1;
}
