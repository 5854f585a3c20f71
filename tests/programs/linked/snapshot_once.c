/* One snapshot, for the benchmark: snapshot_once WAY SOURCE DESTINATION. Prints milliseconds and the peak of memory in KiB. WAY is `ours`,
 * or one of those that were weighed against it, which are here only to be measured: backup        sqlite3_backup_step(-1), the library's
 * own way transaction   a read transaction held through SQLite, files copied by descriptor, quick_check write-locks   locks that keep
 * writers away (bytes 120 to 122 of -shm), files copied by descriptor, quick_check copy          nothing but the bytes */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fsops/bytes.h"
#include "fsops/deadline.h"
#include "pod/system/snapshot.h"

static _Noreturn void fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "snapshot_once: %s: %s\n", what, why);
	exit(1);
}

static void ours(const char *source, const char *destination)
{
	char from_path[4096], from_name[4096], to_path[4096], to_name[4096];
	struct pin from, to;
	struct err err = {0};
	(void)snprintf(from_path, sizeof from_path, "%s", source);
	(void)snprintf(from_name, sizeof from_name, "%s", source);
	(void)snprintf(to_path, sizeof to_path, "%s", destination);
	(void)snprintf(to_name, sizeof to_name, "%s", destination);
	if (pin_open(dirname(from_path), &from, &err) < 0 || pin_open(dirname(to_path), &to, &err) < 0 ||
	    snapshot_database(&from, basename(from_name), &to, basename(to_name), deadline_in_ms(60000), &err) < 0)
		fail(err.subject, err.text);
}

static sqlite3 *database(const char *path, int flags)
{
	sqlite3 *db = NULL;
	if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK)
		fail(path, sqlite3_errmsg(db));
	(void)sqlite3_busy_timeout(db, 5000);
	return db;
}

static void run(sqlite3 *db, const char *text)
{
	char *message = NULL;
	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		fail(text, message);
}

static void backup(const char *source, const char *destination)
{
	sqlite3 *from = database(source, SQLITE_OPEN_READONLY), *to = database(destination, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");
	if (!copy || sqlite3_backup_step(copy, -1) != SQLITE_DONE || sqlite3_backup_finish(copy) != SQLITE_OK)
		fail(source, sqlite3_errmsg(to));
	(void)sqlite3_close(to);
	(void)sqlite3_close(from);
}

static void copy_file(const char *source, const char *destination, const char *suffix)
{
	char from_path[4200], to_path[4200];
	struct err err = {0};
	(void)snprintf(from_path, sizeof from_path, "%s%s", source, suffix);
	(void)snprintf(to_path, sizeof to_path, "%s%s", destination, suffix);
	int from = open(from_path, O_RDONLY | O_CLOEXEC), to = open(to_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	off_t size = lseek(from, 0, SEEK_END);
	if (from < 0 || to < 0 || size < 0 || bytes_copy(from, to, (uint64_t)size, DEADLINE_NEVER, &err) < 0)
		fail(from_path, strerror(errno));
	/* Not closed: that would drop the locks that SQLite has on the file in this process. */
	(void)close(to);
}

static void copy_both(const char *source, const char *destination)
{
	copy_file(source, destination, "");
	copy_file(source, destination, "-wal");
}

static void recover(const char *destination)
{
	sqlite3 *db = database(destination, SQLITE_OPEN_READWRITE);
	run(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA quick_check(1)");
	(void)sqlite3_close(db);
}

static void transaction(const char *source, const char *destination)
{
	sqlite3 *db = database(source, SQLITE_OPEN_READONLY);
	run(db, "BEGIN; SELECT count(*) FROM sqlite_schema");
	copy_both(source, destination);
	run(db, "COMMIT");
	(void)sqlite3_close(db);
	recover(destination);
}

static void write_locks(const char *source, const char *destination)
{
	char path[4200];
	(void)snprintf(path, sizeof path, "%s-shm", source);
	int shm = open(path, O_RDWR | O_CLOEXEC);
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 120, .l_len = 3};
	struct backoff backoff = {0};
	struct deadline until = deadline_in_ms(5000);
	while (fcntl(shm, F_OFD_SETLK, &range) < 0) {
		if (deadline_passed(until))
			fail(path, strerror(errno));
		backoff_sleep(&backoff, until);
	}
	copy_both(source, destination);
	(void)close(shm);
	recover(destination);
}

static const struct way {
	const char *name;
	void (*run)(const char *, const char *);
} ways[] = {{"ours", ours}, {"backup", backup}, {"transaction", transaction}, {"write-locks", write_locks}, {"copy", copy_both}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 4 && i < sizeof ways / sizeof *ways; i++) {
		if (strcmp(argv[1], ways[i].name) != 0)
			continue;
		struct rusage usage;
		int64_t began = monotonic_ns();
		ways[i].run(argv[2], argv[3]);
		int64_t took = monotonic_ns() - began;
		(void)getrusage(RUSAGE_SELF, &usage);
		(void)printf("%.1f %ld\n", (double)took / 1e6, usage.ru_maxrss);
		return 0;
	}
	(void)fprintf(stderr, "usage: snapshot_once ours|backup|transaction|write-locks|copy SOURCE DESTINATION\n");
	return 2;
}
