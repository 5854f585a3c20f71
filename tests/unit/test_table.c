#include "model_test.h"

#include "pod/model/table.h"

static const struct table_column columns[] = {
    {.heading = "NAME"}, {.heading = "N", .right = true, .rank = 1}, {.heading = "PID", .right = true, .rank = 2}, {.heading = "WHY"},
};

static struct table table_of(const char *const rows[][4], size_t count)
{
	struct table table = {.columns = columns, .n = COUNT(columns)};
	for (size_t i = 0; i < count; i++)
		assert_int_equal(table_add(&table, rows[i], TONE_PLAIN), 0);
	return table;
}

static void assert_widths(const struct table *table, size_t room, size_t a, size_t b, size_t c, size_t d)
{
	size_t widths[TABLE_COLUMNS_MAX], expected[] = {a, b, c, d};
	table_widths(table, room, widths);
	for (size_t i = 0; i < COUNT(expected); i++)
		if (widths[i] != expected[i])
			fail_msg("column %zu of a line of %zu: expected %zu, got %zu", i, room, expected[i], widths[i]);
}

static void columns_are_as_wide_as_they_must_be(void **state)
{
	(void)state;
	static const char *const rows[][4] = {{"a", "7", "12345", "because of it, which is long"}, {"bbbbbb", "10", "1", ""}};
	AUTO_TABLE struct table table = table_of(rows, 2);
	assert_widths(&table, 0, 6, 2, 5, 28);
	assert_widths(&table, 47, 6, 2, 5, 28);
	assert_widths(&table, 46, 6, 2, 5, 27);
	assert_widths(&table, 31, 6, 2, 5, 12);
	assert_widths(&table, 30, 6, 2, 0, 18); /* the highest rank goes first */
	assert_widths(&table, 23, 6, 0, 0, 15);
	assert_widths(&table, 9, 6, 0, 0, 1);
	assert_widths(&table, 8, 6, 0, 0, 0);
	assert_widths(&table, 1, 6, 0, 0, 0);
}

static void a_column_without_a_text_is_left_out(void **state)
{
	(void)state;
	static const char *const rows[][4] = {{"a", "", "1", ""}, {"b", "", "2", ""}};
	AUTO_TABLE struct table table = table_of(rows, 2);
	assert_widths(&table, 0, 4, 0, 3, 0);
	assert_widths(&table, 80, 4, 0, 3, 0);
}

static void what_comes_from_outside_is_escaped(void **state)
{
	(void)state;
	static const char *const rows[][4] = {{"a", "1", "2", "\x1b[31m\n\xff"}};
	AUTO_TABLE struct table table = table_of(rows, 1);
	for (const char *at = table.rows[0].cells[3]; *at; at++)
		assert_true(*at >= ' ' && *at < 0x7f);
}

static void width_is_counted_in_columns_and_cut_between_code_points(void **state)
{
	(void)state;
	assert_int_equal(text_width("plain"), 5);
	assert_int_equal(text_width("gr\xc3\xbc\xc3\x9f"), 4);
	assert_int_equal(text_width("\xe6\xbc\xa2\xe5\xad\x97"), 4);
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_fit("gr\xc3\xbc\xc3\x9f", 3), 4);
	assert_int_equal(text_fit("\xe6\xbc\xa2\xe5\xad\x97", 3), 3);
	assert_int_equal(text_fit("\xe6\xbc\xa2\xe5\xad\x97", 1), 0);
	assert_int_equal(text_fit("plain", 0), 0);
	assert_int_equal(text_fit("plain", 50), 5);
	assert_int_equal(text_width("\xf0\x9f\x98"), 2); /* cut short: not read beyond its end */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(columns_are_as_wide_as_they_must_be),
	    cmocka_unit_test(a_column_without_a_text_is_left_out),
	    cmocka_unit_test(what_comes_from_outside_is_escaped),
	    cmocka_unit_test(width_is_counted_in_columns_and_cut_between_code_points),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
