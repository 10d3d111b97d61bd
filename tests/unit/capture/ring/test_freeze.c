/*
 * capture/ring/freeze: the order of stopping, copying and restarting, and CPUs that do not obey,
 * over a source made of known bytes.
 */
#include "capture/ring/freeze.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/ring/copiers.h"
#include "proto/base.h"

#define PAGE  4096u
#define TOTAL (3 * PAGE)
#define CPUS  3u

struct fake {
	struct source s;
	struct source_cpu cpus[CPUS];
	uint8_t *memory[CPUS];
	pthread_mutex_t lock; /* several threads call enable */
	char calls[64];	      /* "-0-1-2+0+1+2" */
	int disable_result[CPUS], enable_result[CPUS];
	bool stopped[CPUS];
	int policies[CPUS];    /* of the threads that restarted the CPUs */
	pthread_cond_t waited; /* for this CPU's restart, before others are restarted; -1: none */
	int wait_for;
	bool restarted[CPUS], waited_in_vain;
	uint64_t tsc;
	struct freezer *freezer;
	struct area area;
	struct freeze_wish wish;
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

/* Until the CPU is stopped, its head is stale, as on hardware. */
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

/* Waits until the CPU that is to be first was restarted. The time only bounds a failure. */
static void wait_for_other(struct fake *f, uint32_t index)
{
	struct timespec end;

	f->restarted[index] = true;
	pthread_cond_broadcast(&f->waited);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 20;
	while (f->wait_for >= 0 && !f->restarted[f->wait_for] && !f->waited_in_vain)
		if (pthread_cond_timedwait(&f->waited, &f->lock, &end) == ETIMEDOUT)
			f->waited_in_vain = true;
}

static int fake_enable(struct source *s, uint32_t index)
{
	struct fake *f = fake_of(s);

	pthread_mutex_lock(&f->lock);
	wait_for_other(f, index);
	f->policies[index] = sched_getscheduler(0);
	note_call(f, '+', index);
	if (f->enable_result[index] == 0)
		f->stopped[index] = false;
	pthread_mutex_unlock(&f->lock);
	/* Bytes that are written from now on must not be in the copy. */
	memset(f->memory[index] + 2 * PAGE, 0xee, PAGE);
	return f->enable_result[index];
}

/* Stops CPUs as prctl(2) does: the requested CPU, then the others in their own order. */
static void fake_disable_all(struct source *s, uint32_t first, int *ret)
{
	struct fake *f = fake_of(s);

	note_call(f, '=', first);
	ret[first] = fake_disable(s, first);
	for (uint32_t i = 0; i < CPUS; i++)
		if (i != first && f->cpus[i].pt.aux != NULL)
			ret[i] = fake_disable(s, i);
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
	freezer_free(f->freezer);
	area_done(&f->area);
	pthread_cond_destroy(&f->waited);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static const struct source_ops fake_all_ops = {
	.name = "fake",
	.disable = fake_disable,
	.enable = fake_enable,
	.disable_all = fake_disable_all,
	.free = fake_free,
	.read_tsc = fake_tsc,
};

static const struct source_ops fake_ops = {
	.name = "fake",
	.disable = fake_disable,
	.enable = fake_enable,
	.free = fake_free,
	.read_tsc = fake_tsc,
};

/* The byte of CPU that is AGE bytes older than the newest one. */
static uint8_t byte_of(uint32_t cpu, uint64_t age)
{
	return (uint8_t)((age * 7 + age / 256 + cpu) % 251);
}

static int set_up(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->waited, NULL);
	f->wait_for = -1;
	f->wish = (struct freeze_wish){.resume = true, .cpu = FREEZE_ANY_CPU};
	f->s = (struct source){.ops = &fake_ops, .cpus = f->cpus, .n_cpus = CPUS};
	/* With one thread that copies, calls come in a known order. */
	assert_int_equal(freezer_new(&f->s, 1, &f->freezer), 0);
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
		f->cpus[i].node = -1;
		assert_int_equal(ring_init(&f->cpus[i].pt, page, TOTAL, NULL), 0);
	}
	assert_int_equal(area_make(&f->s, 0, &f->area), 0);
	*state = f;
	return 0;
}

