/* What is left over among the unit files of a plane. Part of the systemd backend. */
#pragma once

#include "fsops/pin.h"
#include "pod/model/doctor.h"

/* Drop-ins of pods without a record, and what the template starts: fills drop_ins and template_… of the facts. pods_dir may be absent (fd -1). */
void units_look(const struct plane *plane, const struct pin *pods_dir, struct host_facts *facts);
