#include "pod/model/floor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/json.h"

const char floor_blank_config[] = "{\"tunnel\":{\"enabled\":false}}\n";

static const struct floor_entry {
	const char *section, *key, *word; /* word NULL: false */
} entries[] = {
    {"tunnel", "enabled", NULL},
    {"wecom", "enabled", NULL},
    {"telegram", "enabled", NULL},
    {"discord", "enabled", NULL},
    {"webex", "enabled", NULL},
    {"teams", "enabled", NULL},
    {"weixin", "enabled", NULL},
    {"imessage", "enabled", NULL},
    {"whatsapp", "enabled", NULL},
    {"feishu", "enabled", NULL},
    {"agent", "sandbox", "auto"},
    {"agent", "sandbox_allow_unsandboxed_exec", NULL},
    {"agent", "sandbox_allow_no_isolation", NULL},
};

static int entry_apply(struct json *config, const struct floor_entry *entry)
{
	if (json_kind(json_get(config, entry->section)) != JSON_KIND_OBJECT) {
		int r = json_set(config, entry->section, json_new_object());
		if (r < 0)
			return r;
	}
	struct json *section = json_get(config, entry->section);
	return json_set(section, entry->key, entry->word ? json_new_string(entry->word) : json_new_bool(false));
}

int floor_apply(const char *text, size_t len, char **ret_text, size_t *ret_len, struct err *err)
{
	AUTO_JSON struct json *config = NULL;
	int r = json_parse(text, len, &config, err);
	if (r < 0)
		return r;
	if (json_kind(config) != JSON_KIND_OBJECT)
		return err_set(err, -EINVAL, "config", NULL, "it is not a JSON object");
	for (size_t i = 0; r == 0 && i < sizeof entries / sizeof *entries; i++)
		r = entry_apply(config, &entries[i]);
	char *floored = r < 0 ? NULL : json_dump(config, 2);
	if (!floored)
		return err_code(err, r < 0 ? r : -ENOMEM, "config", NULL);
	*ret_len = strlen(floored);
	*ret_text = floored;
	return 0;
}