static int freeze(struct fake *f, struct freeze_cpu *got)
{
	memset(got, 0x5a, CPUS * sizeof(*got));
	return freeze_snapshot(f->freezer, &f->s, &f->wish, &f->area, got);
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
		void *fresh;

		(void)state;
		set_up(&fresh);
		f = fresh;
		f->wish.bytes = wanted[w];
		assert_int_equal(area_slice(&f->s, wanted[w]), each);
		f->area.base[each] = 0x77;
		assert_int_equal(freeze(f, got), 0);
		for (uint32_t i = 0; i < CPUS; i++) {
			assert_true(got[i].traced);
			assert_int_equal(got[i].bytes, each);
			/* The place is the same however few bytes were asked for. */
			assert_int_equal(got[i].offset, i * PAGE);
			assert_newest(f->area.base, &got[i], i);
		}
		if (each < PAGE)
			assert_int_equal(f->area.base[each], 0x77);
		tear_down(&fresh);
	}
}

static void freeze_snapshot_stops_all_then_restarts_each_behind_its_copy(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	assert_int_equal(freeze(f, got), 0);
	assert_string_equal(f->calls, "-0-1-2+0+1+2");
	for (uint32_t i = 0; i < CPUS; i++) {
		/* These are the perf clock right before and right after the stop. */
		assert_int_equal(got[i].asked_ns, 500000 + 100 * i);
		assert_int_equal(got[i].stop_ns, 500000 + 100 * (i + 1));
		assert_int_equal(got[i].stop_order, i);
		assert_false(got[i].together);
		assert_true(got[i].dark_ns >= got[i].copy_ns);
		assert_in_range(got[i].dark_ns, 1, 60000000000);
		assert_false(got[i].no_answer || got[i].not_stopped || got[i].not_restarted);
		assert_false(f->stopped[i]);
	}
	/* The last CPU waited for the copies before its own. */
	assert_true(got[2].dark_ns >= got[0].copy_ns + got[1].copy_ns + got[2].copy_ns);
}

static void freeze_snapshot_last_one_leaves_the_cpus_stopped(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->wish.resume = false;
	assert_int_equal(freeze(f, got), 0);
	assert_string_equal(f->calls, "-0-1-2");
	for (uint32_t i = 0; i < CPUS; i++) {
		assert_int_equal(got[i].dark_ns, MANIFEST_ABSENT);
		assert_int_equal(got[i].bytes, PAGE);
		assert_newest(f->area.base, &got[i], i);
	}
}

static void freeze_snapshot_cpu_that_does_not_stop_is_left_out(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->disable_result[1] = -EIO;
	f->wish.bytes = 64;
	assert_int_equal(freeze(f, got), -EIO);
	assert_string_equal(f->calls, "-0-1-2+0+1+2");
	assert_true(got[1].not_stopped);
	assert_int_equal(got[1].bytes, 0);
	assert_int_equal(got[1].stop_ns, MANIFEST_ABSENT);
	assert_int_equal(got[1].dark_ns, MANIFEST_ABSENT);
	assert_int_equal(got[1].copy_ns, MANIFEST_ABSENT);
	assert_int_equal(got[0].bytes, 64);
	assert_int_equal(got[2].bytes, 64);
	assert_newest(f->area.base, &got[0], 0);
	assert_newest(f->area.base, &got[2], 2);
}

