#include "fuzz.h"

#include "pod/model/ini.h"
#include "pod/model/ini_keys.h"
#include "pod/model/refusal.h"

/* Whatever was taken stands in the file as it is: inih cut nothing. */
static void check_whole(const char *text, size_t size, struct ini *ini)
{
	char **value;
	for (size_t i = 0; (value = ini_value(ini, i)); i++)
		if (*value)
			MUST(**value && strlen(*value) < 199 && memmem(text, size, *value, strlen(*value)));
	for (size_t i = 0; i < ini->identity_count; i++) {
		const struct ini_identity *identity = &ini->identities[i];
		MUST(*identity->name && *identity->source && *identity->staged);
		char around[256];
		(void)snprintf(around, sizeof around, "/%s/", identity->staged);
		MUST(!strstr(around, "/../") && !strstr(around, "//") && !strstr(around, "/./"));
		MUST(memmem(text, size, identity->source, strlen(identity->source)));
	}
}

/* Written out again it says the same. */
static void check_round(struct ini *ini)
{
	char *text = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&text, &len);
	MUST(stream);
	(void)fputs("[plane]\n", stream);
	for (unsigned i = 0; i < PLANE_SETTINGS; i++)
		if (ini->plane[i])
			(void)fprintf(stream, "%s=%s\n", plane_settings[i].key, ini->plane[i]);
	for (size_t i = 0; i < ini->identity_count; i++)
		(void)fprintf(stream, "[identity %s]\nsource=%s\nstaged=%s\n", ini->identities[i].name, ini->identities[i].source, ini->identities[i].staged);
	MUST(fclose(stream) == 0);
	AUTO_INI struct ini again = {.file = NULL};
	MUST(ini_read("again", text, len, INI_SCOPE_OPERATOR, &again, NULL) == 0);
	for (unsigned i = 0; i < PLANE_SETTINGS; i++)
		MUST(!ini->plane[i] == !again.plane[i] && (!again.plane[i] || !strcmp(ini->plane[i], again.plane[i])));
	MUST(ini->identity_count == again.identity_count);
	free(text);
}

static void check_plane(const struct ini *ini)
{
	struct plane_input input = {.home = "/h", .cwd = "/w", .ini = ini};
	struct plane plane;
	struct err err = {0};
	if (plane_resolve(&input, &plane, &err) < 0) {
		MUST(err.refusal == REFUSAL_BAD_CONFIG && strstr(err.subject, "f: [plane] "));
		return;
	}
	MUST(*plane.root == '/' && *plane.pods_dir == '/' && *plane.artifacts == '/' && *plane.repo == '/');
	MUST(!strstr(plane.root, "//") && !strstr(plane.root, "/./"));
	MUST(plane.port_span >= 1 && plane.base_port + plane.port_span <= 65535 && plane.health_secs >= 5 && plane.health_secs <= 3600);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	AUTO_INI struct ini ini = {.file = NULL}, checkout = {.file = NULL};
	struct err err = {0};
	int r = ini_read("f", text, size, INI_SCOPE_OPERATOR, &ini, &err);
	int c = ini_read("c", text, size, INI_SCOPE_CHECKOUT, &checkout, NULL);
	MUST(c < 0 || r == 0); /* a checkout may say less, never more */
	if (r < 0) {
		MUST(err.refusal == REFUSAL_BAD_CONFIG && !strcmp(err.subject, "f"));
		return 0;
	}
	for (unsigned i = 0; i < PLANE_SETTINGS; i++)
		MUST(!checkout.plane[i]);
	check_whole(text, size, &ini);
	check_round(&ini);
	check_plane(&ini);
	size_t count = ini.identity_count;
	MUST(ini_merge(&ini, &checkout, NULL) == 0 && ini.identity_count == count);
	return 0;
}
