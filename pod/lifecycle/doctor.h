/* Is this host fit for pods, and is anything left over? System reads only, then the pure judgement. */
#pragma once

#include "fsops/err.h"
#include "pod/model/doctor.h"

/* `config` as for session_open. A setting that cannot be used is a finding; an error is returned only when memory is out. Makes nothing. */
int doctor(const char *config, struct findings *ret_findings, struct err *err);
