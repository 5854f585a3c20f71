#include <string.h>

#include "cmd/print.h"
#include "cmd/verbs.h"
#include "pod/model/refusal.h"
#include "pod/system/seeds.h"

static struct json *scenario_json(const struct scenario *scenario)
{
	struct json *object = json_new_object();
	if (object) {
		(void)json_set(object, "name", json_new_string(scenario->name));
		(void)json_set(object, "description", json_new_string(scenario->description));
	}
	return object;
}

static int run_scenarios(const struct arguments *arguments, struct err *err)
{
	AUTO_SCENARIOS struct scenario_listing listing = {0};
	struct json *array = NULL;
	int r = scenarios_list(&listing, err);
	if (r < 0)
		return r;
	if (arguments->value[FLAG_JSON] && (array = json_new_array()))
		for (size_t i = 0; i < listing.n; i++)
			(void)json_append(array, scenario_json(&listing.v[i]));
	if (arguments->value[FLAG_JSON]) {
		print_json(array);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < listing.n; i++) {
		print_out("%-20s ", listing.v[i].name);
		print_text(listing.v[i].description, strlen(listing.v[i].description));
		print_out("\n");
	}
	return EXIT_DONE;
}

const struct verb verb_scenarios = {
	.name = "scenarios", .operands = "", .summary = "The seeds that ship with the tool", .flags = FLAG(JSON), .run = run_scenarios};
