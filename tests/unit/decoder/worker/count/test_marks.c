#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/count/marks.h"
#include "proto/base.h"

#define N_CPUS 2

static const struct timeline_thread thread = {.pid = 1, .tid = 2};

/* One mark, as a stretch of its own with other items and marks around it. */
static void say(struct marks *m, size_t cpu, struct flow_mark mark, uint64_t to,
		struct marks_transactions *tx)
{
	const struct flow_item items[] = {
		{.kind = FLOW_COND, .from = 1, .to = 2},
		{.kind = FLOW_MARK, .mark = 41, .from = to, .to = to},
	};
	const struct replay_stretch s = {
		.items = items,
		.n_items = ARRAY_SIZE(items),
		.marks = &mark,
		.n_marks = 1,
		.first_mark = 41,
		.cpu = cpu,
		.thread = &thread,
		.context = 5,
	};

	assert_int_equal(marks_stretch(m, &s, tx), 0);
}

static struct flow_mark at(uint8_t kind, uint64_t value, uint64_t tsc)
{
	return (struct flow_mark){.kind = kind, .value = value, .tsc_lo = tsc, .tsc_hi = tsc + 10};
}

static void marks_stretch_counts_each_kind(void **state)
{
	static const struct {
		struct flow_mark mark;
		enum marks_event event;
		enum marks_list_id list;
	} cases[] = {
		{{.kind = FLOW_MARK_TSX, .value = FLOW_TSX_BEGIN}, MARKS_TX_BEGIN, MARKS_N_LISTS},
		{{.kind = FLOW_MARK_TSX, .value = FLOW_TSX_COMMIT}, MARKS_TX_COMMIT, MARKS_N_LISTS},
		{{.kind = FLOW_MARK_TSX, .value = FLOW_TSX_ABORT}, MARKS_TX_ABORT, MARKS_ABORTS},
		{{.kind = FLOW_MARK_PAGING, .value = 0x1000}, MARKS_PAGING, MARKS_N_LISTS},
		{{.kind = FLOW_MARK_VMCS, .value = 0x1000}, MARKS_VMCS, MARKS_N_LISTS},
		{{.kind = FLOW_MARK_PTWRITE, .size = 4}, MARKS_PTWRITE, MARKS_PTWRITES},
		{{.kind = FLOW_MARK_CBR, .value = 8}, MARKS_FREQUENCY, MARKS_FREQUENCIES},
		{{.kind = FLOW_MARK_EXSTOP}, MARKS_EXSTOP, MARKS_POWER},
		{{.kind = FLOW_MARK_MWAIT}, MARKS_MWAIT, MARKS_POWER},
		{{.kind = FLOW_MARK_PWRE}, MARKS_PWRE, MARKS_POWER},
		{{.kind = FLOW_MARK_PWRX}, MARKS_PWRX, MARKS_POWER},
		{{.kind = FLOW_MARK_MNT}, MARKS_MNT, MARKS_N_LISTS},
		{{.kind = FLOW_MARK_CFE, .type = 1}, MARKS_INTERRUPT, MARKS_INTERRUPTS},
		{{.kind = FLOW_MARK_TRIG}, MARKS_TRIG, MARKS_N_LISTS},
		{{.kind = FLOW_MARK_PEBS}, MARKS_PEBS, MARKS_N_LISTS},
	};
	struct marks_transactions tx = {0};
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct marks m;

		assert_int_equal(marks_init(&m, N_CPUS), 0);
		say(&m, 0, cases[i].mark, 0x1000, &tx);
		for (j = 0; j < MARKS_N_EVENTS; j++)
			assert_int_equal(m.counts[j], j == cases[i].event);
		for (j = 0; j < MARKS_N_LISTS; j++)
			assert_int_equal(m.lists[j].n, j == cases[i].list);
		assert_non_null(marks_event_name(cases[i].event));
		marks_done(&m);
	}
	assert_int_equal(tx.begun, 1);
	assert_int_equal(tx.committed, 1);
	assert_int_equal(tx.aborted, 1);
}

