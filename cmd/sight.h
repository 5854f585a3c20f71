/* A pod as a line and as JSON: the same for `ls` and `status`. */
#pragma once

#include "pod/lifecycle/look.h"
#include "pod/model/json.h"
#include "pod/model/table.h"

struct json *sight_json(const struct session *session, const struct sight *sight);
struct json *stranger_json(const struct session *session, const char *entry);
struct table sight_table(void); /* without rows; OWNER and LEFT show where a pod has one */
int sight_row(struct table *table, const struct sight *sight);
/* All but what passing time changes, one text to compare; malloc'ed, NULL when memory is out. */
char *sight_substance(const struct table *table);
int stranger_row(struct table *table, const char *entry);
void sight_health(const struct pod_facts *facts, char *out, size_t size); /* "ok", "503", "no answer", "-" */
