/*
 * Limits of the units, from configuration and host, and the two drop-ins. The expected numbers are
 * computed by hand, not by the functions under test.
 */
#include "daemon/config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/gather/memory_read.h"
#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

#define KIB 1024ull
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

/* 4 CPUs with rings of 8 MiB and 512 KiB: header pages, and 16 KiB of the PT event's own. */
#define RINGS  (4 * (16 * MIB + 512 * KIB + 16 * KIB + 8 * KIB))
#define STEADY (RINGS + 64 * MIB + 32 * MIB + 192 * MIB)
/* Trace, sideband, code in memory and its names, the report. */
#define BUNDLE (32 * MIB + 256 * MIB + 512 * MIB + 192 * KIB)

static const struct config plain = {
	.aux_size = 8 * MIB,
	.data_size = 512 * KIB,
	.timeline_max = 64 * MIB,
	.queue_bytes = 32 * MIB,
	.sideband_bytes = 256 * MIB,
	.max_jobs_queued = 4,
	.store_in_memory = 2,
	.max_images_bytes = 1 * GIB,
	.decode_memory = 2 * GIB,
	.decode_timeout_usec = 120000000,
};

static struct unit_limits limits_of(const struct config *c, size_t n_cpus, uint64_t memory,
				    uint64_t budget)
{
	const struct unit_limits_host host = {n_cpus, memory, budget};
	struct unit_limits l = {0};

	unit_limits(c, &host, &l);
	return l;
}

static void unit_limits_large_host_has_room_for_all_that_may_wait(void **state)
{
	const uint64_t most = STEADY + 6 * BUNDLE + 2 * (BUNDLE + 1 * GIB);
	struct unit_limits l = limits_of(&plain, 4, 256 * GIB, 1 * GIB);

	(void)state;
	assert_true(l.recorder_high == most);
	assert_true(l.recorder_max == most + most / 8);
	l = limits_of(&plain, 4, 0, 1 * GIB); /* not known, so not a limit */
	assert_true(l.recorder_high == most);
}

static void unit_limits_recorder_has_a_quarter_of_memory(void **state)
{
	(void)state;
	assert_true(limits_of(&plain, 4, 16 * GIB, 1 * GIB).recorder_high == 4 * GIB);
}

static void unit_limits_small_host_has_room_for_one_snapshot(void **state)
{
	(void)state;
	assert_true(limits_of(&plain, 4, 1 * GIB, 1 * GIB).recorder_high == STEADY + 2 * BUNDLE);
}

static void unit_limits_rings_are_those_that_the_budget_allows(void **state)
{
	struct config c = plain;
	uint64_t whole = limits_of(&plain, 4, 0, 1 * GIB).recorder_high;

	(void)state;
	/* Rings of 4 MiB instead of 8: twice with the copy, and once in each of eight bundles. */
	assert_true(limits_of(&plain, 4, 0, RINGS - 1).recorder_high ==
		    whole - 4 * 4 * MIB * (2 + 8));
	/* The configuration's budget wins over the host's. */
	c.ring_budget = RINGS;
	assert_true(limits_of(&c, 4, 0, 1 * MIB).recorder_high == whole);
}

static void unit_limits_largest_of_everything_does_not_overflow(void **state)
{
	struct config c = plain;
	struct unit_limits l;

	(void)state;
	c.aux_size = c.data_size = 512 * MIB;
	c.ring_budget = UINT64_MAX;
	c.timeline_max = 16 * GIB;
	c.decode_memory = 1024 * GIB;
	c.decode_timeout_usec = UINT64_MAX / 1000;
	l = limits_of(&c, 4096, 0, 0);
	assert_true(l.recorder_high > 4096 * 10 * 512 * MIB);
	assert_true(l.recorder_max > l.recorder_high && l.recorder_max < 1ull << 60);
	assert_true(l.decoder_max == 1024 * GIB + 256 * MIB);
	assert_true(l.decoder_seconds == UINT64_MAX / 1000 / 1000000 + 30);
}

