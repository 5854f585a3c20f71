/* For verbs about one recorded pod: session, name and spec in one step; an unknown pod is REFUSAL_NO_SUCH_POD. */
#pragma once

#include "cmd/verbs.h"
#include "pod/lifecycle/look.h"

int pod_of(const struct arguments *arguments, struct session *session, struct pod_name *ret_name, struct spec *ret_spec, struct err *err);
