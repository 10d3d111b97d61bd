/*
 * The recorder's account of its own CPU time and memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/check/status.h"
#include "daemon/store/entry.h"
#include "tests/unit/daemon/scratch_dir.h"

#define SEC 1000000u

static void selfstat_look_counts_records_a_second(void **state)
{
	struct selfstat s;

	(void)state;
	selfstat_init(&s, 5 * SEC);
	assert_int_equal(s.records_per_second, 0);
	selfstat_look(&s, 7 * SEC, 1000, "/nonexistent");
	assert_int_equal(s.records_per_second, 500);
	selfstat_look(&s, 11 * SEC, 1400, "/nonexistent");
	assert_int_equal(s.records_per_second, 100);
}

static void selfstat_look_soon_keeps_the_rate(void **state)
{
	struct selfstat s;

	(void)state;
	selfstat_init(&s, 0);
	selfstat_look(&s, SEC, 100, "/nonexistent");
	selfstat_look(&s, SEC + SEC / 2, 1000, "/nonexistent");
	assert_int_equal(s.records_per_second, 100);
	selfstat_look(&s, 2 * SEC, 1100, "/nonexistent");
	assert_int_equal(s.records_per_second, 1000);
}

static void selfstat_look_reads_memory(void **state)
{
	char dir[SCRATCH_DIR_SIZE], path[SCRATCH_DIR_SIZE + 8];
	struct selfstat s;
	FILE *f;

	(void)state;
	scratch_dir_make(dir);
	snprintf(path, sizeof(path), "%s/statm", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs("700 300 200 1 0 90 0\n", f);
	fclose(f);
	selfstat_init(&s, 0);
	assert_int_equal(s.rss_bytes, ENTRY_ABSENT);
	selfstat_look(&s, SEC, 0, path);
	assert_int_equal(s.rss_bytes, 300 * (uint64_t)sysconf(_SC_PAGESIZE));
	selfstat_look(&s, SEC, 0, "/nonexistent");
	assert_int_equal(s.rss_bytes, ENTRY_ABSENT);
	scratch_dir_remove(dir);
}

static void selfstat_look_of_ourselves_costs_something(void **state)
{
	struct selfstat s;

	(void)state;
	selfstat_init(&s, 0);
	for (volatile unsigned int i = 0; i < 20000000; i++)
		;
	selfstat_look(&s, SEC, 0, "/proc/self/statm");
	assert_true(s.cpu_usec > 0);
	assert_true(s.rss_bytes > 100000 && s.rss_bytes != ENTRY_ABSENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selfstat_look_counts_records_a_second),
		cmocka_unit_test(selfstat_look_soon_keeps_the_rate),
		cmocka_unit_test(selfstat_look_reads_memory),
		cmocka_unit_test(selfstat_look_of_ourselves_costs_something),
	};

	return cmocka_run_group_tests_name("selfstat", tests, NULL, NULL);
}
