#include "model_test.h"

#include "fsops/cleanup.h"
#include "pod/model/text.h"
#include "pod/model/utf8.h"

static void X59_hostile_bytes_are_escaped(void **state)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{"", ""},
		{"plain text", "plain text"},
		{"a\\b", "a\\b"},
		{"one\ntwo\r\n", "one\\x0atwo\\x0d\\x0a"},
		{"tab\there", "tab\\x09here"},
		{"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"},
		{"\x1b]0;title\a", "\\x1b]0;title\\x07"},
		{"\x7f", "\\x7f"},
		{"ä€\U0001F600", "ä€\U0001F600"},
		{"\xc2\x85", "\\u{85}"},		      /* NEL */
		{"\xc2\x9b" "31m", "\\u{9b}31m"},	      /* CSI as one C1 character */
		{"\x9b" "31m", "\\x9b31m"},		      /* and as one byte */
		{"\xe2\x80\xa8\xe2\x80\xa9", "\\u{2028}\\u{2029}"},
		{"\xd8\x9c", "\\u{61c}"},
		{"\xe2\x80\x8e\xe2\x80\x8f", "\\u{200e}\\u{200f}"},
		{"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae", "\\u{202a}\\u{202b}\\u{202c}\\u{202d}\\u{202e}"},
		{"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}"},
		{"\xc0\x80", "\\xc0\\x80"},		      /* overlong */
		{"\xc1\xbf", "\\xc1\\xbf"},
		{"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},
		{"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"},
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},	      /* surrogates */
		{"\xed\xbf\xbf", "\\xed\\xbf\\xbf"},
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
		{"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
		{"\xff\xfe", "\\xff\\xfe"},
		{"\xe2\x82", "\\xe2\\x82"},		      /* cut */
		{"\xe2\x82" "a", "\\xe2\\x82a"},
		{"\xc3", "\\xc3"},
		{"\x80", "\\x80"},
	};
	char out[256];
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t n = text_escape(cases[i].bytes, strlen(cases[i].bytes), out, sizeof out);
		assert_string_equal(out, cases[i].text);
		assert_int_equal(n, strlen(cases[i].text));
	}
	assert_int_equal(text_escape("a\0b", 3, out, sizeof out), 6);
	assert_string_equal(out, "a\\x00b");
}

static void X59_a_cut_never_falls_inside_a_character_or_an_escape(void **state)
{
	static const char bytes[] = "a€\xff\xe2\x80\xae\U0001F600z";
	static const size_t edges[] = {0, 1, 4, 8, 16, 20, 21};
	(void)state;
	for (size_t size = 1; size < 30; size++) {
		char out[32];
		size_t expected = 0;
		for (size_t i = 0; i < COUNT(edges); i++)
			if (edges[i] < size)
				expected = edges[i];
		memset(out, '#', sizeof out);
		assert_int_equal(text_escape(bytes, sizeof bytes - 1, out, size), expected);
		assert_int_equal(strlen(out), expected);
		assert_int_equal(out[size], '#');
	}
	char untouched = '#';
	assert_int_equal(text_escape(bytes, sizeof bytes - 1, &untouched, 0), 0);
	assert_int_equal(untouched, '#');
}

static size_t encode(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)((0xf00 >> n) | c);
	return n;
}

static void every_code_point_is_kept_or_escaped(void **state)
{
	(void)state;
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		char in[4], out[32];
		size_t n = encode(c, in);
		bool surrogate = c >= 0xd800 && c <= 0xdfff;
		assert_int_equal(text_is_utf8(in, n), !surrogate);
		size_t written = text_escape(in, n, out, sizeof out);
		bool kept = written == n && !memcmp(in, out, n);
		assert_int_equal(kept, !surrogate && !utf8_hostile(c));
		assert_true(text_is_utf8(out, written));
	}
}

static void X59_a_line_of_a_mebibyte_is_bounded(void **state)
{
	size_t len = 1 << 20;
	AUTO_FREE char *bytes = malloc(len);
	char out[64];
	(void)state;
	assert_non_null(bytes);
	memset(bytes, '\x1b', len);
	assert_int_equal(text_escape(bytes, len, out, sizeof out), 60);
}

static void utf8_is_told_from_bytes(void **state)
{
	(void)state;
	assert_true(text_is_utf8("", 0));
	assert_true(text_is_utf8("a\0b", 3));
	assert_true(text_is_utf8("ä\xf4\x8f\xbf\xbf", 6));
	assert_false(text_is_utf8("ä\xf4\x8f\xbf", 5));
	assert_false(text_is_utf8("a\xfe", 2));
}