static void unit_limits_decoder_is_ended_by_its_own_limits_first(void **state)
{
	const struct unit_limits l = limits_of(&plain, 4, 0, 1 * GIB);

	(void)state;
	assert_true(l.decoder_max == 2 * GIB + 256 * MIB);
	assert_true(l.decoder_seconds == 150);
}

static void unit_limits_code_is_what_is_read_at_most(void **state)
{
	(void)state;
	assert_true(UNIT_LIMITS_CODE == memory_default_limits.all + memory_default_limits.maps);
}

static void unit_limits_host_is_this_one(void **state)
{
	struct unit_limits_host host;

	(void)state;
	unit_limits_host(&host);
	assert_true(host.n_cpus >= (size_t)sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(host.memory >= 64 * MIB);
	assert_true(host.budget >= 64 * MIB && host.budget <= MAX_OF(64 * MIB, host.memory));
}

/* The settings in a drop-in: all lines that are no comments. */
static void read_settings(const char *dir, const char *name, char *ret, size_t size)
{
	char path[256], line[256];
	size_t used = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	assert_non_null(f);
	ret[0] = '\0';
	while (fgets(line, sizeof(line), f))
		if (line[0] != '#' && used < size)
			used += (size_t)snprintf(ret + used, size - used, "%s", line);
	fclose(f);
	unlink(path);
}

static void remove_below(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	rmdir(path);
}

static void unit_limits_write_makes_two_drop_ins(void **state)
{
	const struct unit_limits l = {1000, 1125, 3000, 150};
	char dir[SCRATCH_DIR_SIZE], text[1024];

	(void)state;
	scratch_dir_make(dir);
	assert_int_equal(unit_limits_write(&(struct unit_limits){77777, 88888, 99999, 66666}, dir),
			 0);
	assert_int_equal(unit_limits_write(&l, dir), 0); /* a second time, with a shorter text */
	assert_int_equal(scratch_dir_count(dir), 2);
	read_settings(dir, "ptsnapd.service.d/50-memory.conf", text, sizeof(text));
	assert_string_equal(text, "[Service]\nMemoryHigh=1000\nMemoryMax=1125\n");
	read_settings(dir, "ptsnap-decode@.service.d/50-limits.conf", text, sizeof(text));
	assert_string_equal(text, "[Service]\nMemoryMax=3000\nRuntimeMaxSec=150s\n");
	remove_below(dir, "ptsnapd.service.d");
	remove_below(dir, "ptsnap-decode@.service.d");
	scratch_dir_remove(dir);
}

static void unit_limits_write_one_that_cannot_be_leaves_the_other(void **state)
{
	const struct unit_limits l = {1000, 1125, 3000, 150};
	char dir[SCRATCH_DIR_SIZE], path[256], text[1024];
	FILE *f;

	(void)state;
	scratch_dir_make(dir);
	snprintf(path, sizeof(path), "%s/ptsnapd.service.d", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(unit_limits_write(&l, dir), -ENOTDIR);
	read_settings(dir, "ptsnap-decode@.service.d/50-limits.conf", text, sizeof(text));
	assert_string_equal(text, "[Service]\nMemoryMax=3000\nRuntimeMaxSec=150s\n");
	remove_below(dir, "ptsnap-decode@.service.d");
	scratch_dir_remove(dir);
	assert_int_equal(unit_limits_write(&l, dir), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unit_limits_large_host_has_room_for_all_that_may_wait),
		cmocka_unit_test(unit_limits_recorder_has_a_quarter_of_memory),
		cmocka_unit_test(unit_limits_small_host_has_room_for_one_snapshot),
		cmocka_unit_test(unit_limits_rings_are_those_that_the_budget_allows),
		cmocka_unit_test(unit_limits_largest_of_everything_does_not_overflow),
		cmocka_unit_test(unit_limits_decoder_is_ended_by_its_own_limits_first),
		cmocka_unit_test(unit_limits_code_is_what_is_read_at_most),
		cmocka_unit_test(unit_limits_host_is_this_one),
		cmocka_unit_test(unit_limits_write_makes_two_drop_ins),
		cmocka_unit_test(unit_limits_write_one_that_cannot_be_leaves_the_other),
	};

	return cmocka_run_group_tests_name("daemon/unit_limits", tests, NULL, NULL);
}
