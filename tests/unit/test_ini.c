#include "model_test.h"

#include "fsops/cleanup.h"
#include "pod/model/ini.h"

#define FILE_NAME "/x/config.ini"

static int read_text(const char *text, enum ini_scope scope, struct ini *ret_ini, struct err *err)
{
	return ini_read(FILE_NAME, text, strlen(text), scope, ret_ini, err);
}

static void every_key_is_read(void **state)
{
	static const char text[] = "; comment\n# comment\n\n[plane]\nroot = /r\nenv-dir=/e\nartifacts-dir =/a\nbase-port= 1\nport-span = 2\nlive-port = 3\n"
				   "unit-prefix = p\npath = /b:/c\nrepo = ~/r\nworktrees-root = w\nhealth-secs = 9\nkiro-bin = k\nbackend = embedded\n"
				   "[payload]\nexec = sh -c 'echo; {port}'\nhealth = http:/h\nmemory-max = 4G\ncpu-quota = 50%\nstop-secs = 7\n"
				   "[agent]\nexec = kiro-cli acp\ntimeout = 20\nsigned-out = please log in\n"
				   "[identity work]\nsource = ~/.work\nstaged = .local/work\n[identity b]\nstaged = .b\nsource = /b";
	static const char *const plane[PLANE_SETTINGS] = {"/r", "/e", "/a", "1", "2", "3", "p", "/b:/c", "~/r", "w", "9", "k", "embedded"};
	AUTO_INI struct ini ini = {.file = NULL};
	struct err err = {0};
	(void)state;
	assert_done(read_text(text, INI_SCOPE_OPERATOR, &ini, &err), &err);
	assert_string_equal(ini.file, FILE_NAME);
	for (size_t i = 0; i < PLANE_SETTINGS; i++)
		assert_string_equal(ini.plane[i], plane[i]);
	assert_string_equal(ini.payload_exec, "sh -c 'echo; {port}'");
	assert_string_equal(ini.payload_health, "http:/h");
	assert_string_equal(ini.payload_memory_max, "4G");
	assert_string_equal(ini.payload_cpu_quota, "50%");
	assert_string_equal(ini.payload_stop_secs, "7");
	assert_string_equal(ini.agent_exec, "kiro-cli acp");
	assert_string_equal(ini.agent_timeout, "20");
	assert_string_equal(ini.agent_signed_out, "please log in");
	assert_int_equal(ini.identity_count, 2);
	assert_string_equal(ini.identities[0].name, "work");
	assert_string_equal(ini.identities[0].source, "~/.work");
	assert_string_equal(ini.identities[0].staged, ".local/work");
	assert_string_equal(ini.identities[1].name, "b");
	assert_string_equal(ini.identities[1].source, "/b");
}

static void shapes_of_files_that_people_write(void **state)
{
	static const char *const texts[] = {
		"[plane]\nroot=/r\nrepo=/s\n", "[plane]\r\nroot = /r\r\nrepo = /s\r\n", "[plane]\n\troot = /r\n\trepo = /s\n", "\xef\xbb\xbf[plane]\nroot=/r\nrepo=/s",
		"[plane]\nroot=/r\n\n; x ; y\n  # z\n   \nrepo=/s\n", "  [plane]  \n  root  =  /r  \nrepo : /s\n", "[plane]\nroot=/r\n[agent]\n[plane]\nrepo=/s\n",
		"[plane]\nroot=/r\nrepo=/s\nlive-port =\n",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO_INI struct ini ini = {.file = NULL};
		struct err err = {0};
		assert_done(read_text(texts[i], INI_SCOPE_OPERATOR, &ini, &err), &err);
		assert_string_equal(ini.plane[PLANE_ROOT], "/r");
		assert_string_equal(ini.plane[PLANE_REPO], "/s");
		assert_null(ini.plane[PLANE_LIVE_PORT]); /* a key without a value is none */
	}
	AUTO_INI struct ini empty = {.file = NULL};
	struct err err = {0};
	assert_done(ini_read(FILE_NAME, "", 0, INI_SCOPE_OPERATOR, &empty, &err), &err);
	assert_null(empty.payload_exec);
}

