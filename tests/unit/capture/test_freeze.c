/*
 * capture/freeze: order of stopping, copying and restarting, and what happens when a CPU does not
 * do as told, over a source made of known bytes.
 */
#include "capture/freeze.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

#define PAGE  4096u
#define TOTAL (3 * PAGE)
#define CPUS  3u

struct fake {
	struct source s;
	struct source_cpu cpus[CPUS];
	uint8_t *memory[CPUS];
	char calls[64]; /* "-0-1-2+0+1+2" */
	int disable_result[CPUS], enable_result[CPUS];
	bool stopped[CPUS];
	uint64_t tsc;
};

static struct fake *fake_of(struct source *s)
{
	return (struct fake *)s;
}

static void note_call(struct fake *f, char what, uint32_t index)
{
	size_t used = strlen(f->calls);

	assert_true(used + 3 <= sizeof(f->calls));
	f->calls[used] = what;
	f->calls[used + 1] = (char)('0' + index);
}

/* Until it is stopped the head is stale, as on hardware. */
static int fake_disable(struct source *s, uint32_t index)
{
	struct fake *f = fake_of(s);

	note_call(f, '-', index);
	if (f->disable_result[index] < 0)
		return f->disable_result[index];
	f->stopped[index] = true;
	f->cpus[index].pt.page->aux_head = 1000 * (index + 1);
	f->tsc += 100;
	return f->disable_result[index];
}

static int fake_enable(struct source *s, uint32_t index)
{
	struct fake *f = fake_of(s);

	note_call(f, '+', index);
	if (f->enable_result[index] == 0)
		f->stopped[index] = false;
	/* What is written from now on must not be in the copy. */
	memset(f->memory[index] + 2 * PAGE, 0xee, PAGE);
	return f->enable_result[index];
}

static uint64_t fake_tsc(struct source *s, uint32_t index)
{
	(void)index;
	return fake_of(s)->tsc;
}

static void fake_free(struct source *s)
{
	struct fake *f = fake_of(s);

	for (size_t i = 0; i < CPUS; i++)
		free(f->memory[i]);
	free(f);
}

static const struct source_ops fake_ops = {
	.name = "fake",
	.disable = fake_disable,
	.enable = fake_enable,
	.free = fake_free,
	.read_tsc = fake_tsc,
};

/* Byte of CPU that is AGE bytes older than the newest. */
static uint8_t byte_of(uint32_t cpu, uint64_t age)
{
	return (uint8_t)((age * 7 + age / 256 + cpu) % 251);
}

static int set_up(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->s = (struct source){.ops = &fake_ops, .cpus = f->cpus, .n_cpus = CPUS};
	clock_make(&f->s.clock, 1000000000, 0, 500000);
	for (uint32_t i = 0; i < CPUS; i++) {
		struct perf_event_mmap_page *page;

		f->memory[i] = aligned_alloc(PAGE, TOTAL);
		assert_non_null(f->memory[i]);
		memset(f->memory[i], 0, TOTAL);
		page = (struct perf_event_mmap_page *)f->memory[i];
		page->data_offset = PAGE;
		page->data_size = PAGE;
		page->aux_offset = 2 * PAGE;
		page->aux_size = PAGE;
		page->aux_head = 77;
		for (uint64_t age = 0; age < PAGE; age++)
			f->memory[i][2 * PAGE + (1000 * (i + 1) - 1 - age) % PAGE] =
				byte_of(i, age);
		f->cpus[i].cpu = 10 + i;
		assert_int_equal(ring_init(&f->cpus[i].pt, page, TOTAL, NULL), 0);
	}
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fake *f = *state;

	source_freep(&(struct source *){&f->s});
	return 0;
}

static void assert_newest(const uint8_t *area, const struct freeze_cpu *got, uint32_t cpu)
{
	for (uint64_t i = 0; i < got->bytes; i++)
		assert_int_equal(area[got->offset + i], byte_of(cpu, got->bytes - 1 - i));
}