/* The first word on a mode says nothing of a change; nor does the same again, behind a gap. */
static void marks_stretch_modes_count_where_they_change(void **state)
{
	static const uint8_t values[] = {1, 1, 0, 0, 1, 0};
	struct marks_transactions tx = {0};
	struct marks m;
	size_t i;

	(void)state;
	assert_int_equal(marks_init(&m, N_CPUS), 0);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		say(&m, 0, at(FLOW_MARK_IFLAG, values[i], 0), 0x1000, &tx);
		say(&m, 0, at(FLOW_MARK_MODE, values[i] + 1u, 0), 0x1000, &tx);
		say(&m, 1, at(FLOW_MARK_IFLAG, 0, 0), 0x1000, &tx);
		say(&m, 1, at(FLOW_MARK_MODE, 2, 0), 0x1000, &tx);
	}
	assert_int_equal(m.counts[MARKS_INTERRUPTS_ON], 1);
	assert_int_equal(m.counts[MARKS_INTERRUPTS_OFF], 2);
	assert_int_equal(m.counts[MARKS_MODE], 3);
	marks_done(&m);
}

/* The state in the PSB+ where decoding begins was so before; only a frequency is worth knowing. */
static void marks_stretch_status_is_no_event(void **state)
{
	struct marks_transactions tx = {0};
	struct marks m;
	uint8_t kind;
	size_t j;

	(void)state;
	assert_int_equal(marks_init(&m, N_CPUS), 0);
	for (kind = 0; kind < FLOW_MARK_N_; kind++) {
		struct flow_mark mark = at(kind, 0, 5);

		mark.flags = FLOW_MARK_STATUS;
		if (kind == FLOW_MARK_CBR)
			mark.value = 8;
		say(&m, 0, mark, 0, &tx);
	}
	for (j = 0; j < MARKS_N_EVENTS; j++)
		assert_int_equal(m.counts[j], j == MARKS_FREQUENCY);
	assert_int_equal(tx.begun, 0);
	marks_done(&m);
}

static void marks_stretch_nonsense_is_nothing(void **state)
{
	static const struct flow_mark odd[] = {
		{.kind = FLOW_MARK_N_},
		{.kind = 255},
		{.kind = FLOW_MARK_TICK},
		{.kind = FLOW_MARK_TSX, .value = 77},
		{.kind = FLOW_MARK_CBR, .value = 0},
		{.kind = FLOW_MARK_CBR, .value = UINT64_MAX},
	};
	struct marks_transactions tx = {0};
	struct marks m;
	size_t i;

	(void)state;
	assert_int_equal(marks_init(&m, N_CPUS), 0);
	for (i = 0; i < ARRAY_SIZE(odd); i++)
		say(&m, 0, odd[i], 0x1000, &tx);
	for (i = 0; i < MARKS_N_EVENTS; i++)
		assert_int_equal(m.counts[i], 0);
	assert_int_equal(m.cpus[0].ratio, 0);
	marks_done(&m);
}

static void marks_stretch_frequency_counts_changes_of_its_cpu(void **state)
{
	static const uint8_t ratios[] = {20, 20, 8, 8, 36, 36, 20};
	struct marks_transactions tx = {0};
	struct marks m;
	size_t i;

	(void)state;
	assert_int_equal(marks_init(&m, N_CPUS), 0);
	for (i = 0; i < ARRAY_SIZE(ratios); i++) {
		say(&m, 0, at(FLOW_MARK_CBR, ratios[i], 100 * (i + 1)), 0x1000, &tx);
		say(&m, 1, at(FLOW_MARK_CBR, 12, 100 * (i + 1)), 0x1000, &tx);
	}
	marks_end(&m);
	assert_int_equal(m.cpus[0].lowest, 8);
	assert_int_equal(m.cpus[0].highest, 36);
	assert_int_equal(m.cpus[0].changes, 3);
	assert_int_equal(m.cpus[1].lowest, 12);
	assert_int_equal(m.cpus[1].changes, 0);
	assert_int_equal(m.counts[MARKS_FREQUENCY], 5);
	assert_int_equal(m.lists[MARKS_FREQUENCIES].n, 5);
	marks_done(&m);
}

/* A thread is not blamed for what happened while it was not traced. */
static void marks_stretch_untraced_has_no_thread(void **state)
{
	struct marks_transactions tx = {0};
	struct marks m;

	(void)state;
	assert_int_equal(marks_init(&m, N_CPUS), 0);
	say(&m, 1, at(FLOW_MARK_PWRX, 0, 100), 0, &tx);
	say(&m, 1, at(FLOW_MARK_EXSTOP, 0, 50), 0x1000, &tx);
	marks_end(&m);
	assert_null(m.lists[MARKS_POWER].list[0].thread);
	assert_ptr_equal(m.lists[MARKS_POWER].list[1].thread, &thread);
	assert_int_equal(m.lists[MARKS_POWER].list[1].cpu, 1);
	assert_int_equal(m.lists[MARKS_POWER].list[1].context, 5);
	marks_done(&m);
}