static void freeze_snapshot_cpu_that_does_not_answer_is_copied(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->disable_result[1] = SOURCE_NO_ANSWER;
	f->disable_result[2] = SOURCE_NO_ANSWER;
	f->enable_result[2] = SOURCE_NO_ANSWER;
	assert_int_equal(freeze(f, got), 0);
	assert_true(got[1].no_answer);
	assert_newest(f->area.base, &got[1], 1);
	assert_true(got[1].dark_ns != MANIFEST_ABSENT);
	assert_true(got[2].no_answer);
	assert_false(got[2].not_stopped);
	assert_false(got[2].not_restarted);
	assert_int_equal(got[2].bytes, PAGE);
	assert_newest(f->area.base, &got[2], 2);
	/* It is unknown when the CPU runs again. */
	assert_int_equal(got[2].dark_ns, MANIFEST_ABSENT);
	assert_false(got[0].no_answer);
}

static void freeze_snapshot_cpu_that_does_not_restart_does_not_stop_the_others(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->enable_result[0] = -ENXIO;
	f->enable_result[2] = -EBUSY;
	assert_int_equal(freeze(f, got), -ENXIO);
	assert_string_equal(f->calls, "-0-1-2+0+1+2");
	assert_true(got[0].not_restarted);
	assert_int_equal(got[0].dark_ns, MANIFEST_ABSENT);
	assert_false(got[1].not_restarted);
	assert_true(got[1].dark_ns != MANIFEST_ABSENT);
	assert_newest(f->area.base, &got[0], 0);
}

static void take_ring(struct fake *f, uint32_t cpu, enum source_cpu_state state)
{
	f->cpus[cpu].pt = (struct ring){0};
	f->cpus[cpu].state = state;
}

static const struct dark_span *newest_dark(const struct fake *f, uint32_t cpu)
{
	assert_true(f->cpus[cpu].dark.n > 0);
	return dark_at(&f->cpus[cpu].dark, f->cpus[cpu].dark.n - 1);
}

static void freeze_snapshot_lists_the_time_of_its_own_copy(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	assert_int_equal(freeze(f, got), 0);
	f->tsc += 1000;
	assert_int_equal(freeze(f, got), 0);
	for (uint32_t i = 0; i < CPUS; i++) {
		assert_int_equal(f->cpus[i].dark.n, 2);
		assert_string_equal(newest_dark(f, i)->kind, DARK_COPY);
		assert_int_equal(newest_dark(f, i)->since_ns, got[i].stop_ns);
		assert_int_equal(newest_dark(f, i)->until_ns, 500000 + f->tsc);
	}
}

static void freeze_snapshot_cpu_that_does_not_restart_is_dark_until_it_does(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu first[CPUS], got[CPUS];

	f->enable_result[1] = -EIO;
	f->enable_result[2] = SOURCE_NO_ANSWER;
	assert_int_equal(freeze(f, first), -EIO);
	for (uint32_t i = 1; i < CPUS; i++) {
		assert_string_equal(newest_dark(f, i)->kind, "pt-failed");
		assert_true(newest_dark(f, i)->open);
		assert_int_equal(newest_dark(f, i)->since_ns, first[i].stop_ns);
	}
	assert_false(newest_dark(f, 0)->open);
	f->tsc += 1000;
	f->enable_result[1] = f->enable_result[2] = 0;
	assert_int_equal(freeze(f, got), 0);
	for (uint32_t i = 1; i < CPUS; i++) {
		assert_int_equal(f->cpus[i].dark.n, 1);
		assert_int_equal(newest_dark(f, i)->since_ns, first[i].stop_ns);
		assert_int_equal(newest_dark(f, i)->until_ns, 500000 + f->tsc);
	}
}

static void freeze_snapshot_cpu_that_was_not_stopped_is_not_dark(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->disable_result[1] = -EIO;
	take_ring(f, 2, SOURCE_CPU_BUSY);
	assert_int_equal(freeze(f, got), -EIO);
	assert_int_equal(f->cpus[0].dark.n, 1);
	assert_int_equal(f->cpus[1].dark.n, 0);
	assert_int_equal(f->cpus[2].dark.n, 0);
}

/* For how long user code ran on each CPU, as fake_ran() tells it. */
static uint64_t user_time[CPUS];