static void L23_what_is_wrong_is_named_with_file_line_and_key(void **state)
{
	static const struct {
		const char *text, *line, *what, *why;
	} cases[] = {
		{"[plane]\nrot = /x\n", "line 2", "[plane] rot", "no such key"},
		{"[plane]\nRoot = /x\n", "line 2", "[plane] Root", "no such key"},
		{"[payload]\nroot = /x\n", "line 2", "[payload] root", "no such key"},
		{"[plane]\nexec = /x\n", "line 2", "[plane] exec", "no such key"},
		{"\n[plain]\n", "line 2", "[plain]", "no such section"},
		{"[plain]\nroot = /x\n", "line 1", "[plain]", "no such section"},
		{"[]\n", "line 1", "", "before the first section"},
		{"[ plane ]\nroot=/x\n", "line 1", "[ plane ]", "no such section"},
		{"[Plane]\n", "line 1", "[Plane]", "no such section"},
		{"root = /x\n", "line 1", "root", "before the first section"},
		{"[plane]\nroot = /x\nrepo = /\nroot = /x\n", "line 4", "[plane] root", "twice"},
		{"[plane]\nroot =\nroot = /x\n", "line 3", "[plane] root", "twice"},
		{"[plane]\nroot = /x\n[agent]\n[plane]\nroot = /y\n", "line 5", "[plane] root", "twice"},
		{"[agent]\nexec = a\nexec = b\n", "line 3", "[agent] exec", "twice"},
		{"[plane]\nroot\n", "line 2", "root", "neither"},
		{"[plane]\nroot = /x\n  and more\n", "line 3", "and", "neither"},
		{"[plane\nroot = /x\n", "line 1", "", "no ]"},
		{"[plane] root = /x\n", "line 1", "", "behind the section"},
		{"[plane] ; comment\n", "line 1", "", "behind the section"},
		{"[plane]\nroot = /x ; comment\n", "line 2", "root", "cut off"},
		{"[plane]\nroot = ; comment\n", "line 2", "root", "cut off"},
		{"[payload]\nexec = sh -c 'a ; b'\n", "line 2", "exec", "cut off"},
		{"[plane]\nroot ; = /x\n", "line 2", "root", "cut off"},
		{"[plane]\nroot = /x\x1b[31m\n", "line 2", NULL, "control character"},
		{"[plane]\nroot = /x\ry\n", "line 2", NULL, "control character"},
		{"[plane]\nroot = /x\x7f\n", "line 2", NULL, "control character"},
		{"[plane]\n; \x07\n", "line 2", NULL, "control character"},
		{"[plane]\n\xef\xbb\xbfroot = /x\n", "line 2", NULL, "no such key"},
		{"\xef\xbb\xbf\xef\xbb\xbf[plane]\n", "line 1", NULL, "neither"},
		{"[identity]\nsource = /x\n", "line 1", "[identity]", "no such section"},
		{"[identity ]\n", "line 1", "[identity ]", "identity's name"},
		{"[identity a b]\n", "line 1", "[identity a b]", "identity's name"},
		{"[identity ../x]\n", "line 1", "[identity ../x]", "identity's name"},
		{"[identity a]\nsauce = /x\n", "line 2", "[identity a] sauce", "no such key"},
		{"[identity a]\nsource = /x\nsource = /x\n", "line 3", "[identity a] source", "twice"},
		{"[identity a]\nsource = /x\nstaged = ../x\n", "line 3", "[identity a] staged", "below the pod's HOME"},
		{"[identity a]\nsource = /x\nstaged = /x\n", "line 3", "[identity a] staged", "below the pod's HOME"},
		{"[identity a]\nsource = /x\nstaged = .aws\n", "line 3", "[identity a] staged", ".aws/sso/cache"},
		{"[identity a]\nsource = /x\nstaged = .aws/sso/cache/x\n", "line 3", "[identity a] staged", ".aws/sso/cache"},
		{"[payload]\nexec = sh 'open\n", "line 2", "[payload] exec", "split into words"},
		{"[payload]\nexec = ''\n", "line 2", "[payload] exec", "no program"},
		{"[payload]\nhealth = https\n", "line 2", "[payload] health", "health check"},
		{"[payload]\nmemory-max = lots\n", "line 2", "[payload] memory-max", "memory limit"},
		{"[payload]\ncpu-quota = 2\n", "line 2", "[payload] cpu-quota", "quota"},
		{"[payload]\nstop-secs = 0\n", "line 2", "[payload] stop-secs", "1 to 3600"},
		{"[payload]\nstop-secs = 1.5\n", "line 2", "[payload] stop-secs", "1 to 3600"},
		{"[agent]\ntimeout = 3601\n", "line 2", "[agent] timeout", "1 to 3600"},
		{"[agent]\nexec = \\\n", "line 2", "[agent] exec", "split into words"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ini ini = {.identity_count = 77};
		struct err err = {0};
		assert_refused(read_text(cases[i].text, INI_SCOPE_OPERATOR, &ini, &err), &err, REFUSAL_BAD_CONFIG, cases[i].why);
		assert_string_equal(err.subject, FILE_NAME);
		assert_non_null(strstr(err.text, cases[i].line));
		if (cases[i].what && !strstr(err.text, cases[i].what))
			fail_msg("expected \"%s\" in \"%s\"", cases[i].what, err.text);
		assert_int_equal(ini.identity_count, 77);
	}
}

static void an_identity_needs_both_of_its_keys(void **state)
{
	static const char *const texts[] = {"[identity a]\nsource = /x\n", "[identity a]\nstaged = x\n", "[identity a]\nsource =\nstaged = x\n",
					    "[identity b]\nsource=/x\nstaged=x\n[identity a]\nsource = /x\nstaged =\n"};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct ini ini;
		struct err err = {0};
		assert_refused(read_text(texts[i], INI_SCOPE_OPERATOR, &ini, &err), &err, REFUSAL_BAD_CONFIG, "[identity a] needs both");
	}
}

