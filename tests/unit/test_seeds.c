/* Blank homes, directory seeds and the scenarios that ship with the tool. */
#include "tests/unit/database_fixture.h"

#include "fsops/file.h"
#include "pod/model/json.h"
#include "pod/model/refusal.h"
#include "pod/system/homes.h"
#include "pod/system/seeds.h"
#include "tests/unit/stepper.h"

#define ID "0123abcd-0000-4000-8000-0123456789ab"

struct scene {
	struct place *place;
	struct pin home;
	char path[300];
	const char *seed;
};

static void home_new(struct scene *scene, struct place *place)
{
	struct pod_name name;
	scene->place = place;
	assert_int_equal(pod_name_parse("a", 1, &name, NULL), 0);
	assert_int_equal(home_make(&place->to, &name, ID, &scene->home, NULL), 0);
	(void)snprintf(scene->path, sizeof scene->path, "%s/to/a", place->path);
}

static void home_gone(struct scene *scene)
{
	pin_close(&scene->home);
	remove_all(scene->path);
}

static int apply(struct scene *scene, const char *seed, struct err *err)
{
	return seed_apply(&scene->home, scene->path, seed, true, err);
}

static const char *shipped(void)
{
	const char *source = getenv("TEST_SOURCE");
	static char path[512];
	(void)snprintf(path, sizeof path, "%s/scenarios", source ? source : ".");
	return path;
}

static int use_shipped(void **state)
{
	assert_int_equal(setenv("KIROCREW_POD_SCENARIOS", shipped(), 1), 0);
	if (access(shipped(), F_OK) < 0)
		fail_msg("TEST_SOURCE has to name the sources; there is no %s", shipped());
	return place_make(state);
}

static char *read_all(const struct pin *at, const char *name)
{
	char *text = NULL;
	size_t len = 0;
	struct err err = {0};
	if (file_read(at, name, 1 << 20, &text, &len, &err) < 0)
		fail_msg("%s: %s", name, err.text);
	return text;
}