static int fake_ran(const struct source *s, uint64_t *ret, uint64_t *ret_step_ns)
{
	(void)s;
	memcpy(ret, user_time, sizeof(user_time));
	*ret_step_ns = 10;
	return 0;
}

/* CPU 0 is idle, the unit of CPU 1 is dead, and CPU 2 was not traced for a time. */
static void freeze_snapshot_ring_that_stands_while_code_runs_is_told(void **state)
{
	struct source_ops ops = fake_ops;
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	ops.ran = fake_ran;
	f->s.ops = &ops;
	memset(user_time, 0, sizeof(user_time));
	assert_int_equal(freeze(f, got), 0);
	/* fake_enable() has written to the rings. */
	assert_int_equal(freeze(f, got), 0);
	assert_false(f->cpus[1].pulse.stands);
	f->tsc += 100000;
	user_time[1] = user_time[2] = 50000;
	dark_add(&f->cpus[2].dark, "pt-failed", "", 500000 + f->tsc - 10, 500000 + f->tsc);
	assert_int_equal(freeze(f, got), 0);
	assert_true(f->cpus[0].pulse.stands && f->cpus[1].pulse.stands);
	assert_int_equal(f->cpus[0].pulse.user_ns, 0);
	assert_in_range(f->cpus[1].pulse.user_ns, 49000, 49990);
	assert_false(f->cpus[2].pulse.stands);
	f->s.ops = &fake_ops;
}

static void freeze_snapshot_first_error_is_told(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->disable_result[2] = -EIO;
	f->enable_result[0] = -ENXIO;
	assert_int_equal(freeze(f, got), -EIO);
}

static void freeze_snapshot_without_clock_has_no_stop_time(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->s.clock.valid = false;
	assert_int_equal(freeze(f, got), 0);
	assert_int_equal(got[0].stop_ns, MANIFEST_ABSENT);
}

static void assert_untouched(const struct freeze_cpu *c)
{
	assert_false(c->traced || c->no_answer || c->not_stopped || c->not_restarted);
	assert_int_equal(c->stop_order, MANIFEST_ABSENT);
	assert_int_equal(c->asked_ns, MANIFEST_ABSENT);
	assert_int_equal(c->stop_ns, MANIFEST_ABSENT);
	assert_int_equal(c->dark_ns, MANIFEST_ABSENT);
}

static void freeze_snapshot_cpu_without_ring_is_left_alone(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	take_ring(f, 0, SOURCE_CPU_BUSY);
	assert_int_equal(freeze(f, got), 0);
	assert_string_equal(f->calls, "-1-2+1+2");
	assert_untouched(&got[0]);
	assert_int_equal(got[0].bytes, 0);
	assert_int_equal(got[0].copy_ns, MANIFEST_ABSENT);
	assert_int_equal(got[1].stop_order, 0);
	assert_newest(f->area.base, &got[1], 1);
	assert_newest(f->area.base, &got[2], 2);
}

static void freeze_snapshot_no_cpu_traces_is_well(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	for (uint32_t i = 0; i < CPUS; i++)
		take_ring(f, i, SOURCE_CPU_NO_PT);
	area_done(&f->area);
	assert_int_equal(area_make(&f->s, 0, &f->area), 0);
	assert_null(f->area.base);
	assert_true(area_holds(&f->area, &f->s, 0));
	f->s.ops = &fake_all_ops;
	assert_int_equal(freeze(f, got), 0);
	assert_string_equal(f->calls, "");
	for (uint32_t i = 0; i < CPUS; i++)
		assert_untouched(&got[i]);
}