static void places_beside_the_minted_one_may_be_staged(void **state)
{
	static const char *const texts[] = {"[identity a]\nsource=/x\nstaged=.aws/sso/cache2\n", "[identity a]\nsource=/x\nstaged=.awsome\n",
					    "[identity a]\nsource=/x\nstaged=.aws/config\n"};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO_INI struct ini ini = {.file = NULL};
		struct err err = {0};
		assert_done(read_text(texts[i], INI_SCOPE_OPERATOR, &ini, &err), &err);
		assert_int_equal(ini.identity_count, 1);
	}
}

static void a_checkout_has_no_say_over_the_plane(void **state)
{
	static const char *const texts[] = {"[plane]\n", "[plane]\nroot = /x\n", "[payload]\nexec=a\n[plane]\n"};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct ini ini;
		struct err err = {0};
		assert_refused(read_text(texts[i], INI_SCOPE_CHECKOUT, &ini, &err), &err, REFUSAL_BAD_CONFIG, "[plane]");
	}
	AUTO_INI struct ini ini = {.file = NULL};
	struct err err = {0};
	assert_done(read_text("[payload]\nexec=a\n[agent]\nexec=b\n[identity c]\nsource=/c\nstaged=c\n", INI_SCOPE_CHECKOUT, &ini, &err), &err);
	assert_string_equal(ini.payload_exec, "a");
}

