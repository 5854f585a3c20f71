/* Characters and numbers that mean the same in every locale: ASCII only, never ctype(3) or strtol(3). Internal to pod/model. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ascii_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool ascii_alnum(char c) { return ascii_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
static inline bool ascii_blank(char c) { return c == ' ' || c == '\t'; }

/* [A-Za-z0-9][A-Za-z0-9._-]*, 1 to max bytes. */
bool ascii_name(const char *bytes, size_t len, size_t max);
/* Decimal digits without sign, blank or leading zero, at most max; false for anything else. */
bool ascii_decimal(const char *text, uint64_t max, uint64_t *ret_value);
/* One of the words of a NULL-terminated list, exactly. */
bool ascii_one_of(const char *text, const char *const *list);