/* The earlier trace is copied, and the CPU is neither stopped nor restarted. */
static void freeze_snapshot_ring_of_a_cpu_that_does_not_trace_is_copied(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->cpus[0].state = SOURCE_CPU_OFFLINE;
	f->cpus[0].pt.page->aux_head = 1000;
	f->cpus[2].state = SOURCE_CPU_FAILED;
	f->cpus[2].pt.page->aux_head = 3000;
	assert_int_equal(freeze(f, got), 0);
	assert_string_equal(f->calls, "-1+1");
	assert_untouched(&got[0]);
	assert_untouched(&got[2]);
	for (uint32_t i = 0; i < CPUS; i++) {
		assert_int_equal(got[i].bytes, PAGE);
		assert_true(got[i].copy_ns != MANIFEST_ABSENT);
		assert_newest(f->area.base, &got[i], i);
	}
}

static void freeze_snapshot_wished_cpu_is_first(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->wish.cpu = 12;
	assert_int_equal(freeze(f, got), 0);
	assert_string_equal(f->calls, "-2-0-1+2+0+1");
	assert_int_equal(got[2].stop_order, 0);
	assert_int_equal(got[0].stop_order, 1);
	assert_int_equal(got[1].stop_order, 2);
	for (uint32_t i = 0; i < CPUS; i++)
		assert_newest(f->area.base, &got[i], i);
}

static void freeze_snapshot_wished_cpu_that_does_not_trace_is_no_wish(void **state)
{
	static const uint32_t wishes[] = {12, 2, 99};
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->cpus[2].state = SOURCE_CPU_OFFLINE;
	for (size_t i = 0; i < ARRAY_SIZE(wishes); i++) {
		memset(f->calls, 0, sizeof(f->calls));
		f->wish.cpu = wishes[i];
		assert_int_equal(freeze(f, got), 0);
		assert_string_equal(f->calls, "-0-1+0+1");
	}
}

static void freeze_snapshot_source_that_stops_all_at_once_is_let(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->s.ops = &fake_all_ops;
	f->wish.cpu = 11;
	assert_int_equal(freeze(f, got), 0);
	assert_string_equal(f->calls, "=1-1-0-2+1+0+2");
	for (uint32_t i = 0; i < CPUS; i++) {
		/* One call stopped all CPUs. */
		assert_int_equal(got[i].asked_ns, 500000);
		assert_int_equal(got[i].stop_ns, 500300);
		assert_true(got[i].together);
		assert_newest(f->area.base, &got[i], i);
	}
	assert_int_equal(got[1].stop_order, 0);
	assert_int_equal(got[0].stop_order, 1);
	assert_int_equal(got[2].stop_order, 2);
}

static void freeze_snapshot_not_all_stop_at_once_is_told_of_each(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->s.ops = &fake_all_ops;
	f->disable_result[0] = SOURCE_NO_ANSWER;
	f->disable_result[2] = -EIO;
	assert_int_equal(freeze(f, got), -EIO);
	assert_true(got[0].no_answer && !got[0].not_stopped);
	assert_false(got[1].no_answer || got[1].not_stopped);
	assert_true(got[2].not_stopped);
	assert_int_equal(got[2].bytes, 0);
	assert_string_equal(f->calls, "=0-0-1-2+0+1+2");
}

static void freeze_snapshot_area_too_small_takes_the_newest_that_fit(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	f->area.slice = 100;
	assert_false(area_holds(&f->area, &f->s, 0));
	assert_true(area_holds(&f->area, &f->s, 100));
	assert_false(area_holds(&f->area, &f->s, 101));
	assert_int_equal(freeze(f, got), 0);
	for (uint32_t i = 0; i < CPUS; i++) {
		assert_int_equal(got[i].bytes, 100);
		assert_int_equal(got[i].offset, 100 * i);
		assert_newest(f->area.base, &got[i], i);
	}
	f->area.slice = PAGE;
}