static void marks_stretch_counts_asynchronous_branches(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_ASYNC},
		{.kind = FLOW_DISABLE},
		{.kind = FLOW_DISABLE, .flags = FLOW_ASYNC_STOP},
		{.kind = FLOW_ASYNC},
		{.kind = FLOW_SYSCALL, .flags = FLOW_ASYNC_STOP},
	};
	const struct replay_stretch s = {.items = items, .n_items = ARRAY_SIZE(items)};
	struct marks_transactions tx = {0};
	struct marks m;

	(void)state;
	assert_int_equal(marks_init(&m, N_CPUS), 0);
	assert_int_equal(marks_stretch(&m, &s, &tx), 0);
	assert_int_equal(m.counts[MARKS_ASYNC_BRANCH], 2);
	assert_int_equal(m.counts[MARKS_ASYNC_DISABLE], 1);
	marks_done(&m);
}

/* N marks of both CPUs, of which first all of one came, then all of the other. */
static void fill(struct marks *m, uint64_t n, uint64_t step)
{
	struct marks_transactions tx = {0};
	uint64_t i;

	assert_int_equal(marks_init(m, N_CPUS), 0);
	for (i = 0; i < n; i++)
		say(m, 0, at(FLOW_MARK_PTWRITE, i, step * (2 * i + 1)), 0x1000, &tx);
	for (i = 0; i < n; i++)
		say(m, 1, at(FLOW_MARK_PTWRITE, i, step * (2 * i + 2)), 0x1000, &tx);
	marks_end(m);
}

static void marks_end_keeps_the_newest_of_all_cpus(void **state)
{
	const struct marks_list *l;
	struct marks m;
	size_t i;

	(void)state;
	fill(&m, 5 * MARKS_MAX, 1);
	l = &m.lists[MARKS_PTWRITES];
	assert_int_equal(l->total, 10 * MARKS_MAX);
	assert_int_equal(m.counts[MARKS_PTWRITE], 10 * MARKS_MAX);
	assert_int_equal(l->n, MARKS_MAX);
	assert_true(l->capacity <= 2 * MARKS_MAX);
	for (i = 0; i < l->n; i++)
		assert_int_equal(l->list[i].flow.tsc_lo, 10 * MARKS_MAX - i);
	marks_done(&m);
}

/* Without times the last that were found are as good as any. */
static void marks_end_without_time_keeps_the_last_found(void **state)
{
	const struct marks_list *l;
	struct marks m;
	size_t i;

	(void)state;
	fill(&m, 3 * MARKS_MAX, 0);
	l = &m.lists[MARKS_PTWRITES];
	assert_int_equal(l->n, MARKS_MAX);
	for (i = 0; i < l->n; i++) {
		assert_int_equal(l->list[i].cpu, 1);
		assert_int_equal(l->list[i].flow.value, 3 * MARKS_MAX - 1 - i);
	}
	marks_done(&m);
}

static void marks_end_few_are_all_there(void **state)
{
	const struct marks_list *l;
	struct marks m;
	size_t i;

	(void)state;
	fill(&m, MARKS_MAX / 2 - 1, 1);
	l = &m.lists[MARKS_PTWRITES];
	assert_int_equal(l->n, MARKS_MAX - 2);
	for (i = 0; i < l->n; i++)
		assert_int_equal(l->list[i].flow.tsc_lo, l->n - i);
	marks_done(&m);
}

/* Two are never of the same name. */
static void marks_event_name_is_unique(void **state)
{
	int i, j;

	(void)state;
	for (i = 0; i < MARKS_N_EVENTS; i++)
		for (j = 0; j < i; j++)
			assert_string_not_equal(marks_event_name((enum marks_event)i),
						marks_event_name((enum marks_event)j));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_stretch_counts_each_kind),
		cmocka_unit_test(marks_stretch_modes_count_where_they_change),
		cmocka_unit_test(marks_stretch_status_is_no_event),
		cmocka_unit_test(marks_stretch_nonsense_is_nothing),
		cmocka_unit_test(marks_stretch_frequency_counts_changes_of_its_cpu),
		cmocka_unit_test(marks_stretch_untraced_has_no_thread),
		cmocka_unit_test(marks_stretch_counts_asynchronous_branches),
		cmocka_unit_test(marks_end_keeps_the_newest_of_all_cpus),
		cmocka_unit_test(marks_end_without_time_keeps_the_last_found),
		cmocka_unit_test(marks_end_few_are_all_there),
		cmocka_unit_test(marks_event_name_is_unique),
	};

	return cmocka_run_group_tests_name("marks", tests, NULL, NULL);
}
