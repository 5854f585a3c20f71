#include "model_test.h"

#include "pod/model/ini.h"
#include "pod/model/path.h"
#include "pod/model/plane.h"

static struct plane_input usual(void)
{
	struct plane_input input = {.home = "/home/u", .cwd = "/cwd"};
	return input;
}

static void nothing_set_gives_the_defaults_of_the_contract(void **state)
{
	struct plane_input input = usual();
	struct plane plane;
	struct err err = {0};
	(void)state;
	assert_done(plane_resolve(&input, &plane, &err), &err);
	assert_string_equal(plane.home, "/home/u");
	assert_string_equal(plane.root, "/home/u/.kirocrew-pods");
	assert_string_equal(plane.pods_dir, "/home/u/.kiro/crew/pods");
	assert_string_equal(plane.artifacts, "/home/u/.kirocrew-pods/.e2e-artifacts");
	assert_string_equal(plane.config_home, "/home/u/.config");
	assert_string_equal(plane.data_home, "/home/u/.local/share");
	assert_int_equal(plane.base_port, 7810);
	assert_int_equal(plane.port_span, 199);
	assert_int_equal(plane.live_port, 5476);
	assert_string_equal(plane.prefix, "kirocrew-pod");
	assert_string_equal(plane.path, "/home/u/.local/bin:/usr/local/bin:/usr/bin:/bin");
	assert_string_equal(plane.repo, "/cwd");
	assert_string_equal(plane.worktrees_root, "");
	assert_int_equal(plane.health_secs, 90);
	assert_string_equal(plane.kiro_bin, "");
	assert_int_equal(plane.backend, BACKEND_AUTO);
}

static void the_table_is_that_of_the_contract(void **state)
{
	static const char *const rows[PLANE_SETTINGS][2] = {
		{"KIROCREW_POD_ROOT", "root"},		     {"KIROCREW_POD_ENV_DIR", "env-dir"},
		{"KIROCREW_POD_ARTIFACTS_DIR", "artifacts-dir"}, {"KIROCREW_POD_BASE_PORT", "base-port"},
		{"KIROCREW_POD_PORT_SPAN", "port-span"},     {"KIROCREW_POD_LIVE_PORT", "live-port"},
		{"KIROCREW_POD_UNIT_PREFIX", "unit-prefix"}, {"KIROCREW_POD_PATH", "path"},
		{"KIROCREW_POD_REPO", "repo"},		     {"KIROCREW_POD_WORKTREES_ROOT", "worktrees-root"},
		{"KIROCREW_POD_HEALTH_SECS", "health-secs"}, {"KIROCREW_POD_KIRO_BIN", "kiro-bin"},
		{"KIROCREW_POD_BACKEND", "backend"},
	};
	(void)state;
	for (size_t i = 0; i < PLANE_SETTINGS; i++) {
		assert_string_equal(plane_settings[i].variable, rows[i][0]);
		assert_string_equal(plane_settings[i].key, rows[i][1]);
	}
}

/* Every text of a plane under one index, to compare by setting. */
static const char *shown(const struct plane *plane, enum plane_setting which, char buffer[32])
{
	const int numbers[PLANE_SETTINGS] = {
		[PLANE_BASE_PORT] = plane->base_port, [PLANE_PORT_SPAN] = plane->port_span, [PLANE_LIVE_PORT] = plane->live_port, [PLANE_HEALTH_SECS] = plane->health_secs};
	const char *const texts[PLANE_SETTINGS] = {
		[PLANE_ROOT] = plane->root,	  [PLANE_ENV_DIR] = plane->pods_dir, [PLANE_ARTIFACTS_DIR] = plane->artifacts,
		[PLANE_UNIT_PREFIX] = plane->prefix, [PLANE_PATH] = plane->path,	     [PLANE_REPO] = plane->repo,
		[PLANE_WORKTREES_ROOT] = plane->worktrees_root, [PLANE_KIRO_BIN] = plane->kiro_bin, [PLANE_BACKEND] = backend_name(plane->backend)};
	if (texts[which])
		return texts[which];
	(void)snprintf(buffer, 32, "%d", numbers[which]);
	return buffer;
}

