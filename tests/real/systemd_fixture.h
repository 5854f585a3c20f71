/* A plane of its own below a temporary directory, and the systemd backend on it. The unit's program is tests/programs/unit_payload. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "pod/model/record.h"
#include "pod/model/refusal.h"
#include "pod/system/service.h"

struct fixture {
	char directory[256], program[4096], unit_directory[4096 + 32];
	struct plane plane;
	struct pin pods_dir;
	struct service_context context;
	struct service *service;
	struct spec spec;
};
extern struct fixture fixture;

int fixture_begin(void **state); /* group setup, with a connection */
int fixture_end(void **state);   /* stops and forgets every unit of the plane, removes all files */

struct pod_name pod(const char *name);
void must(int r, const struct err *err); /* fails the test with the error's text */
#define MUST(call)                       \
	do {                             \
		struct err err = {0};    \
		must((call), &err);      \
	} while (0)
/* `call` uses &err; it must be refused so, with this in its text. */
void refused_with(int r, const struct err *err, enum refusal refusal, const char *text);
#define REFUSED(call, refusal, text)                    \
	do {                                            \
		struct err err = {0};                   \
		refused_with((call), &err, refusal, text); \
	} while (0)

/* install and start / stop and forget */
void pod_up(const char *name);
void pod_down(const char *name);
/* Waits through the backend until the unit is in this state; fails after `ms`. */
struct unit_state pod_await(const char *name, enum unit_active active, int64_t ms);
unsigned pod_starts(const char *name);
void starts_await(const char *name, unsigned count); /* bounded */
void pods_file(const char *name, const char *text);                     /* in the pods dir */
void drop_in(const char *pod_name, const char *file, const char *text); /* a foreign drop-in of the pod, known after the next reload */
void run(const char *command);                                          /* sh -c, must succeed */
/* What logs() writes, NUL-terminated; fails when it is too long for out. Returns logs()'s value. */
int pod_logs(const char *name, unsigned lines, char *out, size_t size);
bool must_work(void);
