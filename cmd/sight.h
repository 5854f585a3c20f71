/* A pod as a line and as JSON: the same for `ls` and `status`. */
#pragma once

#include "pod/lifecycle/look.h"
#include "pod/model/json.h"

struct json *sight_json(const struct session *session, const struct sight *sight);
struct json *stranger_json(const struct session *session, const char *entry);
void sight_heading(void);
void sight_line(const struct sight *sight);
void stranger_line(const char *entry);
void sight_health(const struct pod_facts *facts, char *out, size_t size); /* "ok", "503", "no answer", "-" */
