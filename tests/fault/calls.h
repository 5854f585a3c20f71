/* The system calls that are counted, what each can fail with (its man page), and the seccomp filter that stops a traced process at them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CALL_ERRNOS 8

struct call {
	long number;
	const char *name;
	int errnos[CALL_ERRNOS]; /* ended by 0 */
	bool changes;		 /* something that outlives the process */
	int path;		 /* which argument is a path, 0 none; the one before it is its directory where `at` */
	bool at;
};
/* One call that a process is about to make. */
struct call_made {
	const struct call *call;
	uint64_t args[6];
	bool changes;
	char path[256], directory[256]; /* unprintable bytes as '?' */
};

const struct call *call_named(const char *name, size_t len);
/* False: it is not one of the table, or one that cannot fail (fcntl(F_GETFD)). */
bool call_look(pid_t pid, long number, const uint64_t args[6], struct call_made *ret_made);
/* 0 when there is no k-th, from 0. */
int call_errno(const struct call *call, unsigned k);
/* Of this process and all that it starts; -1 and errno. The calls fail with ENOSYS when nobody traces. */
int call_filter_install(void);
