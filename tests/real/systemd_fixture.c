#include "tests/real/systemd_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "fsops/tree.h"
#include "pod/system/logfile.h"

struct fixture fixture;

bool must_work(void)
{
	const char *value = getenv("MUST_WORK");
	return value && strcmp(value, "1") == 0;
}

void must(int r, const struct err *err)
{
	if (r < 0)
		fail_msg("%s: %s: %s (%s)", err->stage, err->subject, err->text, strerror(-r));
}

void refused_with(int r, const struct err *err, enum refusal refusal, const char *text)
{
	if (r >= 0)
		fail_msg("not refused: %s", text);
	if (err->refusal != (int)refusal || !strstr(err->text, text))
		fail_msg("refusal %d \"%s\", expected %d with \"%s\"", err->refusal, err->text, (int)refusal, text);
}

struct pod_name pod(const char *name)
{
	struct pod_name parsed;
	MUST(pod_name_parse(name, strlen(name), &parsed, &err));
	return parsed;
}

void run(const char *command)
{
	int status = system(command);
	if (status != 0)
		fail_msg("%s: status %d", command, status);
}

static void plane_make(void)
{
	char prefix[32], paths[3][300];
	static const char *const below[] = {"root", "pods", "artifacts"};
	struct plane_input input = {.home = getenv("HOME"), .cwd = "/", .xdg_config_home = getenv("XDG_CONFIG_HOME")};
	snprintf(prefix, sizeof prefix, "t%d", (int)getpid());
	for (size_t i = 0; i < 3; i++)
		snprintf(paths[i], sizeof paths[i], "%s/%s", fixture.directory, below[i]);
	input.variable[PLANE_ROOT] = paths[0];
	input.variable[PLANE_ENV_DIR] = paths[1];
	input.variable[PLANE_ARTIFACTS_DIR] = paths[2];
	input.variable[PLANE_UNIT_PREFIX] = prefix;
	MUST(plane_resolve(&input, &fixture.plane, &err));
}

int fixture_begin(void **state)
{
	(void)state;
	const char *temporary = getenv("TMPDIR"), *programs = getenv("TEST_PROGRAMS");
	snprintf(fixture.directory, sizeof fixture.directory, "%s/systemd-test.XXXXXX", temporary ? temporary : "/tmp");
	if (!programs || !mkdtemp(fixture.directory))
		return -1;
	plane_make();
	snprintf(fixture.program, sizeof fixture.program, "%s/unit_payload", programs);
	snprintf(fixture.unit_directory, sizeof fixture.unit_directory, "%s/systemd/user", fixture.plane.config_home);
	fixture.pods_dir = PIN_NONE;
	MUST(pin_make_path(fixture.plane.pods_dir, 0700, &fixture.pods_dir, &err));
	fixture.context = (struct service_context){.plane = &fixture.plane, .pods_dir = &fixture.pods_dir, .program = fixture.program};
	MUST(service_open(BACKEND_SYSTEMD, &fixture.context, &fixture.service, &err));
	return 0;
}

int fixture_end(void **state)
{
	(void)state;
	struct service_listing listing = {0};
	if (fixture.service && fixture.service->ops->list(fixture.service, &listing, NULL) == 0)
		for (size_t i = 0; i < listing.count; i++)
			(void)fixture.service->ops->stop(fixture.service, &listing.units[i].name, 500, NULL, NULL);
	service_listing_free(&listing);
	service_close(&fixture.service);
	pin_close(&fixture.pods_dir);
	char command[9000];
	snprintf(command, sizeof command, "rm -rf '%s/%s@'* '%s'", fixture.unit_directory, fixture.plane.prefix, fixture.directory);
	return system(command);
}

void pod_up(const char *name)
{
	struct pod_name parsed = pod(name);
	struct service_unit unit = {.name = &parsed, .spec = &fixture.spec};
	MUST(fixture.service->ops->install(fixture.service, &unit, &err));
	MUST(fixture.service->ops->start(fixture.service, &unit, deadline_in_ms(20000), &err));
	MUST(fixture.service->ops->started(fixture.service, &unit, deadline_in_ms(20000), &err));
}

void starts_await(const char *name, unsigned count)
{
	struct deadline until = deadline_in_ms(10000);
	struct backoff backoff = {0};
	while (pod_starts(name) < count && !deadline_passed(until))
		backoff_sleep(&backoff, until);
	assert_true(pod_starts(name) >= count);
}

void pod_down(const char *name)
{
	struct pod_name parsed = pod(name);
	MUST(fixture.service->ops->stop(fixture.service, &parsed, 5000, NULL, &err));
	MUST(fixture.service->ops->forget(fixture.service, &parsed, &err));
	MUST(logfile_forget(&fixture.plane, &parsed, &err)); /* of whoever took it down, as the record */
}

struct unit_state pod_await(const char *name, enum unit_active active, int64_t ms)
{
	struct pod_name parsed = pod(name);
	struct deadline until = deadline_in_ms(ms);
	struct unit_state state;
	MUST(fixture.service->ops->query(fixture.service, &parsed, &state, &err));
	while (state.active != active && !deadline_passed(until))
		MUST(fixture.service->ops->wait(fixture.service, &parsed, until, &state, &err));
	if (state.active != active)
		fail_msg("%s: state %d (%s), expected %d", name, (int)state.active, state.detail, (int)active);
	return state;
}

unsigned pod_starts(const char *name)
{
	char path[8300];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s.starts", fixture.plane.pods_dir, name);
	return stat(path, &st) < 0 ? 0 : (unsigned)st.st_size / 6;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

void pods_file(const char *name, const char *text)
{
	char path[8300];
	snprintf(path, sizeof path, "%s/%s", fixture.plane.pods_dir, name);
	write_file(path, text);
}

void drop_in(const char *pod_name, const char *file, const char *text)
{
	char path[9000];
	snprintf(path, sizeof path, "mkdir -p '%s/%s@%s.service.d'", fixture.unit_directory, fixture.plane.prefix, pod_name);
	run(path);
	snprintf(path, sizeof path, "%s/%s@%s.service.d/%s", fixture.unit_directory, fixture.plane.prefix, pod_name, file);
	write_file(path, text);
}

int pod_logs(const char *name, unsigned lines, char *out, size_t size)
{
	struct pod_name parsed = pod(name);
	char path[300];
	snprintf(path, sizeof path, "%s/logs", fixture.directory);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	int r = fixture.service->ops->logs(fixture.service, &parsed, lines, false, fd, NULL);
	ssize_t n = pread(fd, out, size, 0);
	assert_true(n >= 0 && (size_t)n < size);
	out[n] = 0;
	return r;
}
