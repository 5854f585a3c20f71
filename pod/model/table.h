/* Rows of cells for people: each column as wide as it must be, the last one cut to what room there is, and others left out where there is too little. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TABLE_COLUMNS_MAX 16

struct table_column {
	const char *heading;
	bool right; /* flush right */
	bool toned; /* shows the row's tone */
	int rank;   /* where there is no room, the highest goes first; 0 stays */
};
enum tone { TONE_PLAIN, TONE_GOOD, TONE_BUSY, TONE_BAD };
struct table {
	const struct table_column *columns;
	size_t n; /* columns */
	struct table_row {
		char *cells[TABLE_COLUMNS_MAX]; /* escaped; one block, owned, that begins with the first */
		enum tone tone;
	} *rows;
	size_t count;
};
/* Copies n texts, raw bytes, escaped. -ENOMEM. */
int table_add(struct table *table, const char *const *texts, enum tone tone);
void table_free(struct table *table);
#define AUTO_TABLE __attribute__((cleanup(table_free)))

#define TABLE_GAP 2 /* blanks between columns */
/* In terminal columns, for a line of at most `room` (0: as long as it gets). 0: the column is left out; one without any text in it always is. */
void table_widths(const struct table *table, size_t room, size_t ret_widths[TABLE_COLUMNS_MAX]);

/* Terminal columns that escaped text takes; a code point that may be wide counts as wide. */
size_t text_width(const char *text);
/* Bytes of it that fit into `room` columns, whole code points. */
size_t text_fit(const char *text, size_t room);
