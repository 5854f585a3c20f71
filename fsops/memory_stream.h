/* The end of a stream that writes into memory (open_memstream(3)). */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Closes it; false: something of it was lost. fclose(3) succeeds, too, where the text could not be had any more (glibc): then `*text` is NULL. */
bool memory_stream_end(FILE *stream, char *const *text);
