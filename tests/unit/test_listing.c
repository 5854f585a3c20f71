/* A directory whose reading breaks off is told from one that is at its end (X51). */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsops/listing.h"
#include "stepper.h"

static int count(void *directory)
{
	const struct dirent *entry;
	DIR *dir = opendir(directory);
	int n = 0, r = dir ? 0 : -ENOENT;
	while (dir && (r = listing_next(dir, &entry)) > 0)
		n++;
	if (dir)
		(void)closedir(dir);
	return r < 0 ? r : -n; /* as step_run hands results over: never positive */
}

static char *directory_of(int files)
{
	char path[64];
	char *directory = strdup("/tmp/listing-XXXXXX");
	assert_non_null(mkdtemp(directory));
	for (int i = 0; i < files; i++) {
		(void)snprintf(path, sizeof path, "%s/%d", directory, i);
		assert_int_equal(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	}
	return directory;
}

static void drop(char *directory, int files)
{
	char path[64];
	for (int i = 0; i < files; i++) {
		(void)snprintf(path, sizeof path, "%s/%d", directory, i);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(directory), 0);
	free(directory);
}

static void every_entry_but_the_two_that_all_have(void **state)
{
	(void)state;
	for (int files = 0; files < 4; files++) {
		char *directory = directory_of(files);
		assert_int_equal(count(directory), -files);
		drop(directory, files);
	}
}

static void X51_an_error_is_not_the_end(void **state)
{
	(void)state;
	if (!STEPPER_CAN_FAIL)
		skip();
	static const long reads[] = {SYS_getdents64, -1};
	char *directory = directory_of(3);
	for (int at = 0; at < 2; at++) { /* the first read, and the one that would say that it was the last */
		struct stepped stepped = {.call = count, .context = directory, .at = at, .fail_with = EIO, .eligible = reads};
		struct stepped_end end = step_run(&stepped);
		assert_true(end.acted);
		assert_int_equal(end.result, -EIO);
	}
	drop(directory, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_entry_but_the_two_that_all_have),
		cmocka_unit_test(X51_an_error_is_not_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