static void settings_are_understood_and_brought_into_shape(void **state)
{
	static const struct {
		enum plane_setting which;
		const char *text, *meaning;
	} cases[] = {
		{PLANE_ROOT, "~", "/home/u"},
		{PLANE_ROOT, "~/", "/home/u"},
		{PLANE_ROOT, "~/p//q/./r/", "/home/u/p/q/r"},
		{PLANE_ROOT, "rel", "/cwd/rel"},
		{PLANE_ROOT, "./~", "/cwd/~"},
		{PLANE_ROOT, "a~", "/cwd/a~"},
		{PLANE_ROOT, "/", "/"},
		{PLANE_ROOT, "//host/share", "/host/share"},
		{PLANE_ROOT, "/a/../b", "/a/../b"},
		{PLANE_ROOT, "..", "/cwd/.."},
		{PLANE_ROOT, "/ä b", "/ä b"},
		{PLANE_ENV_DIR, "/e", "/e"},
		{PLANE_ARTIFACTS_DIR, "art", "/cwd/art"},
		{PLANE_BASE_PORT, "0", "0"},
		{PLANE_BASE_PORT, "65336", "65336"},
		{PLANE_PORT_SPAN, "1", "1"},
		{PLANE_PORT_SPAN, "10000", "10000"},
		{PLANE_LIVE_PORT, "65535", "65535"},
		{PLANE_UNIT_PREFIX, "p", "p"},
		{PLANE_UNIT_PREFIX, "a.b_c-d", "a.b_c-d"},
		{PLANE_UNIT_PREFIX, "0123456789012345678901234567890123456789", "0123456789012345678901234567890123456789"},
		{PLANE_PATH, "/a:~/b:c", "/a:/home/u/b:/cwd/c"},
		{PLANE_PATH, ":/a::/b/:", "/a:/b"},
		{PLANE_REPO, "~/src", "/home/u/src"},
		{PLANE_WORKTREES_ROOT, "wt", "/cwd/wt"},
		{PLANE_HEALTH_SECS, "5", "5"},
		{PLANE_HEALTH_SECS, "4", "5"},
		{PLANE_HEALTH_SECS, "0", "5"},
		{PLANE_HEALTH_SECS, "-1", "5"},
		{PLANE_HEALTH_SECS, "-99999999999999999999", "5"},
		{PLANE_HEALTH_SECS, "007", "7"},
		{PLANE_HEALTH_SECS, "3600", "3600"},
		{PLANE_HEALTH_SECS, "3601", "3600"},
		{PLANE_HEALTH_SECS, "35999", "3600"},
		{PLANE_HEALTH_SECS, "99999999999999999999", "3600"},
		{PLANE_KIRO_BIN, "kiro-cli", "kiro-cli"},
		{PLANE_KIRO_BIN, "./kiro-cli", "/cwd/kiro-cli"},
		{PLANE_KIRO_BIN, "~/bin/kiro-cli", "/home/u/bin/kiro-cli"},
		{PLANE_BACKEND, "auto", "auto"},
		{PLANE_BACKEND, "systemd", "systemd"},
		{PLANE_BACKEND, "launchd", "launchd"},
		{PLANE_BACKEND, "embedded", "embedded"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (int from_file = 0; from_file < 2; from_file++) {
			struct plane_input input = usual();
			struct ini ini = {.file = NULL};
			struct plane plane;
			struct err err = {0};
			char buffer[32];
			if (from_file)
				ini.plane[cases[i].which] = (char *)(uintptr_t)cases[i].text;
			else
				input.variable[cases[i].which] = cases[i].text;
			input.ini = &ini;
			assert_done(plane_resolve(&input, &plane, &err), &err);
			assert_string_equal(shown(&plane, cases[i].which, buffer), cases[i].meaning);
		}
	}
}

static const struct {
	enum plane_setting which;
	const char *text, *why;
} unusable[] = {
	{PLANE_ROOT, "/a\nb", "newline"},
	{PLANE_ROOT, "/a\rb", "carriage return"},
	{PLANE_ROOT, "~root/x", "~/"},
	{PLANE_ROOT, "/x\n[Service]\nExecStart=/bin/false", "newline"},
	{PLANE_ENV_DIR, "~x", "~/"},
	{PLANE_ARTIFACTS_DIR, "a\n", "newline"},
	{PLANE_WORKTREES_ROOT, "\n", "newline"},
	{PLANE_REPO, "~~", "~/"},
	{PLANE_BASE_PORT, "65535", "65534"},
	{PLANE_BASE_PORT, "65534", "more than 65535"},
	{PLANE_BASE_PORT, "0x50", "decimal"},
	{PLANE_BASE_PORT, "-1", "decimal"},
	{PLANE_BASE_PORT, " 80", "decimal"},
	{PLANE_BASE_PORT, "1e3", "decimal"},
	{PLANE_BASE_PORT, "07810", "decimal"},
	{PLANE_PORT_SPAN, "0", "1 to 10000"},
	{PLANE_PORT_SPAN, "10001", "1 to 10000"},
	{PLANE_PORT_SPAN, "all", "1 to 10000"},
	{PLANE_LIVE_PORT, "0", "1 to 65535"},
	{PLANE_LIVE_PORT, "65536", "1 to 65535"},
	{PLANE_UNIT_PREFIX, "a@b", "unit prefix"},
	{PLANE_UNIT_PREFIX, "-a", "unit prefix"},
	{PLANE_UNIT_PREFIX, "a/b", "unit prefix"},
	{PLANE_UNIT_PREFIX, "a%", "unit prefix"},
	{PLANE_UNIT_PREFIX, "a\n", "unit prefix"},
	{PLANE_UNIT_PREFIX, "01234567890123456789012345678901234567890", "unit prefix"},
	{PLANE_PATH, "/a:/b\nX=1", "newline"},
	{PLANE_PATH, ":", "no directory"},
	{PLANE_PATH, "/a:~x", "~/"},
	{PLANE_HEALTH_SECS, "soon", "whole number"},
	{PLANE_HEALTH_SECS, "90s", "whole number"},
	{PLANE_HEALTH_SECS, "9.5", "whole number"},
	{PLANE_HEALTH_SECS, " 90", "whole number"},
	{PLANE_HEALTH_SECS, "1e2", "whole number"},
	{PLANE_HEALTH_SECS, "-", "whole number"},
	{PLANE_HEALTH_SECS, "+9", "whole number"},
	{PLANE_KIRO_BIN, "kiro\n", "neither"},
	{PLANE_KIRO_BIN, "~x/kiro", "~/"},
	{PLANE_BACKEND, "Systemd", "backend is"},
	{PLANE_BACKEND, "none", "backend is"},
	{PLANE_BACKEND, "systemd ", "backend is"},
};

static void L23_L34_X36_unusable_settings_name_their_variable(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(unusable); i++) {
		struct plane_input input = usual();
		struct plane plane = {.live_port = 42};
		struct err err = {0};
		input.variable[unusable[i].which] = unusable[i].text;
		assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, unusable[i].why);
		assert_string_equal(err.subject, plane_settings[unusable[i].which].variable);
		assert_int_equal(plane.live_port, 42);
	}
}