static void long_lines_are_refused_never_cut(void **state)
{
	(void)state;
	for (size_t len = 150; len < 400; len++) {
		for (int newline = 0; newline < 2; newline++) {
			char text[512];
			AUTO_INI struct ini ini = {.file = NULL};
			struct err err = {0};
			int head = snprintf(text, sizeof text, "[plane]\nroot = /");
			memset(text + head, 'x', len - 8);
			snprintf(text + head + len - 8, 8, "%s", newline ? "\n" : "");
			int r = read_text(text, INI_SCOPE_OPERATOR, &ini, &err);
			if (r == 0) { /* what is taken is whole */
				assert_int_equal(strlen(ini.plane[PLANE_ROOT]), len - 8 + 1);
				assert_true(len <= 198);
			} else {
				assert_refused(r, &err, REFUSAL_BAD_CONFIG, "line 2: root: the line is too long");
				assert_true(len > 198);
			}
		}
	}
	char text[512];
	struct ini ini;
	struct err err = {0};
	memset(text, ';', sizeof text); /* a comment that is cut would go on as a key */
	text[sizeof text - 1] = '\0';
	assert_refused(read_text(text, INI_SCOPE_OPERATOR, &ini, &err), &err, REFUSAL_BAD_CONFIG, "too long");
}

static void a_text_without_an_end_is_not_read_past_its_length(void **state)
{
	static const char *const lines[] = {"[plane]\nroot = /", "x", "[", "; "};
	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		for (size_t len = strlen(lines[i]); len < 300; len += 97) {
			AUTO_FREE char *text = malloc(len); /* exactly as long, so that the sanitizer sees a step too far */
			struct ini ini = {.file = NULL};
			struct err err = {0};
			assert_non_null(text);
			memset(text, 'x', len);
			memcpy(text, lines[i], strlen(lines[i]));
			int r = ini_read(FILE_NAME, text, len, INI_SCOPE_OPERATOR, &ini, &err);
			assert_true(r == 0 || err.refusal == REFUSAL_BAD_CONFIG);
			ini_free(&ini);
		}
}

static void long_sections_are_refused_never_cut(void **state)
{
	(void)state;
	for (size_t len = 30; len < 60; len++) {
		char text[128], name[64];
		AUTO_INI struct ini ini = {.file = NULL};
		struct err err = {0};
		memset(name, 'n', len);
		name[len] = '\0';
		(void)snprintf(text, sizeof text, "[identity %s]\nsource=/x\nstaged=x\n", name);
		int r = read_text(text, INI_SCOPE_OPERATOR, &ini, &err);
		if (r == 0) {
			assert_string_equal(ini.identities[0].name, name);
			assert_true(len + 9 <= 49);
		} else {
			assert_refused(r, &err, REFUSAL_BAD_CONFIG, "49 bytes");
			assert_true(len + 9 > 49);
		}
	}
}

static void L23_bytes_that_no_configuration_holds(void **state)
{
	static const char nul[] = "[plane]\nroot = /x\0y\n";
	AUTO_FREE char *big = malloc(65537);
	struct ini ini;
	struct err err = {0};
	(void)state;
	assert_non_null(big);
	assert_refused(ini_read(FILE_NAME, nul, sizeof nul - 1, INI_SCOPE_OPERATOR, &ini, &err), &err, REFUSAL_BAD_CONFIG, "NUL");
	memset(big, '\n', 65537);
	assert_refused(ini_read(FILE_NAME, big, 65537, INI_SCOPE_OPERATOR, &ini, &err), &err, REFUSAL_BAD_CONFIG, "65536 bytes");
	assert_done(ini_read(FILE_NAME, big, 65536, INI_SCOPE_OPERATOR, &ini, &err), &err);
	ini_free(&ini);
}

static void identities_are_bounded(void **state)
{
	char text[4096] = "";
	struct ini ini;
	struct err err = {0};
	(void)state;
	for (int i = 0; i < 33; i++)
		(void)snprintf(text + strlen(text), sizeof text - strlen(text), "[identity i%d]\nsource=/x\nstaged=x\n", i);
	assert_refused(read_text(text, INI_SCOPE_OPERATOR, &ini, &err), &err, REFUSAL_BAD_CONFIG, "[identity i32] source: there are too many");
}

