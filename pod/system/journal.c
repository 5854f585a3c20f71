#include "pod/system/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/file.h"
#include "pod/system/library.h"

#define LINE_BYTES_MAX (1UL << 20)
#define FOLLOW_MS 1000

#define FUNCTIONS(F) F(journal_add_disjunction) F(journal_add_match) F(journal_close) F(journal_get_data) \
	F(journal_get_events) F(journal_get_fd) F(journal_get_realtime_usec) F(journal_next) F(journal_open) F(journal_previous_skip) F(journal_process) \
	F(journal_seek_head) F(journal_seek_tail) F(journal_send) F(journal_set_data_threshold)
#define SLOT(name) __typeof__(sd_##name) *name;
#define NAMED(name) {"sd_" #name, &sd.name},

static struct {
	FUNCTIONS(SLOT)
} sd;

#define AUTO_JOURNAL CLEANUP(journal_free)

static int sd_load(struct err *err)
{
	static const struct library_function functions[] = {FUNCTIONS(NAMED)};
	return sd.journal_open ? 0 : library_load(LIBRARY_FILE("systemd", "0"), functions, sizeof functions / sizeof *functions, err);
}

static void journal_free(sd_journal **journal)
{
	if (*journal)
		sd.journal_close(*journal);
}

/* On a socket that is not there journald does not listen, and units write to nowhere. */
static bool journald_runs(void)
{
	struct stat st;
	return stat("/run/systemd/journal/stdout", &st) == 0 && S_ISSOCK(st.st_mode);
}

static bool machine_file_readable(const char *directory, const char *machine, const char *file)
{
	char path[256];
	int n = snprintf(path, sizeof path, "%s/%s/%s", directory, machine, file);
	return n > 0 && (size_t)n < sizeof path && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0;
}

bool journal_readable(void)
{
	AUTO_FREE char *machine = NULL;
	size_t len = 0;
	char file[64];
	if (!journald_runs() || file_read_path("/etc/machine-id", 64, &machine, &len, NULL) < 0)
		return false;
	machine[strcspn(machine, "\n")] = 0;
	/* The user manager itself writes to the journal of its user, so that file exists once a manager runs. */
	(void)snprintf(file, sizeof file, "user-%u.journal", (unsigned)geteuid());
	return machine_file_readable("/run/log/journal", machine, "system.journal") ||
	       machine_file_readable("/var/log/journal", machine, "system.journal") || machine_file_readable("/var/log/journal", machine, file);
}

static int match(sd_journal *journal, const char *field, const char *value)
{
	char text[320];
	int n = snprintf(text, sizeof text, "%s=%s", field, value);
	return n < 0 || (size_t)n >= sizeof text ? -ENAMETOOLONG : sd.journal_add_match(journal, text, (size_t)n);
}

/* The unit wrote it, or this user's manager said it of the unit. Whose a line is, journald asks when the line comes, and of a process that has ended
 * meanwhile it learns nothing; the identifier that the unit file gives (SyslogIdentifier=) stands in the stream itself. */
static int match_unit(sd_journal *journal, const char *unit)
{
	static const char *const fields[] = {"_SYSTEMD_USER_UNIT", "SYSLOG_IDENTIFIER", "USER_UNIT"};
	char uid[16];
	int r = 0;
	(void)snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
	for (size_t i = 0; r >= 0 && i < sizeof fields / sizeof *fields; i++) {
		if (i)
			r = sd.journal_add_disjunction(journal);
		if (r >= 0)
			r = match(journal, fields[i], unit);
		if (r >= 0)
			r = match(journal, "_UID", uid);
	}
	return r;
}

static int open_unit(const char *unit, sd_journal **ret_journal)
{
	AUTO_JOURNAL sd_journal *journal = NULL;
	int r = sd.journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);
	if (r >= 0)
		r = sd.journal_set_data_threshold(journal, LINE_BYTES_MAX);
	if (r >= 0)
		r = match_unit(journal, unit);
	if (r >= 0)
		*ret_journal = TAKE_PTR(journal);
	return r < 0 ? r : 0;
}

