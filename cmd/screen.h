/* What output goes to, and tables on it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "pod/model/table.h"

struct screen {
	bool terminal, colour;
	size_t width, height; /* 0: no limit */
};
/* Of standard output. Colour only on a terminal that is not dumb, and not with NO_COLOR. */
struct screen screen_look(void);

/* Heading and rows, at most `rows` of them (0: all); the last column is cut where `cut` says so and the screen ends. */
void table_print(const struct table *table, const struct screen *screen, bool cut, size_t rows);
