/*
 * The CPU in /proc/PID/stat, from files as the kernel writes them and as it never should.
 */
#include "daemon/trigger/trigger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/store/entry.h"
#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

/* Fields 3 to 38, and the fields from 40 on, of a real process. */
#define BEFORE                                                                          \
	" S 1 4711 4711 0 -1 4194560 2043 81 13 0 7 5 0 0 20 0 1 0 5381 17059840 1280 " \
	"18446744073709551615 94 94 140 0 0 0 0 4096 1260 1 0 0 17 "
#define BEHIND " 0 0 0 0 0 94 94 94 140 140 140 140 0\n"

static uint32_t cpu_in(const char *text)
{
	char dir[SCRATCH_DIR_SIZE], path[SCRATCH_DIR_SIZE + 32];
	uint32_t cpu;
	FILE *f;

	scratch_dir_make(dir);
	snprintf(path, sizeof(path), "%s/42", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/42/stat", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	cpu = sender_last_cpu(dir, 42);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/42", dir);
	assert_int_equal(rmdir(path), 0);
	scratch_dir_remove(dir);
	return cpu;
}

static void sender_last_cpu_names_of_all_kinds_do_not_matter(void **state)
{
	static const char *const names[] = {"sh",	"a b c d", "x) S 1 2 3", ")",
					    "))) ) ) ", "((",	   "",		 "\n) R 0 (\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char text[512];

		snprintf(text, sizeof(text), "42 (%s)" BEFORE "13" BEHIND, names[i]);
		assert_int_equal(cpu_in(text), 13);
	}
}

static void sender_last_cpu_what_is_no_stat_is_not_known(void **state)
{
	static const char *const texts[] = {
		"",
		"42",
		"42 (sh",
		"42 (sh)",
		"42 (sh) ",
		"42 (sh) S 1 2 3",
		"42 (sh)" BEFORE,
		"42 (sh)" BEFORE "-1" BEHIND,
		"42 (sh)" BEFORE "x" BEHIND,
		"42 (sh)" BEFORE "1x" BEHIND,
		"42 (sh)" BEFORE "4096" BEHIND,
		"42 (sh)" BEFORE "99999999999999999999" BEHIND,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(cpu_in(texts[i]), ENTRY_NO_CPU);
	assert_int_equal(cpu_in("42 (sh)" BEFORE "4095" BEHIND), 4095);
	assert_int_equal(cpu_in("42 (sh)" BEFORE "0\n"), 0);
}

static void sender_last_cpu_of_nobody_is_not_known(void **state)
{
	(void)state;
	assert_int_equal(sender_last_cpu("/proc", 0), ENTRY_NO_CPU);
	assert_int_equal(sender_last_cpu("/proc", ENTRY_ABSENT), ENTRY_NO_CPU);
	assert_int_equal(sender_last_cpu("/nowhere", 1), ENTRY_NO_CPU);
}

static void sender_last_cpu_of_ourselves_is_one_of_the_hosts(void **state)
{
	uint32_t cpu = sender_last_cpu("/proc", (uint64_t)getpid());

	(void)state;
	assert_true((long)cpu < sysconf(_SC_NPROCESSORS_CONF));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sender_last_cpu_names_of_all_kinds_do_not_matter),
		cmocka_unit_test(sender_last_cpu_what_is_no_stat_is_not_known),
		cmocka_unit_test(sender_last_cpu_of_nobody_is_not_known),
		cmocka_unit_test(sender_last_cpu_of_ourselves_is_one_of_the_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
