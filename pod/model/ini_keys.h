/* What a configuration file may say: sections, keys, and what their values must be. Internal to pod/model. */
#pragma once

#include <stdbool.h>

#include "pod/model/ini.h"

#define INI_IDENTITIES_MAX 32

/* The values that belong to no identity, one after the other; NULL past the last. */
char **ini_value(struct ini *ini, size_t index);
/* NULL when the section may stand in a file of this scope, else why not. */
const char *ini_section_refused(const char *section, enum ini_scope scope);
/* Where [section] key is kept, made if it is an identity's; NULL with *ret_why, which stays NULL when memory is out. */
char **ini_slot(struct ini *ini, const char *section, const char *key, const char **ret_why);
/* Can the value, which is not empty, be used? 0; -EINVAL with *ret_why; -ENOMEM. */
int ini_value_check(const char *section, const char *key, const char *value, const char **ret_why);