/* What a real shell makes of the same words; values are separated by US and end with RS. */
static void as_the_shell_has_it(const char *text, char *out, size_t size)
{
	char command[512];
	assert_true((size_t)snprintf(command, sizeof command, "set -f; for w in %s; do printf '%%s\\037' \"$w\"; done; printf '\\036'", text) < sizeof command);
	FILE *shell = popen(command, "r");
	assert_non_null(shell);
	size_t n = fread(out, 1, size - 1, shell);
	out[n] = '\0';
	assert_int_equal(pclose(shell), 0);
}

static void words_are_split_as_a_shell_splits_them(void **state)
{
	static const char *const texts[] = {
		"a b  c", " \t a\tb ", "'a b' c", "\"a b\"c'd e'", "a\\ b", "''", "\"\"", "'' \"\" x", "a''b", "\"a\\\"b\"", "\"a\\\\b\"", "\"a\\nb\"",
		"\"a\\`b\"", "'a\\'b", "\\'", "\\\"", "\\\\", "a\\\nb", "\"a\\\nb\"", "'a\nb'", "\"it's\"", "'say \"x\"'", "*", "{port}", "~/x", "#x", "x#y",
		"ä\\ ö", "\"\\$x\"", "-x --y=z", "a=b", "\\a\\b", "'\\'", "\\\n", "a \\\n b", "\"'\"\"'\"",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO_WORDS struct words words = {0};
		struct err err = {0};
		char ours[512] = "", theirs[512];
		assert_done(words_split(texts[i], &words, &err), &err);
		assert_null(words.v[words.n]);
		for (size_t w = 0; w < words.n; w++)
			(void)snprintf(ours + strlen(ours), sizeof ours - strlen(ours), "%s\037", words.v[w]);
		(void)snprintf(ours + strlen(ours), sizeof ours - strlen(ours), "\036");
		/* ~ and # mean something to a shell: quoted there, so that only the splitting is compared */
		const char *text = !strcmp(texts[i], "~/x") ? "\\~/x" : !strcmp(texts[i], "#x") ? "\\#x" : texts[i];
		as_the_shell_has_it(text, theirs, sizeof theirs);
		assert_string_equal(ours, theirs);
	}
}

static void X24_nothing_is_expanded(void **state)
{
	AUTO_WORDS struct words words = {0};
	struct err err = {0};
	static const char *const expected[] = {"$HOME", "`id`", "$(id)", "a;b", "&&", "|", "*", ">x", "-a", "@b", "+c", "!d", ":e", "$x"};
	(void)state;
	assert_done(words_split("$HOME `id` $(id) a;b && | * >x -a @b +c !d :e \"$x\"", &words, &err), &err);
	assert_int_equal(words.n, COUNT(expected));
	for (size_t i = 0; i < words.n; i++)
		assert_string_equal(words.v[i], expected[i]);
}

static void no_words_are_no_words(void **state)
{
	static const char *const texts[] = {"", " ", "\n\t ", "\\\n"};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO_WORDS struct words words = {0};
		struct err err = {0};
		assert_done(words_split(texts[i], &words, &err), &err);
		assert_int_equal(words.n, 0);
		assert_non_null(words.v);
		assert_null(words.v[0]);
	}
}

static void open_quotes_are_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {{"a 'b", "a ' has no end"}, {"\"b", "a \" has no end"}, {"\"b\\", "a \" has no end"}, {"\"b\\\"", "a \" has no end"},
		     {"b\\", "a \\ stands"},	 {"'", "a ' has no end"},    {"a 'b' \"", "a \" has no end"}};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct words words = {.n = 77};
		struct err err = {0};
		assert_refused(words_split(cases[i].text, &words, &err), &err, REFUSAL_BAD_CONFIG, cases[i].why);
		assert_int_equal(words.n, 77);
	}
}