static mode_t mode_in(const struct scene *scene, const char *name)
{
	struct stat st;
	assert_int_equal(fstatat(scene->home.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode;
}

static void blank_homes(void **state)
{
	struct scene scene;
	home_new(&scene, *state);
	assert_int_equal(seed_apply(&scene.home, scene.path, "", false, NULL), 0);
	assert_int_equal(entries_in(scene.path), 1);
	assert_int_equal(apply(&scene, "", NULL), 0);
	AUTO_FREE char *text = read_all(&scene.home, SEED_CONFIG);
	assert_string_equal(text, "{\"tunnel\":{\"enabled\":false}}\n");
	assert_int_equal(mode_in(&scene, SEED_CONFIG), S_IFREG | 0600);
	assert_int_equal(entries_in(scene.path), 2);
	home_gone(&scene);
}

static void a_config_that_is_there_stays(void **state)
{
	struct place *place = *state;
	struct scene scene;
	home_new(&scene, place);
	write_file(in_place(place, "to/a/config.json"), "mine", 4);
	write_file(in_place(place, "from/config.json"), "{}", 2);
	assert_int_equal(apply(&scene, "", NULL), 0);
	assert_int_equal(apply(&scene, in_place(place, "from"), NULL), 0);
	AUTO_FREE char *text = read_all(&scene.home, SEED_CONFIG);
	assert_string_equal(text, "mine");
	home_gone(&scene);
}

static void I06_a_config_that_is_no_file_is_refused(void **state)
{
	struct place *place = *state;
	struct scene scene;
	struct deadline quick = deadline_in_ms(QUICK_MS);
	home_new(&scene, place);
	write_file(in_place(place, "victim"), "sentinel", 8);
	write_file(in_place(place, "from/config.json"), "{}", 2);
	const char *const seeds[] = {"", in_place(place, "from")};
	for (size_t i = 0; i < 8; i++) {
		const char *path = in_place(place, "to/a/config.json");
		switch (i / 2) {
		case 0:
			assert_int_equal(symlink("../../victim", path), 0);
			break;
		case 1:
			assert_int_equal(symlink("../../nobody", path), 0);
			break;
		case 2:
			assert_int_equal(mkfifo(path, 0600), 0);
			break;
		default:
			assert_int_equal(mkdir(path, 0700), 0);
		}
		struct err err = {0};
		assert_int_equal(apply(&scene, seeds[i % 2], &err), -EPERM);
		assert_int_equal(err.refusal, REFUSAL_HOME);
		assert_string_equal(err.subject, SEED_CONFIG);
		remove_all(path);
	}
	assert_false(deadline_passed(quick));
	assert_int_equal(size_of(in_place(place, "victim")), 8);
	assert_false(is_there(in_place(place, "nobody")));
	home_gone(&scene);
}

static void directory_seed_takes_the_config_alone_and_lays_the_floor(void **state)
{
	struct place *place = *state;
	struct scene scene;
	static const char config[] = "{\"telegram\":{\"enabled\":true},\"agent\":{\"sandbox\":\"off\"},\"kept\":1}";
	home_new(&scene, place);
	write_file(in_place(place, "from/config.json"), config, strlen(config));
	write_file(in_place(place, "from/secret"), "x", 1);
	assert_int_equal(seed_check(in_place(place, "from"), NULL), 0);
	assert_int_equal(apply(&scene, in_place(place, "from"), NULL), 0);
	assert_int_equal(entries_in(scene.path), 2);
	assert_int_equal(mode_in(&scene, SEED_CONFIG), S_IFREG | 0600);
	AUTO_FREE char *text = read_all(&scene.home, SEED_CONFIG);
	AUTO_JSON struct json *json = NULL;
	assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
	struct json *enabled = json_get(json_get(json, "telegram"), "enabled");
	assert_int_equal(json_kind(enabled), JSON_KIND_BOOL);
	assert_false(json_truth(enabled));
	assert_string_equal(json_text(json_get(json_get(json, "agent"), "sandbox")), "auto");
	assert_int_equal(json_number(json_get(json, "kept"), 0), 1);
	home_gone(&scene);
}

static void assert_seed_refused(const char *seed, const char *part)
{
	struct err err = {0};
	assert_int_equal(seed_check(seed, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_SEED);
	assert_int_equal(err_exit_status(&err), 78);
	if (!strstr(err.text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, err.text);
}

static void I06_directory_seeds_that_cannot_be_used(void **state)
{
	struct place *place = *state;
	struct deadline quick = deadline_in_ms(QUICK_MS);
	const char *config = in_place(place, "from/config.json");
	char from[300];
	(void)snprintf(from, sizeof from, "%s/from", place->path);
	assert_seed_refused(from, "config.json");
	assert_seed_refused("/nowhere/at/all", "");
	static const char *const bad[] = {"", "[]", "{\"a\":", "{\"a\":1,\"a\":2}"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_file(config, bad[i], strlen(bad[i]));
		assert_seed_refused(from, "");
	}
	assert_int_equal(truncate(config, 2 << 20), 0);
	assert_seed_refused(from, "config.json");
	assert_int_equal(unlink(config), 0);
	assert_int_equal(mkfifo(config, 0600), 0);
	assert_seed_refused(from, "config.json");
	assert_int_equal(unlink(config), 0);
	assert_int_equal(symlink("/dev/zero", config), 0);
	assert_seed_refused(from, "config.json");
	assert_false(deadline_passed(quick));
}

static void scenarios_are_listed(void **state)
{
	(void)state;
	AUTO_SCENARIOS struct scenario_listing listing = {0};
	assert_int_equal(scenarios_list(&listing, NULL), 0);
	assert_true(listing.n >= 2);
	bool minimal = false, two = false;
	for (size_t i = 0; i < listing.n; i++) {
		assert_int_equal(seed_check(listing.v[i].name, NULL), 0);
		assert_true(*listing.v[i].description);
		assert_true(i == 0 || strcmp(listing.v[i - 1].name, listing.v[i].name) < 0);
		minimal |= strcmp(listing.v[i].name, "minimal") == 0;
		two |= strcmp(listing.v[i].name, "connections-two") == 0;
	}
	assert_true(minimal && two);
}

static void an_unknown_scenario_is_refused_with_the_list(void **state)
{
	(void)state;
	assert_seed_refused("no-such", "connections-two, minimal");
	assert_seed_refused("..", "connections-two");
	assert_int_equal(seed_check("", NULL), 0);
}

static void without_scenarios_it_says_so(void **state)
{
	struct place *place = *state;
	struct scenario_listing listing;
	assert_int_equal(setenv("KIROCREW_POD_SCENARIOS", in_place(place, "none"), 1), 0);
	assert_int_equal(scenarios_list(&listing, NULL), -ENOENT);
	assert_seed_refused("minimal", "none");
	assert_int_equal(setenv("KIROCREW_POD_SCENARIOS", in_place(place, "from"), 1), 0);
	assert_seed_refused("minimal", "there are: none");
}

static void every_scenario_is_applied_once(void **state)
{
	struct place *place = *state;
	AUTO_SCENARIOS struct scenario_listing listing = {0};
	assert_int_equal(scenarios_list(&listing, NULL), 0);
	for (size_t i = 0; i < listing.n; i++) {
		struct scene scene;
		struct err err = {0};
		home_new(&scene, place);
		if (apply(&scene, listing.v[i].name, &err) < 0)
			fail_msg("%s: %s", listing.v[i].name, err.text);
		assert_int_equal(mode_in(&scene, SEED_MANIFEST), S_IFREG | 0600);
		assert_int_equal(mode_in(&scene, SEED_CONFIG), S_IFREG | 0600);
		AUTO_FREE char *config = read_all(&scene.home, SEED_CONFIG);
		AUTO_JSON struct json *json = NULL;
		assert_int_equal(json_parse(config, strlen(config), &json, NULL), 0);
		assert_int_equal(json_kind(json_get(json_get(json, "whatsapp"), "enabled")), JSON_KIND_BOOL); /* the floor is there */
		write_file(in_place(place, "to/a/config.json"), "{\"mine\":1}", 10);
		uint64_t before = directory_trace(scene.path);
		assert_int_equal(apply(&scene, listing.v[i].name, NULL), 0);
		assert_true(directory_trace(scene.path) == before);
		home_gone(&scene);
	}
}

static void connections_two_names_servers_that_are_there(void **state)
{
	struct scene scene;
	home_new(&scene, *state);
	assert_int_equal(apply(&scene, "connections-two", NULL), 0);
	AUTO_PIN struct pin settings = PIN_NONE;
	assert_int_equal(pin_descend(&scene.home, "kiro/settings", &settings, NULL), 0);
	AUTO_FREE char *text = read_all(&settings, "mcp.json");
	assert_null(strstr(text, "{home}"));
	AUTO_JSON struct json *json = NULL;
	assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
	struct json *servers = json_get(json, "mcpServers");
	assert_int_equal(json_count(servers), 2);
	for (size_t i = 0; i < 2; i++) {
		struct json *args = json_get(json_value_at(servers, i), "args");
		char command[2048], answer[1024] = "";
		assert_int_equal(access(json_text(json_at(args, 0)), R_OK), 0);
		assert_true(strncmp(json_text(json_at(args, 0)), scene.path, strlen(scene.path)) == 0);
		(void)snprintf(command, sizeof command,
			       "printf '%%s\\n' "
			       "'{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}}' "
			       "'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}' "
			       "'{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/list\"}'"
			       " | %s '%s' '%s' '%s' '%s'",
			       json_text(json_get(json_value_at(servers, i), "command")), json_text(json_at(args, 0)),
			       json_text(json_at(args, 1)), json_text(json_at(args, 2)), json_text(json_at(args, 3)));
		FILE *out = popen(command, "re");
		assert_non_null(fgets(answer, sizeof answer, out));
		AUTO_JSON struct json *first = NULL;
		assert_int_equal(json_parse(answer, strlen(answer), &first, NULL), 0);
		assert_int_equal(json_number(json_get(first, "id"), 0), 5);
		assert_string_equal(json_text(json_get(json_get(first, "result"), "protocolVersion")), "2025-06-18");
		assert_non_null(fgets(answer, sizeof answer, out));
		AUTO_JSON struct json *second = NULL;
		assert_int_equal(json_parse(answer, strlen(answer), &second, NULL), 0);
		assert_string_equal(json_text(json_get(second, "id")), "x");
		assert_int_equal(json_count(json_get(json_get(second, "result"), "tools")), 1);
		assert_null(fgets(answer, sizeof answer, out));
		assert_int_equal(pclose(out), 0);
	}
	home_gone(&scene);
}

static void assert_incomplete(struct scene *scene, const char *part)
{
	struct err err = {0};
	uint64_t before = directory_trace(scene->path);
	assert_int_equal(apply(scene, "minimal", &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_SEED_INCOMPLETE);
	assert_int_equal(err_exit_status(&err), 78);
	if (!strstr(err.text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, err.text);
	assert_true(directory_trace(scene->path) == before);
}

static void a_populated_home_without_the_manifest_is_refused(void **state)
{
	struct place *place = *state;
	struct scene scene;
	home_new(&scene, place);
	write_file(in_place(place, "to/a/state.db"), "x", 1);
	assert_incomplete(&scene, "state.db");
	home_gone(&scene);
	home_new(&scene, place);
	assert_int_equal(apply(&scene, "connections-two", NULL), 0);
	assert_incomplete(&scene, "connections-two");
	assert_int_equal(unlink(in_place(place, "to/a/fixture.yaml")), 0);
	assert_int_equal(mkfifo(in_place(place, "to/a/fixture.yaml"), 0600), 0);
	assert_incomplete(&scene, "fixture.yaml");
	home_gone(&scene);
}

static int apply_minimal(void *context)
{
	struct scene *scene = context;
	return seed_apply(&scene->home, scene->path, scene->seed, true, NULL);
}

/* Killed before every single system call: the next boot finds all of it, or nothing and begins, or refuses. Never a partial home that
 * passes. */
static void I10_killed_before_every_call(void **state)
{
	struct place *place = *state;
	static const char *const seeds[] = {"connections-two", ""};
	for (size_t s = 0; s < 2; s++) {
		int refused = 0, complete = 0;
		for (int n = 0;; n++) {
			struct scene scene = {.seed = seeds[s]};
			home_new(&scene, place);
			struct stepped stepped = {.call = apply_minimal, .context = &scene, .at = n, .kill = true};
			struct stepped_end end = step_run(&stepped);
			struct err err = {0};
			int r = apply(&scene, seeds[s], &err);
			if (r < 0) {
				assert_int_equal(err.refusal, REFUSAL_SEED_INCOMPLETE);
				refused++;
			} else {
				AUTO_FREE char *config = read_all(&scene.home, SEED_CONFIG);
				AUTO_JSON struct json *json = NULL;
				assert_int_equal(json_parse(config, strlen(config), &json, NULL), 0);
				if (*seeds[s]) {
					assert_true(is_there(in_place(place, "to/a/kiro/mcp/server.sh")));
					assert_true(is_there(in_place(place, "to/a/sessions/2025-01-01-first-look/messages.jsonl")));
					AUTO_PIN struct pin settings = PIN_NONE;
					assert_int_equal(pin_descend(&scene.home, "kiro/settings", &settings, NULL), 0);
					AUTO_FREE char *mcp = read_all(&settings, "mcp.json");
					assert_null(strstr(mcp, "{home}"));
				}
				complete++;
			}
			home_gone(&scene);
			if (!end.acted)
				break;
		}
		assert_true(complete > 2);
		assert_true(*seeds[s] ? refused > 10 : refused == 0);
	}
}

static void I06_odd_files_in_a_scenario(void **state)
{
	struct place *place = *state;
	struct scene scene;
	assert_int_equal(mkdir(in_place(place, "from/odd"), 0700), 0);
	write_file(in_place(place, "from/odd/fixture.yaml"), "fixture-name: 'odd'\n", 20);
	assert_int_equal(setenv("KIROCREW_POD_SCENARIOS", in_place(place, "from"), 1), 0);
	static const char *const odd[] = {"from/odd/fifo", "from/odd/link"};
	for (size_t i = 0; i < 2; i++) {
		struct err err = {0};
		home_new(&scene, place);
		if (i == 0)
			assert_int_equal(mkfifo(in_place(place, odd[i]), 0600), 0);
		else
			assert_int_equal(symlink("/dev/zero", in_place(place, odd[i])), 0);
		assert_int_equal(apply(&scene, "odd", &err), -EPERM);
		assert_int_equal(err.refusal, REFUSAL_SEED_INCOMPLETE);
		if (!strstr(err.text, strrchr(odd[i], '/') + 1))
			fail_msg("%s is not named in \"%s\"", odd[i], err.text);
		assert_false(is_there(in_place(place, "to/a/fixture.yaml")));
		assert_int_equal(unlink(in_place(place, odd[i])), 0);
		home_gone(&scene);
	}
	home_new(&scene, place);
	assert_int_equal(apply(&scene, "odd", NULL), 0);
	home_gone(&scene);
}

static void manifests_that_do_not_count(void **state)
{
	struct place *place = *state;
	static const char *const texts[] = {
	    "", "name: odd\n", "fixture-name:\n", "fixture-name: other\n", "fixture-name: ../odd\n", "\0fixture-name: odd\n"};
	assert_int_equal(setenv("KIROCREW_POD_SCENARIOS", in_place(place, "from"), 1), 0);
	assert_int_equal(mkdir(in_place(place, "from/odd"), 0700), 0);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		write_file(in_place(place, "from/odd/fixture.yaml"), texts[i], i == 5 ? 20 : strlen(texts[i]));
		assert_seed_refused("odd", "there are: none");
	}
	write_file(in_place(place, "from/odd/fixture.yaml"), "# x\r\nfixture-name: \"odd\" \r\n", 27);
	assert_int_equal(seed_check("odd", NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, use_shipped, place_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(blank_homes),
	    TEST(a_config_that_is_there_stays),
	    TEST(I06_a_config_that_is_no_file_is_refused),
	    TEST(directory_seed_takes_the_config_alone_and_lays_the_floor),
	    TEST(I06_directory_seeds_that_cannot_be_used),
	    TEST(scenarios_are_listed),
	    TEST(an_unknown_scenario_is_refused_with_the_list),
	    TEST(without_scenarios_it_says_so),
	    TEST(every_scenario_is_applied_once),
	    TEST(connections_two_names_servers_that_are_there),
	    TEST(a_populated_home_without_the_manifest_is_refused),
	    TEST(I10_killed_before_every_call),
	    TEST(I06_odd_files_in_a_scenario),
	    TEST(manifests_that_do_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