/* fake_enable() overwrites each CPU's ring as soon as the CPU runs again. */
static void freeze_snapshot_by_several_threads_is_exact_every_time(void **state)
{
	struct fake *first = *state;

	for (unsigned copiers = 0; copiers <= 9; copiers++) {
		freezer_free(first->freezer);
		assert_int_equal(freezer_new(&first->s, copiers, &first->freezer), 0);
		for (unsigned round = 0; round < 50; round++) {
			struct freeze_cpu got[CPUS];
			struct fake *f;
			void *fresh;

			set_up(&fresh);
			f = fresh;
			f->s.ops = round % 2 == 0 ? &fake_ops : &fake_all_ops;
			f->wish.bytes = round * 100;
			/* The threads are the same in each round. */
			assert_int_equal(
				freeze_snapshot(first->freezer, &f->s, &f->wish, &f->area, got), 0);
			for (uint32_t i = 0; i < CPUS; i++) {
				assert_int_equal(got[i].bytes,
						 MIN_OF(round == 0 ? PAGE : round * 100, PAGE));
				assert_newest(f->area.base, &got[i], i);
				assert_false(f->stopped[i]);
				assert_in_range(got[i].dark_ns, got[i].copy_ns, 60000000000);
			}
			tear_down(&fresh);
		}
	}
}

/* CPU 2 alone is on node 1. Two threads copy, and the rings of node 0 take until CPU 2 runs again.
 */
static void freeze_snapshot_each_node_has_a_thread_of_its_own(void **state)
{
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	for (int i = 0; i < (int)CPUS; i++)
		f->cpus[i].node = i == 2;
	freezer_free(f->freezer);
	assert_int_equal(freezer_new(&f->s, 2, &f->freezer), 0);
	f->wait_for = 2;
	assert_int_equal(freeze_snapshot(f->freezer, &f->s, &f->wish, &f->area, got), 0);
	assert_false(f->waited_in_vain);
	for (uint32_t i = 0; i < CPUS; i++)
		assert_newest(f->area.base, &got[i], i);
}

static void freeze_snapshot_has_real_time_priority_meanwhile(void **state)
{
	const struct sched_param one = {.sched_priority = 1}, none = {0};
	int nice = getpriority(PRIO_PROCESS, (id_t)gettid());
	struct fake *f = *state;
	struct freeze_cpu got[CPUS];

	if (sched_setscheduler(0, SCHED_FIFO, &one) < 0)
		skip();
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	for (unsigned copiers = 1; copiers <= 3; copiers++) {
		freezer_free(f->freezer);
		assert_int_equal(freezer_new(&f->s, copiers, &f->freezer), 0);
		*f->calls = '\0';
		assert_int_equal(freeze_snapshot(f->freezer, &f->s, &f->wish, &f->area, got), 0);
		for (uint32_t i = 0; i < CPUS; i++)
			assert_int_equal(f->policies[i] & ~SCHED_RESET_ON_FORK, SCHED_FIFO);
		assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
		assert_int_equal(getpriority(PRIO_PROCESS, (id_t)gettid()), nice);
	}
}

