/* The part of pod/system/host.h that every platform answers in its own way; nobody else includes this. */
#pragma once

#include "pod/model/doctor.h"

void host_look_system(struct host_facts *facts);