static void words_are_copied(void **state)
{
	char *v[] = {"a", "", "c d"};
	AUTO_WORDS struct words words = {0};
	struct err err = {0};
	(void)state;
	assert_done(words_copy(v, 3, &words, &err), &err);
	assert_int_equal(words.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(words.v[i], v[i]);
	assert_null(words.v[3]);
	words_free(&words);
	assert_int_equal(words.n, 0);
	assert_done(words_copy(NULL, 0, &words, &err), &err);
	assert_null(words.v[0]);
}

static void placeholders_are_filled(void **state)
{
	static const struct placeholders values = {.port = "7971", .home = "/h", .os_home = "/h/os-home", .name = "{port}"};
	static const struct {
		char *in;
		const char *out;
	} cases[] = {
		{"{port}", "7971"},	{"--port={port}", "--port=7971"}, {"{home}/x", "/h/x"},	 {"{os_home}", "/h/os-home"}, {"{name}", "{port}"},
		{"{{port}", "{port}"},	{"{{{port}", "{7971"},		  {"{{{{", "{{"},	 {"{", "{"},		      {"{}", "{}"},
		{"{nope}", "{nope}"},	{"{port", "{port"},		  {"{PORT}", "{PORT}"},	 {"port}", "port}"},	      {"{{port}}", "{port}}"},
		{"{port}{port}", "79717971"}, {"", ""},			  {"$PORT", "$PORT"},	 {"}}", "}}"},		      {"{ port}", "{ port}"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *v[] = {cases[i].in, NULL};
		struct words in = {v, 1};
		AUTO_WORDS struct words out = {0};
		struct err err = {0};
		assert_done(words_fill(&in, &values, &out, &err), &err);
		assert_int_equal(out.n, 1);
		assert_string_equal(out.v[0], cases[i].out);
		assert_null(out.v[1]);
	}
}

static void a_placeholder_without_a_value_stays(void **state)
{
	static const struct placeholders values = {.port = "1", .home = NULL, .os_home = NULL, .name = NULL};
	char *v[] = {"{home}{port}{name}", NULL};
	struct words in = {v, 1};
	AUTO_WORDS struct words out = {0};
	struct err err = {0};
	(void)state;
	assert_done(words_fill(&in, &values, &out, &err), &err);
	assert_string_equal(out.v[0], "{home}1{name}");
}

static void the_use_of_the_port_is_seen(void **state)
{
	static const struct {
		char *word;
		bool uses;
	} cases[] = {
		{"{port}", true},  {"x{port}y", true},	{"$PORT", true},     {"echo $PORT;", true}, {"${PORT}", true},	  {"${PORT:-1}", true}, {"{{{port}", true},
		{"{{port}", false}, {"$PORTAL", false}, {"$PORT_X", false},  {"${PORTAL}", false},  {"PORT", false},	  {"", false},		{"{Port}", false},
		{"$PORT1", false}, {"$", false},	{"${", false},	     {"{home}", false},	    {"$$PORT", true},	  {"{name}", false},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *v[] = {"first", cases[i].word, NULL};
		struct words words = {v, 2};
		assert_int_equal(words_use_port(&words), cases[i].uses);
	}
	struct words none = {NULL, 0};
	assert_false(words_use_port(&none));
}

static void quoted_values_come_back_from_a_shell(void **state)
{
	static const char *const values[] = {"", "a", "a b", "it's", "'", "''", "$HOME `id` \"x\" \\", "a\nb", "*", "\\'", "\xff\xfe", "ä", "-n", "!x"};
	(void)state;
	for (size_t i = 0; i < COUNT(values); i++) {
		AUTO_FREE char *quoted = shell_quote(values[i]);
		char out[512], expected[512];
		assert_non_null(quoted);
		as_the_shell_has_it(quoted, out, sizeof out);
		(void)snprintf(expected, sizeof expected, "%s\037\036", values[i]);
		assert_string_equal(out, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X59_hostile_bytes_are_escaped),
		cmocka_unit_test(X59_a_cut_never_falls_inside_a_character_or_an_escape),
		cmocka_unit_test(every_code_point_is_kept_or_escaped),
		cmocka_unit_test(X59_a_line_of_a_mebibyte_is_bounded),
		cmocka_unit_test(utf8_is_told_from_bytes),
		cmocka_unit_test(words_are_split_as_a_shell_splits_them),
		cmocka_unit_test(X24_nothing_is_expanded),
		cmocka_unit_test(no_words_are_no_words),
		cmocka_unit_test(open_quotes_are_refused),
		cmocka_unit_test(words_are_copied),
		cmocka_unit_test(placeholders_are_filled),
		cmocka_unit_test(a_placeholder_without_a_value_stays),
		cmocka_unit_test(the_use_of_the_port_is_seen),
		cmocka_unit_test(quoted_values_come_back_from_a_shell),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
