/*
 * budget_fit() and budget_default(): the sizes of rings, and their description.
 */
#include "capture/proc/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/capture/tree.h"

#define MIB (UINT64_C(1) << 20)

static void budget_need_counts_rings_pages_and_one_copy(void **state)
{
	const struct budget_sizes sizes = {8 * MIB, MIB / 2};

	(void)state;
	assert_int_equal(budget_need(&sizes, 1),
			 16 * MIB + MIB / 2 + BUDGET_PT_DATA + 2 * BUDGET_PAGE);
	assert_int_equal(budget_need(&sizes, 16), 16 * budget_need(&sizes, 1));
}

static void budget_fit_enough_changes_nothing(void **state)
{
	const struct budget_sizes asked = {8 * MIB, MIB / 2};
	struct budget_sizes got;
	char note[256] = "x";

	(void)state;
	budget_fit(&asked, 4, budget_need(&asked, 4), false, &got, note, sizeof(note));
	assert_int_equal(got.aux, asked.aux);
	assert_int_equal(got.data, asked.data);
	assert_string_equal(note, "");
}

static void budget_fit_one_byte_less_halves_the_trace_ring(void **state)
{
	const struct budget_sizes asked = {8 * MIB, MIB / 2};
	struct budget_sizes got;
	char note[256];

	(void)state;
	budget_fit(&asked, 4, budget_need(&asked, 4) - 1, false, &got, note, sizeof(note));
	assert_int_equal(got.aux, 4 * MIB);
	assert_int_equal(got.data, asked.data);
	assert_non_null(strstr(note, "trace ring 4M instead of 8M"));
	assert_null(strstr(note, "sideband"));
}

static void budget_fit_too_little_ends_at_the_smallest_and_says_so(void **state)
{
	const struct budget_sizes asked = {8 * MIB, MIB / 2};
	const struct budget_sizes least = {BUDGET_MIN_RING, BUDGET_MIN_RING};
	struct budget_sizes got;
	char note[256];

	(void)state;
	budget_fit(&asked, 64, MIB, false, &got, note, sizeof(note));
	assert_int_equal(got.aux, BUDGET_MIN_RING);
	assert_int_equal(got.data, BUDGET_MIN_RING);
	assert_non_null(strstr(note, "trace ring 64K instead of 8M"));
	assert_non_null(strstr(note, "sideband ring 64K instead of 512K"));
	budget_fit(&least, 64, MIB, false, &got, note, sizeof(note));
	assert_non_null(strstr(note, "even at their smallest"));
}

static void budget_fit_single_entry_is_one_block(void **state)
{
	const struct budget_sizes asked = {64 * MIB, MIB / 2};
	struct budget_sizes got;
	char note[256];

	(void)state;
	budget_fit(&asked, 1, 1024 * MIB, true, &got, note, sizeof(note));
	assert_int_equal(got.aux, BUDGET_SINGLE_ENTRY);
	assert_non_null(strstr(note, "one block"));
}

static void budget_fit_note_is_cut_to_its_place(void **state)
{
	const struct budget_sizes asked = {64 * MIB, MIB};
	struct budget_sizes got;

	(void)state;
	for (size_t size = 1; size < 120; size++) {
		char *note = malloc(size);

		budget_fit(&asked, 64, MIB, false, &got, note, size);
		assert_true(strlen(note) < size);
		free(note);
	}
}

static void budget_default_is_a_share_of_memory_and_has_a_floor(void **state)
{
	char *root = tree_new(), path[4096];

	(void)state;
	snprintf(path, sizeof(path), "%s/meminfo", root);
	assert_int_equal(budget_default(path), 64 * MIB);
	tree_write(root, "meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
	assert_int_equal(budget_default(path), 1024 * MIB);
	tree_write(root, "meminfo", "MemTotal:         65536 kB\n");
	assert_int_equal(budget_default(path), 64 * MIB);
	tree_write(root, "meminfo", "MemTotal: x kB\n");
	assert_int_equal(budget_default(path), 64 * MIB);
	tree_free(root);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget_need_counts_rings_pages_and_one_copy),
		cmocka_unit_test(budget_fit_enough_changes_nothing),
		cmocka_unit_test(budget_fit_one_byte_less_halves_the_trace_ring),
		cmocka_unit_test(budget_fit_too_little_ends_at_the_smallest_and_says_so),
		cmocka_unit_test(budget_fit_single_entry_is_one_block),
		cmocka_unit_test(budget_fit_note_is_cut_to_its_place),
		cmocka_unit_test(budget_default_is_a_share_of_memory_and_has_a_floor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
