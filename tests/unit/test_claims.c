/* What is kept of the records' claims: used while the record bears its stamp, and not at all unless it was written whole. */
#include "model_test.h"

#include "fsops/cleanup.h"
#include "pod/model/claims.h"

static const struct claim three[] = {
    {.stamp = {30, 5000000000, 200}, .port = 7812, .root = "12:34.5"},
    {.stamp = {10, 6000000000, 210}, .port = 7811, .root = ""},
    {.stamp = {20, 7000000000, 220}, .port = 0, .root = "12:34.5"},
};

static void make(struct claims *claims)
{
	claims->v = calloc(COUNT(three), sizeof *three);
	assert_non_null(claims->v);
	memcpy(claims->v, three, sizeof three);
	claims->n = COUNT(three);
}

static void render(char **ret_bytes, size_t *ret_len)
{
	AUTO_CLAIMS struct claims claims = {0};
	struct err err = {0};
	make(&claims);
	assert_done(claims_render(&claims, ret_bytes, ret_len, &err), &err);
}

static void what_is_kept_is_found_again_by_its_stamp(void **state)
{
	(void)state;
	AUTO_FREE char *bytes = NULL;
	size_t len;
	AUTO_CLAIMS struct claims claims = {0};
	struct err err = {0};
	render(&bytes, &len);
	assert_done(claims_parse(bytes, len, &claims, &err), &err);
	assert_int_equal(claims.n, COUNT(three));
	for (size_t i = 0; i < COUNT(three); i++) {
		const struct claim *found = claims_find(&claims, &three[i].stamp);
		assert_non_null(found);
		assert_int_equal(found->port, three[i].port);
		assert_string_equal(found->root, three[i].root);
	}
}

static void a_record_that_was_written_since_is_not_known(void **state)
{
	(void)state;
	AUTO_CLAIMS struct claims claims = {0};
	struct stamp stamp = three[0].stamp;
	make(&claims);
	claims_sort(&claims);
	assert_non_null(claims_find(&claims, &stamp));
	stamp.inode++;
	assert_null(claims_find(&claims, &stamp));
	stamp = three[0].stamp;
	stamp.changed_ns++;
	assert_null(claims_find(&claims, &stamp));
	stamp = three[0].stamp;
	stamp.bytes--;
	assert_null(claims_find(&claims, &stamp));
	assert_null(claims_find(&(struct claims){0}, &stamp));
}

static void what_was_not_written_whole_is_not_used(void **state)
{
	(void)state;
	AUTO_FREE char *bytes = NULL;
	size_t len;
	struct claims claims = {0};
	render(&bytes, &len);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(claims_parse(bytes, cut, &claims, NULL), -EINVAL);
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= 0x20;
		if (claims_parse(bytes, len, &claims, NULL) != -EINVAL)
			fail_msg("byte %zu was changed, and it was used", i);
		bytes[i] ^= 0x20;
	}
	AUTO_FREE char *longer = calloc(1, len + 1);
	assert_non_null(longer);
	memcpy(longer, bytes, len);
	assert_int_equal(claims_parse(longer, len + 1, &claims, NULL), -EINVAL);
}

static void what_no_claim_can_say_is_not_used(void **state)
{
	(void)state;
	static const int ports[] = {-1, 65536, 1 << 30};
	for (size_t i = 0; i <= COUNT(ports); i++) {
		AUTO_CLAIMS struct claims claims = {0};
		AUTO_FREE char *bytes = NULL;
		size_t len;
		struct claims again = {0};
		make(&claims);
		if (i < COUNT(ports))
			claims.v[1].port = ports[i];
		else
			memset(claims.v[1].root, 'x', sizeof claims.v[1].root);
		assert_int_equal(claims_render(&claims, &bytes, &len, NULL), 0);
		assert_int_equal(claims_parse(bytes, len, &again, NULL), -EINVAL);
		assert_null(again.v);
	}
}

static void none_are_kept_as_well(void **state)
{
	(void)state;
	AUTO_FREE char *bytes = NULL;
	size_t len;
	AUTO_CLAIMS struct claims claims = {0};
	assert_int_equal(claims_render(&(struct claims){0}, &bytes, &len, NULL), 0);
	assert_int_equal(claims_parse(bytes, len, &claims, NULL), 0);
	assert_int_equal(claims.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_is_found_again_by_its_stamp), cmocka_unit_test(a_record_that_was_written_since_is_not_known),
		cmocka_unit_test(what_was_not_written_whole_is_not_used),   cmocka_unit_test(what_no_claim_can_say_is_not_used),
		cmocka_unit_test(none_are_kept_as_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
