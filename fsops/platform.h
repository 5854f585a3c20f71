/* Names that another system spells differently. What needs more than a name lives in X_linux.c and X_macos.c beside each other. */
#pragma once

#ifdef __APPLE__
#include "fsops/platform_macos.h"
#else
#include <fcntl.h>
/* Holds what the name is, a link included, without opening it. */
#define O_PATH_ITSELF (O_PATH | O_NOFOLLOW)
#endif
