/*
 * The parts that an attempt leaves out after each kind of failure, and how the time is divided.
 */
#include "daemon/job/attempt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/store/entry.h"
#include "proto/base.h"

#define ALL 120000000u

static const struct config plain = {.decode_timeout_usec = ALL};
static const struct config with_lines = {.decode_timeout_usec = ALL, .source_lines = true};
static const struct worker_outcome nothing_said;

static bool next(const struct config *c, struct attempt *a, int result, uint64_t spent)
{
	return attempt_next(c, a, result, &nothing_said, spent, ENTRY_ABSENT, true, a);
}

static void first_leaves_time_for_another(void **state)
{
	struct attempt a;

	(void)state;
	attempt_first(&plain, 7, &a);
	assert_true(a.symbols && !a.lines && !a.hurry);
	assert_int_equal(a.timeout_usec, ALL / 4 * 3);
	assert_int_equal(a.deadline_ns, 7);
	attempt_first(&with_lines, ENTRY_ABSENT, &a);
	assert_true(a.symbols && a.lines);
	assert_int_equal(a.timeout_usec, ALL / 2);
	assert_true(a.deadline_ns == ENTRY_ABSENT);
	assert_true(attempt_options(&with_lines, &a).lines_ns == UINT64_C(30000000000));
	assert_true(attempt_options(&with_lines, &a).lines &&
		    !attempt_options(&with_lines, &a).no_symbols);
}

static void next_leaves_out_lines_and_then_names(void **state)
{
	struct attempt first, a;

	(void)state;
	attempt_first(&with_lines, ENTRY_ABSENT, &first);
	a = first;
	assert_null(attempt_without(&first, &a));
	assert_true(next(&with_lines, &a, WORKER_CRASHED, ALL / 4));
	assert_true(a.symbols && !a.lines);
	assert_int_equal(a.timeout_usec, ALL / 2);
	assert_string_equal(attempt_without(&first, &a), "source lines");
	assert_true(next(&with_lines, &a, -EFBIG, ALL / 2));
	assert_true(!a.symbols && !a.lines && a.deadline_ns == ENTRY_ABSENT);
	assert_int_equal(a.timeout_usec, ALL / 2);
	assert_string_equal(attempt_without(&first, &a), "names");
	assert_false(next(&with_lines, &a, WORKER_CRASHED, ALL / 2));
}

/* The last attempt hurries also if an earlier one than the last that failed ran out of time. */
static void next_after_a_timeout_hurries_at_the_end(void **state)
{
	struct attempt a, b;

	(void)state;
	attempt_first(&plain, ENTRY_ABSENT, &a);
	assert_true(next(&plain, &a, WORKER_TIMEOUT, ALL / 4 * 3));
	assert_true(a.hurry && !a.symbols);
	assert_int_equal(a.timeout_usec, ALL / 4);
	assert_int_equal(a.deadline_ns, ALL / 8 * UINT64_C(1000));

	attempt_first(&with_lines, ENTRY_ABSENT, &a);
	assert_true(next(&with_lines, &a, WORKER_TIMEOUT, ALL / 2));
	assert_true(a.symbols && a.deadline_ns == ENTRY_ABSENT);
	b = a;
	assert_true(next(&with_lines, &a, WORKER_CRASHED, ALL / 4 * 3));
	assert_int_equal(a.deadline_ns, ALL / 8 * UINT64_C(1000));
	/* There is no deadline where a part of the trace is no use. */
	assert_true(attempt_next(&with_lines, &b, WORKER_CRASHED, &nothing_said, ALL / 4 * 3,
				 ENTRY_ABSENT, false, &b));
	assert_true(b.deadline_ns == ENTRY_ABSENT);
}

static void next_has_what_is_left_of_the_deadline(void **state)
{
	struct attempt a;

	(void)state;
	attempt_first(&plain, 5000000, &a);
	assert_true(
		attempt_next(&plain, &a, WORKER_CRASHED, &nothing_said, 2000, 5000000, true, &a));
	assert_int_equal(a.deadline_ns, 3000000);
	attempt_first(&plain, 5000000, &a);
	assert_true(
		attempt_next(&plain, &a, WORKER_CRASHED, &nothing_said, 9000, 5000000, true, &a));
	assert_int_equal(a.deadline_ns, 0);
}

static void next_is_none_where_less_is_no_help(void **state)
{
	static const int other[] = {0, -ECANCELED, -ENOENT, -EPERM};
	const struct worker_outcome full = {.error = -ENOSPC}, damaged = {.error = -EBADMSG};
	struct attempt a;

	(void)state;
	attempt_first(&plain, ENTRY_ABSENT, &a);
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(next(&plain, &a, other[i], 0));
	assert_false(next(&plain, &a, WORKER_CRASHED, ALL));
	assert_false(attempt_next(&plain, &a, WORKER_FAILED, &full, 0, ENTRY_ABSENT, true, &a));
	assert_true(attempt_next(&plain, &a, WORKER_FAILED, &damaged, 0, ENTRY_ABSENT, true, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_leaves_time_for_another),
		cmocka_unit_test(next_leaves_out_lines_and_then_names),
		cmocka_unit_test(next_after_a_timeout_hurries_at_the_end),
		cmocka_unit_test(next_has_what_is_left_of_the_deadline),
		cmocka_unit_test(next_is_none_where_less_is_no_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