/* One entry as a line. A message without text is an empty line. */
static int copy_entry(sd_journal *journal, int fd)
{
	const void *data = NULL;
	size_t len = 0;
	int r = sd.journal_get_data(journal, "MESSAGE", &data, &len);
	if (r < 0 && r != -ENOENT)
		return r;
	size_t head = r < 0 ? 0 : strlen("MESSAGE=");
	r = len > head ? write_all(fd, (const char *)data + head, len - head) : 0;
	return r < 0 ? r : write_all(fd, "\n", 1);
}

static bool is_older(sd_journal *journal, int64_t since_usec)
{
	uint64_t when;
	return since_usec > 0 && sd.journal_get_realtime_usec(journal, &when) >= 0 && when < (uint64_t)since_usec;
}

/* Goes on to the end; *ret_count entries were written. */
static int copy_rest(sd_journal *journal, int64_t since_usec, int fd, unsigned *ret_count)
{
	int r;
	unsigned count = 0;
	while ((r = sd.journal_next(journal)) > 0) {
		if (is_older(journal, since_usec))
			continue;
		r = copy_entry(journal, fd);
		if (r < 0)
			return r;
		count++;
	}
	*ret_count = count;
	return r;
}

/* Stands before the n-th entry from the end, so that the next one is it. With n 0: at the end. */
static int seek_back(sd_journal *journal, unsigned lines)
{
	int r = sd.journal_seek_tail(journal);
	/* One more than wanted: the cursor then stands on an entry that is not to be shown. */
	if (r >= 0)
		r = sd.journal_previous_skip(journal, (uint64_t)lines + 1);
	if (r >= 0 && (unsigned)r <= lines)
		r = sd.journal_seek_head(journal);
	return r;
}

/* 1: look again, 0: the reader is gone or a signal came. */
static int await_more(sd_journal *journal, int fd)
{
	struct pollfd polled[2] = {{.fd = sd.journal_get_fd(journal), .events = (short)sd.journal_get_events(journal)}, {.fd = fd}};
	if (polled[0].fd < 0)
		return polled[0].fd;
	int n = poll(polled, 2, FOLLOW_MS);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (polled[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		return 0;
	int r = sd.journal_process(journal);
	return r < 0 ? r : 1;
}

static int copy_unit(sd_journal *journal, unsigned lines, int64_t since_usec, bool follow, int fd)
{
	unsigned count = 0;
	int r = seek_back(journal, lines);
	if (r >= 0)
		r = copy_rest(journal, since_usec, fd, &count);
	if (r == 0 && count == 0 && lines && !follow)
		return -ENOENT;
	while (follow && r >= 0 && (r = await_more(journal, fd)) > 0)
		r = copy_rest(journal, since_usec, fd, &count);
	return r == -EPIPE ? 0 : r;
}

int journal_copy(const char *unit, unsigned lines, int64_t since_usec, bool follow, int fd, struct err *err)
{
	AUTO_JOURNAL sd_journal *journal = NULL;
	int r = sd_load(err);
	if (r < 0)
		return r;
	r = open_unit(unit, &journal);
	if (r == 0)
		r = copy_unit(journal, lines, since_usec, follow, fd);
	if (r == -ENOENT)
		return err_set(err, r, "journal", unit, "there is no line of this unit");
	return r < 0 ? err_code(err, r, "journal", unit) : 0;
}

int journal_line(const char *unit, const char *line, struct err *err)
{
	int r = sd_load(err);
	if (r < 0)
		return r;
	r = sd.journal_send("MESSAGE=%s", line, "PRIORITY=%i", 4, "SYSLOG_IDENTIFIER=%s", "kirocrew-pod", "USER_UNIT=%s", unit, NULL);
	return r < 0 ? err_code(err, r, "journal", unit) : 0;
}