static void freeze_snapshot_copies_exactly_the_newest_bytes_of_each_cpu(void **state)
{
	static const uint64_t wanted[] = {0, 1, 999, 1000, 1001, 4095, 4096, 4097, UINT64_MAX};

	for (size_t w = 0; w < ARRAY_SIZE(wanted); w++) {
		uint64_t each = wanted[w] == 0 || wanted[w] > PAGE ? PAGE : wanted[w];
		struct freeze_cpu got[CPUS];
		struct fake *f;
		uint8_t *area;
		void *fresh;

		(void)state;
		set_up(&fresh);
		f = fresh;
		assert_int_equal(freeze_area_size(&f->s, wanted[w]), CPUS * each);
		area = malloc(CPUS * each); /* exactly: the sanitizer sees one byte more */
		assert_int_equal(freeze_snapshot(&f->s, wanted[w], true, area, got), 0);
		for (uint32_t i = 0; i < CPUS; i++) {
			assert_int_equal(got[i].bytes, each);
			assert_int_equal(got[i].offset, i * each);
			assert_newest(area, &got[i], i);
		}
		free(area);
		tear_down(&fresh);
	}
}

static void freeze_snapshot_stops_all_then_copies_then_restarts_all(void **state)
{
	struct fake *f = *state;
	uint8_t area[CPUS * PAGE];
	struct freeze_cpu got[CPUS];

	assert_int_equal(freeze_snapshot(&f->s, 0, true, area, got), 0);
	assert_string_equal(f->calls, "-0-1-2+0+1+2");
	for (uint32_t i = 0; i < CPUS; i++) {
		/* The perf clock right after each stop. */
		assert_int_equal(got[i].stop_ns, 500000 + 100 * (i + 1));
		assert_true(got[i].dark_ns >= got[i].copy_ns);
		assert_in_range(got[i].dark_ns, 1, 60000000000);
		assert_false(got[i].no_answer || got[i].not_stopped || got[i].not_restarted);
		assert_false(f->stopped[i]);
	}
	/* The first stopped is restarted before the last is. */
	assert_true(got[0].dark_ns >= got[0].copy_ns + got[1].copy_ns + got[2].copy_ns);
}

static void freeze_snapshot_last_one_leaves_the_cpus_stopped(void **state)
{
	struct fake *f = *state;
	uint8_t area[CPUS * PAGE];
	struct freeze_cpu got[CPUS];

	assert_int_equal(freeze_snapshot(&f->s, 0, false, area, got), 0);
	assert_string_equal(f->calls, "-0-1-2");
	for (uint32_t i = 0; i < CPUS; i++) {
		assert_int_equal(got[i].dark_ns, MANIFEST_ABSENT);
		assert_int_equal(got[i].bytes, PAGE);
		assert_newest(area, &got[i], i);
	}
}

static void freeze_snapshot_cpu_that_does_not_stop_is_left_out(void **state)
{
	struct fake *f = *state;
	uint8_t area[CPUS * PAGE];
	struct freeze_cpu got[CPUS];

	f->disable_result[1] = -EIO;
	assert_int_equal(freeze_snapshot(&f->s, 64, true, area, got), -EIO);
	assert_string_equal(f->calls, "-0-1-2+0+1+2");
	assert_true(got[1].not_stopped);
	assert_int_equal(got[1].bytes, 0);
	assert_int_equal(got[1].stop_ns, MANIFEST_ABSENT);
	assert_int_equal(got[0].bytes, 64);
	assert_int_equal(got[2].bytes, 64);
	assert_newest(area, &got[0], 0);
	assert_newest(area, &got[2], 2);
}