static void copiers_default_grows_with_the_host(void **state)
{
	static const struct {
		unsigned online, nodes, copiers;
	} cases[] = {{1, 1, 1},	   {2, 1, 1},	 {3, 1, 2},	{8, 1, 4},     {8, 4, 4},
		     {16, 1, 8},   {16, 8, 8},	 {32, 8, 9},	{64, 1, 8},    {64, 2, 8},
		     {128, 8, 16}, {224, 2, 28}, {448, 16, 56}, {4096, 32, 64}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(copiers_default(cases[i].online, cases[i].nodes),
				 cases[i].copiers);
}

static void freeze_stop_ns_record_of_another_stop_is_not_believed(void **state)
{
	const struct freeze_cpu cpu = {.asked_ns = 1000, .stop_ns = 2000};
	const struct freeze_cpu none = {.asked_ns = MANIFEST_ABSENT, .stop_ns = MANIFEST_ABSENT};

	(void)state;
	assert_int_equal(freeze_stop_ns(&cpu, 0), 2000);
	assert_int_equal(freeze_stop_ns(&cpu, 999), 2000);
	assert_int_equal(freeze_stop_ns(&cpu, 1000), 1000);
	assert_int_equal(freeze_stop_ns(&cpu, 1999), 1999);
	assert_int_equal(freeze_stop_ns(&cpu, 2001), 2000);
	assert_int_equal(freeze_stop_ns(&cpu, MANIFEST_ABSENT), 2000);
	assert_int_equal(freeze_stop_ns(&none, 1500), MANIFEST_ABSENT);
	assert_int_equal(freeze_stop_ns(&none, MANIFEST_ABSENT), MANIFEST_ABSENT);
}

static void freezer_new_and_free_without_work_ends_its_threads(void **state)
{
	struct fake *fake = *state;

	for (unsigned copiers = 0; copiers <= 9; copiers++) {
		struct freezer *f;

		assert_int_equal(freezer_new(&fake->s, copiers, &f), 0);
		freezer_free(f);
	}
	freezer_free(NULL);
}

static void area_make_rings_that_differ_has_slices_of_the_largest(void **state)
{
	struct fake *f = *state;
	struct area a;

	f->cpus[0].pt.aux_size = 64 * PAGE;
	take_ring(f, 1, SOURCE_CPU_BUSY);
	assert_int_equal(area_slice(&f->s, 0), 64 * PAGE);
	assert_int_equal(area_slice(&f->s, PAGE + 1), PAGE + 1);
	assert_false(area_holds(&f->area, &f->s, 0));
	assert_int_equal(area_make(&f->s, PAGE + 1, &a), 0);
	assert_int_equal(a.slice, 2 * PAGE);
	assert_true(area_holds(&a, &f->s, 2 * PAGE));
	assert_false(area_holds(&a, &f->s, 0));
	memset(a.base, 1, CPUS * a.slice);
	area_touch(&a, &f->s);
	assert_int_equal(a.base[0], 1);
	area_done(&a);
	assert_null(a.base);
	area_done(&a);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(freeze_snapshot_copies_exactly_the_newest_bytes_of_each_cpu),
		CASE(freeze_snapshot_stops_all_then_restarts_each_behind_its_copy),
		CASE(freeze_snapshot_last_one_leaves_the_cpus_stopped),
		CASE(freeze_snapshot_cpu_that_does_not_stop_is_left_out),
		CASE(freeze_snapshot_cpu_that_does_not_answer_is_copied),
		CASE(freeze_snapshot_cpu_that_does_not_restart_does_not_stop_the_others),
		CASE(freeze_snapshot_lists_the_time_of_its_own_copy),
		CASE(freeze_snapshot_cpu_that_does_not_restart_is_dark_until_it_does),
		CASE(freeze_snapshot_cpu_that_was_not_stopped_is_not_dark),
		CASE(freeze_snapshot_ring_that_stands_while_code_runs_is_told),
		CASE(freeze_snapshot_first_error_is_told),
		CASE(freeze_snapshot_without_clock_has_no_stop_time),
		CASE(freeze_snapshot_cpu_without_ring_is_left_alone),
		CASE(freeze_snapshot_no_cpu_traces_is_well),
		CASE(freeze_snapshot_ring_of_a_cpu_that_does_not_trace_is_copied),
		CASE(freeze_snapshot_wished_cpu_is_first),
		CASE(freeze_snapshot_wished_cpu_that_does_not_trace_is_no_wish),
		CASE(freeze_snapshot_source_that_stops_all_at_once_is_let),
		CASE(freeze_snapshot_not_all_stop_at_once_is_told_of_each),
		CASE(freeze_snapshot_area_too_small_takes_the_newest_that_fit),
		CASE(freeze_snapshot_by_several_threads_is_exact_every_time),
		CASE(freeze_snapshot_each_node_has_a_thread_of_its_own),
		CASE(freeze_snapshot_has_real_time_priority_meanwhile),
		cmocka_unit_test(copiers_default_grows_with_the_host),
		cmocka_unit_test(freeze_stop_ns_record_of_another_stop_is_not_believed),
		CASE(freezer_new_and_free_without_work_ends_its_threads),
		CASE(area_make_rings_that_differ_has_slices_of_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
