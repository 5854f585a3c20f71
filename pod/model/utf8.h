/* UTF-8 as RFC 3629 has it: no overlong form, no surrogate, nothing above U+10FFFF. Internal to pod/model. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at `bytes` (1..4), 0 if there is none; len must not be 0. */
size_t utf8_next(const char *bytes, size_t len, uint32_t *ret_code_point);
/* Would it move the cursor, end the line or turn the text round? C0, DEL, C1, U+2028, U+2029, bidi controls. */
bool utf8_hostile(uint32_t code_point);
