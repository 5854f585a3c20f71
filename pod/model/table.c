#include "pod/model/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pod/model/text.h"

#define CELL_BYTES_MAX 8192
#define LAST_LEAST 12 /* the last column is not made narrower to save another */

struct cell {
	size_t len, escaped; /* the same: nothing in it needs an escape */
};

static struct cell measure(const char *text)
{
	char safe[CELL_BYTES_MAX];
	size_t len = strlen(text);
	bool plain = len < sizeof safe && text_plain_run(text, len) == len;
	return (struct cell){len, plain ? len : text_escape(text, len, safe, sizeof safe)};
}

static int row_fill(struct table_row *row, const char *const *texts, size_t n)
{
	struct cell cells[TABLE_COLUMNS_MAX];
	size_t total = 0;
	for (size_t i = 0; i < n; i++)
		total += (cells[i] = measure(texts[i])).escaped + 1;
	char *at = malloc(total);
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < n; at += cells[i++].escaped + 1) {
		row->cells[i] = at;
		(void)text_escape(texts[i], cells[i].len, at, cells[i].escaped + 1);
	}
	return 0;
}

/* Room for one more row, growing by doubling. */
static int make_room(struct table *table)
{
	if (table->count & (table->count - 1))
		return 0;
	struct table_row *grown = realloc(table->rows, (table->count ? table->count * 2 : 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	table->rows = grown;
	return 0;
}

int table_add(struct table *table, const char *const *texts, enum tone tone)
{
	struct table_row row = {.tone = tone};
	int r = make_room(table);
	if (r == 0)
		r = row_fill(&row, texts, table->n);
	if (r == 0)
		table->rows[table->count++] = row;
	return r;
}

void table_free(struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->rows[i].cells[0]);
	free(table->rows);
	table->rows = NULL;
	table->count = 0;
}

/* Of the code point that begins here: its bytes, and the columns it takes. Hangul, CJK, full-width forms and what lies beyond may be wide. */
static size_t code_point(const char *at, size_t *ret_columns)
{
	unsigned char lead = (unsigned char)*at;
	size_t bytes = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < bytes; i++)
		if (!at[i])
			bytes = i;
	*ret_columns = lead > 0xe1 || (lead == 0xe1 && (unsigned char)at[1] >= 0x84) ? 2 : 1;
	return bytes;
}

size_t text_fit(const char *text, size_t room)
{
	size_t at = 0, used = 0, columns;
	while (text[at]) {
		size_t bytes = code_point(text + at, &columns);
		if (used + columns > room)
			break;
		used += columns;
		at += bytes;
	}
	return at;
}

size_t text_width(const char *text)
{
	size_t used = 0, columns;
	for (size_t at = 0; text[at]; used += columns)
		at += code_point(text + at, &columns);
	return used;
}

static void natural_widths(const struct table *table, size_t widths[TABLE_COLUMNS_MAX])
{
	for (size_t c = 0; c < table->n; c++) {
		size_t widest = 0;
		for (size_t r = 0; r < table->count; r++) {
			size_t width = text_width(table->rows[r].cells[c]);
			widest = width > widest ? width : widest;
		}
		size_t heading = strlen(table->columns[c].heading);
		widths[c] = widest && widest < heading ? heading : widest;
	}
}

static size_t line_width(const struct table *table, const size_t widths[TABLE_COLUMNS_MAX])
{
	size_t total = 0;
	for (size_t c = 0; c + 1 < table->n; c++)
		total += widths[c] ? widths[c] + TABLE_GAP : 0;
	return total;
}

static bool leave_one_out(const struct table *table, size_t widths[TABLE_COLUMNS_MAX])
{
	size_t chosen = 0;
	for (size_t c = 1; c + 1 < table->n; c++)
		if (widths[c] && table->columns[c].rank > (widths[chosen] && chosen ? table->columns[chosen].rank : 0))
			chosen = c;
	if (chosen)
		widths[chosen] = 0;
	return chosen != 0;
}

void table_widths(const struct table *table, size_t room, size_t ret_widths[TABLE_COLUMNS_MAX])
{
	size_t last = table->n - 1;
	natural_widths(table, ret_widths);
	if (!room)
		return;
	size_t least = ret_widths[last] < LAST_LEAST ? ret_widths[last] : LAST_LEAST;
	while (line_width(table, ret_widths) + least > room && leave_one_out(table, ret_widths))
		;
	size_t used = line_width(table, ret_widths);
	size_t left = used < room ? room - used : 0;
	if (ret_widths[last] > left)
		ret_widths[last] = left;
}