static void L23_unusable_settings_name_their_file_and_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(unusable); i++) {
		struct plane_input input = usual();
		struct ini ini = {.file = (char[]){"/etc/kirocrew-pod/config.ini"}};
		struct plane plane;
		struct err err = {0};
		char origin[128];
		ini.plane[unusable[i].which] = (char *)(uintptr_t)unusable[i].text;
		input.ini = &ini;
		assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, unusable[i].why);
		(void)snprintf(origin, sizeof origin, "%s: [plane] %s", ini.file, plane_settings[unusable[i].which].key);
		assert_string_equal(err.subject, origin);
	}
}

static void the_variable_wins_over_the_file_and_an_empty_one_is_none(void **state)
{
	struct plane_input input = usual();
	struct ini ini = {.file = NULL};
	struct plane plane;
	struct err err = {0};
	(void)state;
	input.ini = &ini;
	input.variable[PLANE_BASE_PORT] = "9000";
	ini.plane[PLANE_BASE_PORT] = (char[]){"8000"};
	input.variable[PLANE_ROOT] = "";
	ini.plane[PLANE_ROOT] = (char[]){"/from-file"};
	input.variable[PLANE_LIVE_PORT] = "";
	ini.plane[PLANE_LIVE_PORT] = (char[]){""};
	input.variable[PLANE_WORKTREES_ROOT] = "";
	assert_done(plane_resolve(&input, &plane, &err), &err);
	assert_int_equal(plane.base_port, 9000);
	assert_string_equal(plane.root, "/from-file");
	assert_string_equal(plane.artifacts, "/from-file/.e2e-artifacts");
	assert_int_equal(plane.live_port, 5476);
	assert_string_equal(plane.worktrees_root, "");
	ini.plane[PLANE_BASE_PORT] = (char[]){"x"};
	input.variable[PLANE_BASE_PORT] = NULL;
	assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "configuration: [plane] base-port");
}

static void the_band_must_fit_and_the_set_one_is_named(void **state)
{
	struct plane_input input = usual();
	struct plane plane;
	struct err err = {0};
	(void)state;
	input.variable[PLANE_BASE_PORT] = "60000";
	input.variable[PLANE_PORT_SPAN] = "5535";
	assert_done(plane_resolve(&input, &plane, &err), &err);
	input.variable[PLANE_PORT_SPAN] = "5536";
	assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "KIROCREW_POD_PORT_SPAN");
	input.variable[PLANE_BASE_PORT] = "65400";
	input.variable[PLANE_PORT_SPAN] = NULL;
	assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "KIROCREW_POD_BASE_PORT");
}

