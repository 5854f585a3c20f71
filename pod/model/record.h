/* The record: KEY='value' lines, hand-editable, unknown keys kept (contract, section 3). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsops/err.h"
#include "pod/model/life.h"
#include "pod/model/plane.h"
#include "pod/model/text.h"

#define RECORD_BYTES_MAX 65536

struct record {
	struct record_pair {
		char *key, *value;
	} *pairs;
	size_t count;
};
int record_parse(const char *text, size_t len, struct record *ret_record, struct err *err);
int record_render(const struct record *record, char **ret_text, size_t *ret_len, struct err *err); /* refuses newline, CR in a value */
const char *record_get(const struct record *record, const char *key);                             /* NULL: not there */
int record_set(struct record *record, const char *key, const char *value, struct err *err);       /* value NULL: removes the key */
int record_copy(const struct record *record, struct record *ret_record, struct err *err);
bool record_same(const struct record *one, const struct record *other); /* the same lines in the same order */
void record_free(struct record *record);
#define AUTO_RECORD __attribute__((cleanup(record_free)))

enum approval { APPROVAL_UNSET, APPROVAL_READS, APPROVAL_YOLO, APPROVAL_INTERACTIVE };

enum health_kind { HEALTH_NONE, HEALTH_TCP, HEALTH_HTTP };
struct health {
	enum health_kind kind;
	char path[256]; /* of HTTP: "/" or what was given, at most 255 bytes */
	bool kirocrew;   /* 401 and 403 count as healthy */
};
int health_parse(const char *text, struct health *ret_health, struct err *err); /* http[:PATH] tcp none */
/* The check of a payload that names none: http:/api/health for a checkout, tcp where a command uses the port, else none. */
struct spec;
void health_default(const struct spec *spec, struct health *ret_health);
void health_render(const struct health *health, char *out, size_t size);

/* The record's meaning: every reader sees this and nothing else. Warnings are for stderr. */
#define SPEC_WARNINGS 4
struct spec {
	char id[37];              /* "" when the record has none (KiroCrew's own) */
	char *checkout;           /* absolute, at most 4095 bytes; NULL for a command payload. Owned */
	struct words exec;        /* empty for a checkout */
	int port;                 /* 0: none recorded */
	bool port_auto;           /* a machine's choice, which may move */
	char *seed;               /* absolute directory or scenario name, NULL none. Owned */
	enum approval approval;
	bool crons, embeddings;   /* defaults: off, on */
	int64_t created;          /* epoch seconds, 0 unknown */
	enum backend backend;     /* BACKEND_AUTO when not recorded */
	struct health health;
	char memory_max[32], cpu_quota[32]; /* "" none */
	char stop_secs[8];        /* STOP_SECS, "" none */
	char home_identity[64];   /* HOME_ID: inode and birth time of the home that `up` made, "" unknown */
	char root_identity[64];   /* ROOT_ID: of the pods root at that time, "" unknown */
	struct life life;         /* OWNER, EXPIRES */
	struct words warnings;    /* at most SPEC_WARNINGS */
};
int spec_from_record(const struct record *record, struct spec *ret_spec, struct err *err); /* REFUSAL_BAD_CONFIG for an unreadable PORT, EXEC, HEALTH */
int spec_to_record(const struct spec *spec, struct record *record, struct err *err);       /* sets our keys, leaves the others */
int spec_copy(const struct spec *spec, struct spec *ret_spec, struct err *err);
int spec_set_text(char **slot, const char *text, struct err *err); /* of checkout and seed; "" or NULL: none */
void spec_free(struct spec *spec);
#define AUTO_SPEC __attribute__((cleanup(spec_free)))

#define STOP_SECS_DEFAULT 15
#define STOP_SECS_MOST 3600
bool stop_secs_valid(const char *text);              /* 1 to 3600 */
unsigned spec_stop_secs(const struct spec *spec);     /* between SIGTERM and SIGKILL; 15 where none is recorded */
bool memory_max_valid(const char *text); /* 4G, 512M, infinity, 50% : systemd.resource-control(5) */
bool cpu_quota_valid(const char *text);  /* 200% */
