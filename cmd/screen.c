#include "cmd/screen.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/print.h"

#define ELLIPSIS "…"

static const char *const tones[] = {[TONE_PLAIN] = "", [TONE_GOOD] = "\033[32m", [TONE_BUSY] = "\033[33m", [TONE_BAD] = "\033[31m"};

static bool said(const char *variable)
{
	const char *value = getenv(variable);
	return value && *value;
}

struct screen screen_look(void)
{
	struct screen screen = {.terminal = isatty(STDOUT_FILENO)};
	struct winsize size = {0};
	const char *term = getenv("TERM");
	if (!screen.terminal)
		return screen;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
	screen.width = known ? size.ws_col : 80;
	screen.height = known ? size.ws_row : 24;
	screen.colour = !said("NO_COLOR") && term && *term && strcmp(term, "dumb") != 0;
	return screen;
}

/* Blanks are only printed before something else, so that no line ends with them. */
static size_t print_cell(size_t blanks, const char *text, size_t width, bool right, const char *tone)
{
	size_t columns = text_width(text);
	bool cut = columns > width; /* only the last one is ever narrower than its text */
	size_t bytes = cut ? text_fit(text, width - 1) : strlen(text), pad = cut ? 0 : width - columns;
	if (!*text)
		return blanks + pad;
	print_blanks(blanks + (right ? pad : 0));
	if (*tone)
		print_out("%s", tone);
	print_escaped(text, bytes);
	if (cut || *tone)
		print_out("%s%s", cut ? ELLIPSIS : "", *tone ? "\033[m" : "");
	return right ? 0 : pad;
}

static void print_row(const struct table *table, const size_t *widths, char *const *cells, const char *tone)
{
	size_t blanks = 0;
	for (size_t c = 0; c < table->n; c++)
		if (widths[c]) {
			const struct table_column *column = &table->columns[c];
			blanks = print_cell(blanks, cells[c], widths[c], column->right, column->toned ? tone : "") + TABLE_GAP;
		}
	print_escaped("\n", 1);
}

void table_print(const struct table *table, const struct screen *screen, bool cut, size_t rows)
{
	size_t widths[TABLE_COLUMNS_MAX];
	char *headings[TABLE_COLUMNS_MAX];
	table_widths(table, cut ? screen->width : 0, widths);
	for (size_t c = 0; c < table->n; c++)
		headings[c] = (char *)(uintptr_t)table->columns[c].heading;
	print_row(table, widths, headings, "");
	for (size_t r = 0; r < table->count && (!rows || r < rows); r++)
		print_row(table, widths, table->rows[r].cells, screen->colour ? tones[table->rows[r].tone] : "");
}