static void each_directory_of_a_plane_is_its_own(void **state)
{
	static const struct {
		enum plane_setting which;
		const char *text, *other;
	} one[] = {
		{PLANE_ENV_DIR, "/pods", "/pods/"},
		{PLANE_ARTIFACTS_DIR, "/pods", "/registry"},
		{PLANE_ARTIFACTS_DIR, "/registry", "/registry"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(one); i++) {
		struct plane_input input = usual();
		struct plane plane;
		struct err err = {0};
		input.variable[PLANE_ROOT] = "/pods";
		input.variable[PLANE_ENV_DIR] = one[i].other;
		input.variable[one[i].which] = one[i].text;
		assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "a directory of its own");
		assert_string_equal(err.subject, plane_settings[one[i].which].variable);
		input.variable[one[i].which] = "/pods/below";
		assert_done(plane_resolve(&input, &plane, &err), &err);
	}
}

static void L20_unusable_base_directories_count_as_unset(void **state)
{
	static const struct {
		const char *value, *config, *data;
	} cases[] = {
		{NULL, "/home/u/.config", "/home/u/.local/share"},   {"", "/home/u/.config", "/home/u/.local/share"},
		{"rel", "/home/u/.config", "/home/u/.local/share"},  {"./x", "/home/u/.config", "/home/u/.local/share"},
		{"~/x", "/home/u/.config", "/home/u/.local/share"},  {"../x", "/home/u/.config", "/home/u/.local/share"},
		{"/a/../b", "/home/u/.config", "/home/u/.local/share"}, {"/..", "/home/u/.config", "/home/u/.local/share"},
		{"/a//b/", "/a/b", "/a/b"},			     {"/a/..b", "/a/..b", "/a/..b"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct plane_input input = usual();
		struct plane plane;
		struct err err = {0};
		input.xdg_config_home = input.xdg_data_home = cases[i].value;
		assert_done(plane_resolve(&input, &plane, &err), &err);
		assert_string_equal(plane.config_home, cases[i].config);
		assert_string_equal(plane.data_home, cases[i].data);
	}
	struct plane_input input = usual();
	struct plane plane;
	struct err err = {0};
	input.xdg_config_home = "/a\nb";
	assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "XDG_CONFIG_HOME");
	input.xdg_config_home = NULL;
	input.xdg_data_home = "/a\rb";
	assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "XDG_DATA_HOME");
}

static void L21_an_unusable_home_is_named(void **state)
{
	static const char *const homes[] = {NULL, "", "rel", "/a\nb", "~"};
	(void)state;
	for (size_t i = 0; i < COUNT(homes); i++) {
		struct plane_input input = usual();
		struct plane plane;
		struct err err = {0};
		input.home = homes[i];
		assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, NULL);
		assert_string_equal(err.subject, "HOME");
	}
}

static void X65_only_relative_values_need_a_working_directory(void **state)
{
	struct plane_input input = usual();
	struct plane plane;
	struct err err = {0};
	(void)state;
	input.cwd = NULL;
	assert_done(plane_resolve(&input, &plane, &err), &err);
	assert_string_equal(plane.repo, "");
	input.variable[PLANE_ROOT] = "rel";
	assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "working directory is gone");
	assert_string_equal(err.subject, "KIROCREW_POD_ROOT");
}

static char *of_length(size_t len, char with)
{
	char *text = malloc(len + 1);
	assert_non_null(text);
	memset(text, with, len);
	text[0] = '/';
	text[len] = '\0';
	return text;
}

static void L22_long_paths_are_refused_never_cut(void **state)
{
	static const struct {
		enum plane_setting which;
		size_t fits;
	} cases[] = {{PLANE_ROOT, 4095 - 15}, {PLANE_ENV_DIR, 4095}, {PLANE_ARTIFACTS_DIR, 4095}, {PLANE_PATH, 4095}, {PLANE_KIRO_BIN, 4095}};
	static const size_t more[] = {1, 20, 5000, 200000};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct plane_input input = usual();
		struct plane plane;
		struct err err = {0};
		char *text = of_length(cases[i].fits, 'x');
		input.variable[cases[i].which] = text;
		assert_done(plane_resolve(&input, &plane, &err), &err);
		free(text);
		for (size_t m = 0; m < COUNT(more); m++) {
			text = of_length(cases[i].fits + more[m], 'x');
			input.variable[cases[i].which] = text;
			assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "too long");
			free(text);
		}
	}
}

