/* Real databases, real writers in their own processes, and a look at a directory that finds every trace. For the tests of snapshots and
 * stores. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsops/cleanup.h"
#include "fsops/deadline.h"
#include "fsops/pin.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

/* What takes no time on a quiet host; one that hangs takes more on any. */
#define QUICK_MS 10000

/* Every test works in its own directory, which the teardown takes away. */
struct place {
	char path[256];
	struct pin from, to; /* <path>/from and <path>/to */
};

static inline void remove_all(const char *path)
{
	char command[512];
	(void)snprintf(command, sizeof command, "chmod -R u+rwX '%s' 2>/dev/null; rm -rf '%s'", path, path);
	assert_int_equal(system(command), 0);
}

static inline int place_make(void **state)
{
	struct place *place = calloc(1, sizeof *place);
	const char *base = getenv("TMPDIR");
	char path[300];
	(void)snprintf(place->path, sizeof place->path, "%s/kp-XXXXXX", base && *base ? base : "/tmp");
	assert_non_null(mkdtemp(place->path));
	(void)snprintf(path, sizeof path, "%s/from", place->path);
	assert_int_equal(pin_make_path(path, 0700, &place->from, NULL), 0);
	(void)snprintf(path, sizeof path, "%s/to", place->path);
	assert_int_equal(pin_make_path(path, 0700, &place->to, NULL), 0);
	*state = place;
	return 0;
}

static inline int place_drop(void **state)
{
	struct place *place = *state;
	pin_close(&place->from);
	pin_close(&place->to);
	remove_all(place->path);
	free(place);
	return 0;
}

static inline const char *in_place(const struct place *place, const char *relative)
{
	static char paths[4][512];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	(void)snprintf(path, sizeof paths[0], "%s/%s", place->path, relative);
	return path;
}

static inline void write_file(const char *path, const void *bytes, size_t len)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (len) {
		ssize_t n = write(fd, bytes, len);
		assert_true(n > 0);
		bytes = (const char *)bytes + n;
		len -= (size_t)n;
	}
}

static inline bool is_there(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

static inline off_t size_of(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 ? st.st_size : -1;
}

static inline size_t entries_in(const char *path)
{
	size_t n = 0;
	DIR *stream = opendir(path);
	assert_non_null(stream);
	for (struct dirent *entry; (entry = readdir(stream));)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	(void)closedir(stream);
	return n;
}

static inline uint64_t fnv(uint64_t hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	while (len--)
		hash = (hash ^ *at++) * 0x100000001b3u;
	return hash;
}

static inline uint64_t file_hash(int dir, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;
	char buffer[65536];
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	for (ssize_t n; fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0;)
		hash = fnv(hash, buffer, (size_t)n);
	return hash;
}

/* Names, bytes, modes, links and modification times of everything in a directory and of the directory itself, whatever the order. */
static inline uint64_t directory_trace(const char *path)
{
	struct stat st;
	uint64_t sum = 0;
	DIR *stream = opendir(path);
	assert_non_null(stream);
	for (struct dirent *entry; (entry = readdir(stream));) {
		if (strcmp(entry->d_name, "..") == 0)
			continue;
		assert_int_equal(fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
		uint64_t hash = fnv(0xcbf29ce484222325u, entry->d_name, strlen(entry->d_name));
		hash = fnv(hash, &st.st_mtim, sizeof st.st_mtim);
		hash = fnv(hash, &st.st_mode, sizeof st.st_mode);
		hash = fnv(hash, &st.st_nlink, sizeof st.st_nlink);
		hash = fnv(hash, &st.st_ino, sizeof st.st_ino);
		if (S_ISREG(st.st_mode))
			hash ^= file_hash(dirfd(stream), entry->d_name);
		sum += hash;
	}
	(void)closedir(stream);
	return sum;
}

static inline void sql(sqlite3 *db, const char *text)
{
	char *message = NULL;
	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK) {
		(void)fprintf(stderr, "%s: %s\n", text, message);
		abort();
	}
}

static inline sqlite3 *database_open(const char *path)
{
	sqlite3 *db = NULL;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
		abort();
	(void)sqlite3_busy_timeout(db, 10000);
	return db;
}

static inline int64_t ask_integer(sqlite3 *db, const char *query)
{
	sqlite3_stmt *statement = NULL;
	int64_t answer = -1;
	if (sqlite3_prepare_v2(db, query, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
		answer = sqlite3_column_int64(statement, 0);
	(void)sqlite3_finalize(statement);
	return answer;
}

static inline bool is_sound(sqlite3 *db)
{
	sqlite3_stmt *statement = NULL;
	bool sound = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL) == SQLITE_OK &&
		     sqlite3_step(statement) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;
	(void)sqlite3_finalize(statement);
	return sound;
}

/* A program of SQL in a process of its own that goes on until it is killed; `shared` is a counter that both see. */
struct writer {
	pid_t pid;
	volatile int64_t *shared;
};

static inline struct writer writer_start(const char *path, void (*body)(const char *path, volatile int64_t *shared))
{
	struct writer writer = {.shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
	assert_true(writer.shared != MAP_FAILED);
	writer.pid = fork();
	assert_true(writer.pid >= 0);
	if (writer.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody behind */
		body(path, writer.shared);
		_exit(0);
	}
	return writer;
}

static inline void writer_await(const struct writer *writer, int64_t at_least)
{
	struct deadline until = deadline_in_ms(20000);
	struct backoff backoff = {0};
	while (*writer->shared < at_least && !deadline_passed(until)) {
		assert_int_equal(waitpid(writer->pid, NULL, WNOHANG), 0);
		backoff_sleep(&backoff, until);
	}
	assert_true(*writer->shared >= at_least);
}

static inline void writer_kill(struct writer *writer)
{
	(void)kill(writer->pid, SIGKILL);
	assert_int_equal(waitpid(writer->pid, NULL, 0), writer->pid);
	(void)munmap((void *)writer->shared, 4096);
}

static inline void nap_ms(int64_t ms)
{
	struct backoff backoff = {0};
	for (struct deadline until = deadline_in_ms(ms); !deadline_passed(until);)
		backoff_sleep(&backoff, until);
}
