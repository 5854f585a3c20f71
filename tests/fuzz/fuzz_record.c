#include "fuzz.h"

#include "pod/model/record.h"
#include "pod/model/refusal.h"

static void check_same_record(const struct record *a, const struct record *b)
{
	MUST(a->count == b->count);
	for (size_t i = 0; i < a->count; i++)
		MUST(!strcmp(a->pairs[i].key, b->pairs[i].key) && !strcmp(a->pairs[i].value, b->pairs[i].value));
}

/* What was read is written, and read again it is the same. */
static int check_record(const struct record *record)
{
	char *text = NULL;
	size_t len = 0;
	struct err err = {0};
	if (record_render(record, &text, &len, &err) < 0) {
		MUST(err.refusal == REFUSAL_VALUE && strstr(err.text, "bytes")); /* quotes made it longer than a record may be */
		return 0;
	}
	AUTO_RECORD struct record again = {.count = 0};
	MUST(len == strlen(text) && len <= RECORD_BYTES_MAX && record_parse(text, len, &again, NULL) == 0);
	check_same_record(record, &again);
	free(text);
	return 1;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void check_same_spec(const struct spec *a, const struct spec *b)
{
	MUST(!strcmp(a->id, b->id) && same_text(a->checkout, b->checkout) && same_text(a->seed, b->seed));
	MUST(!strcmp(a->memory_max, b->memory_max) && !strcmp(a->cpu_quota, b->cpu_quota));
	MUST(!strcmp(a->home_identity, b->home_identity) && !strcmp(a->root_identity, b->root_identity));
	MUST(a->port == b->port && a->port_auto == b->port_auto && a->approval == b->approval && a->crons == b->crons);
	MUST(a->embeddings == b->embeddings && a->created == b->created && a->backend == b->backend);
	MUST(a->health.kind == b->health.kind && !strcmp(a->health.path, b->health.path) && a->health.kirocrew == b->health.kirocrew);
	MUST(a->life.owner.pid == b->life.owner.pid && a->life.owner.start == b->life.owner.start && !strcmp(a->life.owner.boot, b->life.owner.boot));
	MUST(a->life.limit.epoch_s == b->life.limit.epoch_s && a->life.limit.boot_ms == b->life.limit.boot_ms);
	MUST(a->exec.n == b->exec.n);
	for (size_t i = 0; i < a->exec.n; i++)
		MUST(!strcmp(a->exec.v[i], b->exec.v[i]));
}

static void check_spec(const struct record *record)
{
	AUTO_SPEC struct spec spec = {.port = 0}, again = {.port = 0};
	AUTO_RECORD struct record copy = {.count = 0};
	struct err err = {0};
	if (spec_from_record(record, &spec, &err) < 0) {
		MUST(err.refusal == REFUSAL_BAD_CONFIG && *err.subject);
		return;
	}
	MUST(spec.port >= 0 && spec.port <= 65535 && spec.created >= 0 && spec.warnings.n <= SPEC_WARNINGS);
	MUST(spec.life.owner.pid >= 0 && spec.life.limit.epoch_s >= 0);
	MUST(!spec.checkout || *spec.checkout == '/');
	MUST(record_copy(record, &copy, NULL) == 0);
	if (spec_to_record(&spec, &copy, NULL) < 0) /* the sixth key too many */
		return;
	MUST(spec_from_record(&copy, &again, NULL) == 0);
	check_same_spec(&spec, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_RECORD struct record record = {.count = 0};
	if (record_parse((const char *)data, size, &record, NULL) < 0)
		return 0;
	if (check_record(&record))
		check_spec(&record);
	return 0;
}