static void L22_long_search_paths_and_words_are_refused(void **state)
{
	struct plane_input input = usual();
	struct plane plane;
	struct err err = {0};
	char *text = of_length(6000, 'x');
	(void)state;
	text[3000] = ':';
	text[3001] = '/';
	input.variable[PLANE_PATH] = text;
	assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "too long");
	free(text);
	text = of_length(5000, 'x');
	text[0] = 'x';
	input.variable[PLANE_PATH] = NULL;
	input.variable[PLANE_KIRO_BIN] = text;
	assert_refused(plane_resolve(&input, &plane, &err), &err, REFUSAL_BAD_CONFIG, "neither");
	free(text);
	/* what folds to something short is not long */
	text = of_length(6000, '/');
	assert_done(path_absolute(text, "/h", "/w", plane.root, &err), &err);
	assert_string_equal(plane.root, "/");
	free(text);
}

static void paths_are_made_absolute(void **state)
{
	char out[PLANE_PATH_MAX] = "untouched";
	struct err err = {0};
	(void)state;
	assert_refused(path_absolute("", "/h", "/w", out, &err), &err, REFUSAL_BAD_CONFIG, "empty");
	assert_refused(path_absolute("x", "/h", "w", out, &err), &err, REFUSAL_BAD_CONFIG, "not absolute");
	assert_refused(path_absolute("x", "/h", "/w\n", out, &err), &err, REFUSAL_BAD_CONFIG, "newline");
	assert_refused(path_absolute("~", NULL, "/w", out, &err), &err, REFUSAL_BAD_CONFIG, "no home");
	assert_string_equal(out, "untouched");
	assert_done(path_absolute("~/x", "/", NULL, out, &err), &err);
	assert_string_equal(out, "/x");
	assert_done(path_absolute("/x", NULL, NULL, out, &err), &err);
	assert_string_equal(out, "/x");
	assert_done(path_absolute(".", NULL, "/w/", out, &err), &err);
	assert_string_equal(out, "/w");
	assert_done(path_absolute("/.hidden/...", NULL, NULL, out, &err), &err);
	assert_string_equal(out, "/.hidden/...");
}

static void climbing_and_places_below_are_told_from_text(void **state)
{
	static const struct {
		const char *path;
		bool climbs, below;
	} cases[] = {
		{"..", true, false},  {"a/..", true, false}, {"../a", true, false}, {"a/../b", true, false}, {"...", false, true}, {"..a", false, true}, {"a..", false, true},
		{"a", false, true},   {"a/b", false, true},  {"", false, false},    {"/", false, false},     {"/a", false, false}, {"a/", false, false},
		{"a//b", false, false}, {".", false, false}, {"a/./b", false, false}, {".a/b", false, true},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(path_climbs(cases[i].path), cases[i].climbs);
		assert_int_equal(path_is_below(cases[i].path), cases[i].below);
	}
}

static void backends_have_names(void **state)
{
	enum backend backend = BACKEND_LAUNCHD;
	struct err err = {0};
	(void)state;
	assert_string_equal(backend_name(BACKEND_NULL), "none");
	assert_done(backend_parse("embedded", &backend, &err), &err);
	assert_int_equal(backend, BACKEND_EMBEDDED);
	assert_refused(backend_parse("", &backend, &err), &err, REFUSAL_BAD_CONFIG, "auto, systemd, launchd or embedded");
	assert_int_equal(backend, BACKEND_EMBEDDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_set_gives_the_defaults_of_the_contract),
		cmocka_unit_test(the_table_is_that_of_the_contract),
		cmocka_unit_test(settings_are_understood_and_brought_into_shape),
		cmocka_unit_test(L23_L34_X36_unusable_settings_name_their_variable),
		cmocka_unit_test(L23_unusable_settings_name_their_file_and_key),
		cmocka_unit_test(the_variable_wins_over_the_file_and_an_empty_one_is_none),
		cmocka_unit_test(the_band_must_fit_and_the_set_one_is_named),
		cmocka_unit_test(each_directory_of_a_plane_is_its_own),
		cmocka_unit_test(L20_unusable_base_directories_count_as_unset),
		cmocka_unit_test(L21_an_unusable_home_is_named),
		cmocka_unit_test(X65_only_relative_values_need_a_working_directory),
		cmocka_unit_test(L22_long_paths_are_refused_never_cut),
		cmocka_unit_test(L22_long_search_paths_and_words_are_refused),
		cmocka_unit_test(paths_are_made_absolute),
		cmocka_unit_test(climbing_and_places_below_are_told_from_text),
		cmocka_unit_test(backends_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