static void files_are_merged(void **state)
{
	AUTO_INI struct ini base = {.file = NULL}, over = {.file = NULL};
	struct err err = {0};
	(void)state;
	assert_done(read_text("[plane]\nroot=/r\n[payload]\nexec=base\nhealth=tcp\n[identity a]\nsource=/base\nstaged=a\n[identity b]\nsource=/b\nstaged=b\n",
			      INI_SCOPE_OPERATOR, &base, &err), &err);
	static const char checkout[] = "[payload]\nexec=over\n[agent]\ntimeout=3\n[identity c]\nsource=/c\nstaged=c\n[identity a]\nsource=/over\nstaged=z\n";
	assert_done(ini_read("other.ini", checkout, sizeof checkout - 1, INI_SCOPE_CHECKOUT, &over, &err), &err);
	assert_done(ini_merge(&base, &over, &err), &err);
	assert_string_equal(base.file, FILE_NAME);
	assert_string_equal(base.plane[PLANE_ROOT], "/r");
	assert_string_equal(base.payload_exec, "over");
	assert_string_equal(base.payload_health, "tcp");
	assert_string_equal(base.agent_timeout, "3");
	assert_int_equal(base.identity_count, 3);
	assert_string_equal(base.identities[0].source, "/over");
	assert_string_equal(base.identities[0].staged, "z");
	assert_string_equal(base.identities[1].source, "/b");
	assert_string_equal(base.identities[2].name, "c");
	assert_null(over.file);
	assert_null(over.payload_exec);
	assert_null(over.identities);
	assert_int_equal(over.identity_count, 0);
}

static void nothing_can_be_merged_with_nothing(void **state)
{
	AUTO_INI struct ini base = {.file = NULL}, over = {.file = NULL};
	struct err err = {0};
	(void)state;
	assert_done(ini_merge(&base, &over, &err), &err);
	assert_null(base.file);
	assert_done(read_text("[plane]\nroot=/r\n[identity a]\nsource=/x\nstaged=a\n", INI_SCOPE_OPERATOR, &over, &err), &err);
	assert_done(ini_merge(&base, &over, &err), &err);
	assert_string_equal(base.file, FILE_NAME);
	assert_string_equal(base.plane[PLANE_ROOT], "/r");
	assert_string_equal(base.identities[0].source, "/x");
}

static void X56_a_file_cut_at_any_byte_is_understood_or_refused(void **state)
{
	static const char text[] = "[plane]\nroot = /r\nbase-port = 7000\n[payload]\nexec = sh -c 'a b' \"c\"\n[identity a]\nsource = /x\nstaged = x\n";
	(void)state;
	size_t understood = 0, refused = 0;
	for (size_t len = 0; len < sizeof text; len++) {
		AUTO_INI struct ini ini = {.file = NULL};
		struct err err = {0};
		int r = ini_read(FILE_NAME, text, len, INI_SCOPE_OPERATOR, &ini, &err);
		if (r == 0) {
			understood++;
		} else {
			assert_refused(r, &err, REFUSAL_BAD_CONFIG, NULL);
			refused++;
		}
	}
	assert_true(understood > 10 && refused > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(shapes_of_files_that_people_write),
		cmocka_unit_test(L23_what_is_wrong_is_named_with_file_line_and_key),
		cmocka_unit_test(an_identity_needs_both_of_its_keys),
		cmocka_unit_test(places_beside_the_minted_one_may_be_staged),
		cmocka_unit_test(a_checkout_has_no_say_over_the_plane),
		cmocka_unit_test(long_lines_are_refused_never_cut),
		cmocka_unit_test(a_text_without_an_end_is_not_read_past_its_length),
		cmocka_unit_test(long_sections_are_refused_never_cut),
		cmocka_unit_test(L23_bytes_that_no_configuration_holds),
		cmocka_unit_test(identities_are_bounded),
		cmocka_unit_test(files_are_merged),
		cmocka_unit_test(nothing_can_be_merged_with_nothing),
		cmocka_unit_test(X56_a_file_cut_at_any_byte_is_understood_or_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
