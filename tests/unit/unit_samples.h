/* What the tests of units share: a plane, and values that have hurt somebody. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pod/model/name.h"
#include "pod/model/unit_text.h"

static struct plane plane;
static struct unit_input input;
static struct pod_name name;

static int setup(void **state)
{
	(void)state;
	struct err err = {0};
	plane = (struct plane){.home = "/home/op",
			       .root = "/home/op/.kirocrew-pods",
			       .pods_dir = "/home/op/.kiro/crew/pods",
			       .artifacts = "/home/op/.kirocrew-pods/.e2e-artifacts",
			       .config_home = "/home/op/.config",
			       .data_home = "/home/op/.local/share",
			       .base_port = 7810,
			       .port_span = 199,
			       .live_port = 5476,
			       .prefix = "kirocrew-pod",
			       .path = "/usr/bin:/bin",
			       .repo = "/home/op/src",
			       .health_secs = 90};
	input = (struct unit_input){.plane = &plane, .program = "/usr/bin/kirocrew-pod", .stop_secs = 15};
	assert_int_equal(pod_name_parse("demo", 4, &name, &err), 0);
	return 0;
}

/* Values that have hurt somebody (V03, V04, X20, X24). */
static const char *const hostile[] = {
    "/a b",	" /edge ",   "/%",	  "/%h/%%/100%25", "/$HOME/${X}/$$/end$",   "/quo\"te's",	 "/back\\slash\\", "/n\nl",
    "/cr\r/nl", "/tab\tx",   "/\x1b[31m", "/#;&&*|!@+:-x", "/\xc3\xbc\xe2\x98\x83", "/\xf0\x9f\x8c\x8a", "/\x7f",	   "/\\x41\\n",
    "/a,b=c",	"/`id`$(x)", "/@plane@",  "/\xc2\x85",	   "/\xef\xbb\xbfzwnbsp",   "/end of line \\",
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline void skip_unless_must_work(const char *why)
{
	const char *must = getenv("MUST_WORK");
	if (must && strcmp(must, "1") == 0)
		fail_msg("%s", why);
	print_message("skipped: %s\n", why);
	skip();
}
