/* What `up` is asked for, laid over what is recorded: the spec that will be written and booted. */
#pragma once

#include "pod/lifecycle/session.h"
#include "pod/lifecycle/up.h"
#include "pod/model/environment.h"
#include "pod/model/record.h"

/* `recorded` is the spec of an existing record (id empty: none). The payload is resolved and checked, nothing is made. */
int intent_make(struct session *session, const struct up_request *request, const struct spec *recorded, struct spec *ret_spec, struct err *err);

/* The payload is there and can be executed (else REFUSAL_NOT_PROVISIONED); argv with placeholders filled. Used again at boot. */
int payload_argv(const struct spec *spec, const struct pod_name *name, const struct pod_paths *paths, struct words *ret_argv, struct err *err);
