#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pod/model/refusal.h"
#include "pod/system/service.h"

static struct plane plane = {.prefix = "t"};
static const struct service_context context = {.plane = &plane, .program = "/bin/true"};
static const struct pod_name name = {"demo"};

static void without_a_manager_all_is_absent(void **unused)
{
	(void)unused;
	struct service *service = NULL;
	struct unit_state state = {.active = UNIT_ACTIVE};
	struct service_listing listing = {.count = 9};
	assert_int_equal(service_open(BACKEND_NULL, &context, &service, NULL), 0);
	assert_int_equal(service_backend(service), BACKEND_NULL);
	assert_int_equal(service->ops->query(service, &name, &state, NULL), 0);
	assert_int_equal(state.active, UNIT_ABSENT);
	assert_int_equal(service->ops->wait(service, &name, DEADLINE_NEVER, &state, NULL), 0);
	assert_int_equal(service->ops->list(service, &listing, NULL), 0);
	assert_int_equal(listing.count, 0);
	assert_int_equal(service->ops->stop(service, &name, 1, NULL, NULL), 0);
	assert_int_equal(service->ops->forget(service, &name, NULL), 0);
	assert_int_equal(service->ops->logs(service, &name, 1, false, 1, NULL), -ENOENT);
	service_close(&service);
	assert_null(service);
	service_close(&service);
}

static void without_a_manager_a_start_is_refused(void **unused)
{
	(void)unused;
	struct service *service = NULL;
	struct err err = {0};
	const struct spec spec = {0};
	const struct service_unit unit = {.name = &name, .spec = &spec};
	assert_int_equal(service_open(BACKEND_NULL, &context, &service, NULL), 0);
	assert_int_equal(service->ops->start(service, &unit, DEADLINE_NEVER, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_NO_MANAGER);
	assert_int_equal(err_exit_status(&err), EXIT_NO_MANAGER);
	err = (struct err){0};
	assert_int_equal(service->ops->install(service, &unit, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_NO_MANAGER);
	service_close(&service);
}

static void a_backend_that_is_not_here_is_refused(void **unused)
{
	(void)unused;
	struct service *service = NULL;
	struct err err = {0};
	assert_int_equal(service_open(BACKEND_LAUNCHD, &context, &service, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_NO_MANAGER);
	assert_non_null(strstr(err.text, "launchctl"));
	assert_null(service);
}

/* XDG_RUNTIME_DIR leads to no manager: named, systemd is refused; AUTO takes the keeper. */
static void L29_auto_takes_the_keeper_where_no_manager_is(void **unused)
{
	(void)unused;
	struct service *service = NULL;
	struct err err = {0};
	setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1);
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	assert_int_equal(service_open(BACKEND_SYSTEMD, &context, &service, &err), -EPERM);
	assert_int_equal(err.refusal, REFUSAL_NO_MANAGER);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	assert_int_equal(service_open(BACKEND_AUTO, &context, &service, NULL), 0);
	assert_int_equal(service_backend(service), BACKEND_EMBEDDED);
	service_close(&service);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_manager_all_is_absent),
		cmocka_unit_test(without_a_manager_a_start_is_refused),
		cmocka_unit_test(a_backend_that_is_not_here_is_refused),
		cmocka_unit_test(L29_auto_takes_the_keeper_where_no_manager_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