static void freeze_snapshot_cpu_that_does_not_answer_is_copied(void **state)
{
	struct fake *f = *state;
	uint8_t area[CPUS * PAGE];
	struct freeze_cpu got[CPUS];

	f->disable_result[1] = SOURCE_NO_ANSWER;
	f->disable_result[2] = SOURCE_NO_ANSWER;
	f->enable_result[2] = SOURCE_NO_ANSWER;
	assert_int_equal(freeze_snapshot(&f->s, 0, true, area, got), 0);
	assert_true(got[1].no_answer);
	assert_newest(area, &got[1], 1);
	assert_true(got[1].dark_ns != MANIFEST_ABSENT);
	assert_true(got[2].no_answer);
	assert_false(got[2].not_stopped);
	assert_false(got[2].not_restarted);
	assert_int_equal(got[2].bytes, PAGE);
	assert_newest(area, &got[2], 2);
	/* Nobody knows when it runs again. */
	assert_int_equal(got[2].dark_ns, MANIFEST_ABSENT);
	assert_false(got[0].no_answer);
}

static void freeze_snapshot_cpu_that_does_not_restart_does_not_stop_the_others(void **state)
{
	struct fake *f = *state;
	uint8_t area[CPUS * PAGE];
	struct freeze_cpu got[CPUS];

	f->enable_result[0] = -ENXIO;
	f->enable_result[2] = -EBUSY;
	assert_int_equal(freeze_snapshot(&f->s, 0, true, area, got), -ENXIO);
	assert_string_equal(f->calls, "-0-1-2+0+1+2");
	assert_true(got[0].not_restarted);
	assert_int_equal(got[0].dark_ns, MANIFEST_ABSENT);
	assert_false(got[1].not_restarted);
	assert_true(got[1].dark_ns != MANIFEST_ABSENT);
	assert_newest(area, &got[0], 0);
}

static void freeze_snapshot_first_error_is_told(void **state)
{
	struct fake *f = *state;
	uint8_t area[CPUS * PAGE];
	struct freeze_cpu got[CPUS];

	f->disable_result[2] = -EIO;
	f->enable_result[0] = -ENXIO;
	assert_int_equal(freeze_snapshot(&f->s, 0, true, area, got), -EIO);
}

static void freeze_snapshot_without_clock_has_no_stop_time(void **state)
{
	struct fake *f = *state;
	uint8_t area[CPUS * PAGE];
	struct freeze_cpu got[CPUS];

	f->s.clock.valid = false;
	assert_int_equal(freeze_snapshot(&f->s, 0, true, area, got), 0);
	assert_int_equal(got[0].stop_ns, MANIFEST_ABSENT);
}

static void freeze_snapshot_ring_without_aux_gives_nothing(void **state)
{
	struct fake *f = *state;
	uint8_t area[CPUS * PAGE];
	struct freeze_cpu got[CPUS];

	f->cpus[0].pt.aux = NULL;
	f->cpus[0].pt.aux_size = 0;
	assert_int_equal(freeze_area_size(&f->s, 0), 2 * PAGE);
	assert_int_equal(freeze_snapshot(&f->s, 0, true, area, got), 0);
	assert_int_equal(got[0].bytes, 0);
	assert_int_equal(got[1].offset, 0);
	assert_newest(area, &got[1], 1);
	assert_newest(area, &got[2], 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(freeze_snapshot_copies_exactly_the_newest_bytes_of_each_cpu),
		CASE(freeze_snapshot_stops_all_then_copies_then_restarts_all),
		CASE(freeze_snapshot_last_one_leaves_the_cpus_stopped),
		CASE(freeze_snapshot_cpu_that_does_not_stop_is_left_out),
		CASE(freeze_snapshot_cpu_that_does_not_answer_is_copied),
		CASE(freeze_snapshot_cpu_that_does_not_restart_does_not_stop_the_others),
		CASE(freeze_snapshot_first_error_is_told),
		CASE(freeze_snapshot_without_clock_has_no_stop_time),
		CASE(freeze_snapshot_ring_without_aux_gives_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
