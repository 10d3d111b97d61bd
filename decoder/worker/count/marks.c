/*
 * Counts marks, and keeps the newest of them in lists.
 *
 * A trace may hold a hundred million marks on many CPUs, and the marks of one CPU may all come
 * before those of the next CPU. A list grows to twice its limit; then it is sorted by time, unless
 * it is in order, and the older half is dropped. The sorting costs each mark a few comparisons. A
 * mark that is older than all marks in a full list is counted only.
 */
#include "decoder/worker/count/marks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define NO_LIST	 MARKS_N_LISTS
#define NO_EVENT MARKS_N_EVENTS

int marks_init(struct marks *m, size_t n_cpus)
{
	*m = (struct marks){0};
	m->cpus = calloc(n_cpus + 1, sizeof(*m->cpus));
	return m->cpus ? 0 : -ENOMEM;
}

void marks_done(struct marks *m)
{
	for (size_t i = 0; i < MARKS_N_LISTS; i++)
		free(m->lists[i].list);
	free(m->cpus);
	*m = (struct marks){0};
}

const char *marks_event_name(enum marks_event event)
{
	static const char *const names[] = {
		[MARKS_ASYNC_BRANCH] = "async-branch",
		[MARKS_ASYNC_DISABLE] = "async-disable",
		[MARKS_INTERRUPT] = "interrupt",
		[MARKS_INTERRUPTS_ON] = "interrupts-on",
		[MARKS_INTERRUPTS_OFF] = "interrupts-off",
		[MARKS_MODE] = "mode",
		[MARKS_PAGING] = "paging",
		[MARKS_VMCS] = "vmcs",
		[MARKS_TX_BEGIN] = "transaction-begin",
		[MARKS_TX_COMMIT] = "transaction-commit",
		[MARKS_TX_ABORT] = "transaction-abort",
		[MARKS_PTWRITE] = "ptwrite",
		[MARKS_FREQUENCY] = "frequency",
		[MARKS_EXSTOP] = "exstop",
		[MARKS_MWAIT] = "mwait",
		[MARKS_PWRE] = "pwre",
		[MARKS_PWRX] = "pwrx",
		[MARKS_MNT] = "mnt",
		[MARKS_TRIG] = "trig",
		[MARKS_PEBS] = "pebs",
	};

	return names[event];
}

static int compare(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void put_in_order(struct marks_list *l)
{
	for (size_t i = 1; i < l->n; i++) {
		if (compare(&l->list[i - 1], &l->list[i]) < 0)
			continue;
		qsort(l->list, l->n, sizeof(*l->list), compare);
		return;
	}
}

static void drop_older(struct marks_list *l)
{
	if (l->n <= MARKS_MAX)
		return;
	put_in_order(l);
	memmove(l->list, l->list + l->n - MARKS_MAX, MARKS_MAX * sizeof(*l->list));
	l->n = MARKS_MAX;
	l->floor = l->list[0].at;
}

static int keep(struct marks *m, struct marks_list *l, const struct replay_stretch *s,
		const struct flow_item *item, const struct flow_mark *mark)
{
	/* The beginning of the interval, else its end. */
	uint64_t end = mark->tsc_hi == UINT64_MAX ? 0 : mark->tsc_hi;
	uint64_t at = mark->tsc_lo != 0 ? mark->tsc_lo : end;
	bool traced = item->to != 0;

	l->total++;
	if (at < l->floor)
		return 0;
	if (l->n == 2 * MARKS_MAX)
		drop_older(l);
	if (l->n == l->capacity) {
		size_t capacity =
			MIN_OF(MAX_OF(2 * l->capacity, (size_t)64), (size_t)2 * MARKS_MAX);

		if (ARRAY_FIT(l->list, capacity) < 0)
			return -ENOMEM;
		l->capacity = capacity;
	}
	l->list[l->n++] = (struct mark){
		.at = at,
		.seq = m->seq++,
		.flow = *mark,
		.cpu = (uint32_t)s->cpu,
		.context = s->context,
		.thread = traced ? s->thread : NULL,
		.process = traced ? s->process : NULL,
	};
	return 0;
}

static enum marks_event event_of_tsx(const struct flow_mark *mark,
				     struct marks_transactions *of_thread)
{
	switch (mark->value) {
	case FLOW_TSX_BEGIN: of_thread->begun++; return MARKS_TX_BEGIN;
	case FLOW_TSX_COMMIT: of_thread->committed++; return MARKS_TX_COMMIT;
	case FLOW_TSX_ABORT: of_thread->aborted++; return MARKS_TX_ABORT;
	default: return NO_EVENT;
	}
}

/* NO_EVENT: the ratio is unknown or has not changed. */
static enum marks_event event_of_cbr(struct marks_cpu *cpu, const struct flow_mark *mark)
{
	uint32_t ratio = mark->value <= UINT8_MAX ? (uint32_t)mark->value : 0;

	if (ratio == 0 || ratio == cpu->ratio)
		return NO_EVENT;
	cpu->changes += cpu->ratio != 0;
	cpu->ratio = ratio;
	cpu->lowest = cpu->lowest == 0 ? ratio : MIN_OF(cpu->lowest, ratio);
	cpu->highest = MAX_OF(cpu->highest, ratio);
	return MARKS_FREQUENCY;
}

/* Whether the mark changes the value. The first mark of a CPU changes nothing: the value may have
 * held for long. (A processor that does not trace events always says that interrupts are off.) */
static bool changes(uint8_t *last, const struct flow_mark *mark)
{
	uint8_t before = *last;

	*last = (uint8_t)((mark->value & 0x7f) + 1);
	return before != 0 && before != *last;
}

static enum marks_event event_of(struct marks *m, const struct replay_stretch *s,
				 const struct flow_mark *mark, struct marks_transactions *of_thread)
{
	struct marks_cpu *cpu = &m->cpus[s->cpu];

	if (mark->kind == FLOW_MARK_CBR)
		return event_of_cbr(cpu, mark);
	if (mark->kind == FLOW_MARK_MODE)
		return changes(&cpu->mode, mark) ? MARKS_MODE : NO_EVENT;
	if (mark->kind == FLOW_MARK_IFLAG && !changes(&cpu->iflag, mark))
		return NO_EVENT;
	if (mark->kind == FLOW_MARK_IFLAG)
		return mark->value ? MARKS_INTERRUPTS_ON : MARKS_INTERRUPTS_OFF;
	/* A status: it repeats what has been so for a while. */
	if (mark->flags & FLOW_MARK_STATUS)
		return NO_EVENT;
	switch (mark->kind) {
	case FLOW_MARK_TSX: return event_of_tsx(mark, of_thread);
	case FLOW_MARK_PAGING: return MARKS_PAGING;
	case FLOW_MARK_VMCS: return MARKS_VMCS;
	case FLOW_MARK_PTWRITE: return MARKS_PTWRITE;
	case FLOW_MARK_EXSTOP: return MARKS_EXSTOP;
	case FLOW_MARK_MWAIT: return MARKS_MWAIT;
	case FLOW_MARK_PWRE: return MARKS_PWRE;
	case FLOW_MARK_PWRX: return MARKS_PWRX;
	case FLOW_MARK_MNT: return MARKS_MNT;
	case FLOW_MARK_CFE: return MARKS_INTERRUPT;
	case FLOW_MARK_TRIG: return MARKS_TRIG;
	case FLOW_MARK_PEBS: return MARKS_PEBS;
	default: return NO_EVENT;
	}
}

static enum marks_list_id list_of(enum marks_event event)
{
	switch (event) {
	case MARKS_PTWRITE: return MARKS_PTWRITES;
	case MARKS_FREQUENCY: return MARKS_FREQUENCIES;
	case MARKS_EXSTOP:
	case MARKS_MWAIT:
	case MARKS_PWRE:
	case MARKS_PWRX: return MARKS_POWER;
	case MARKS_TX_ABORT: return MARKS_ABORTS;
	case MARKS_INTERRUPT: return MARKS_INTERRUPTS;
	default: return NO_LIST;
	}
}

int marks_stretch(struct marks *m, const struct replay_stretch *s,
		  struct marks_transactions *of_thread)
{
	for (size_t i = 0; i < s->n_items; i++) {
		const struct flow_item *item = &s->items[i];
		const struct flow_mark *mark;
		enum marks_event event;
		enum marks_list_id list;
		int r;

		if (item->kind == FLOW_ASYNC)
			m->counts[MARKS_ASYNC_BRANCH]++;
		else if (item->kind == FLOW_DISABLE && (item->flags & FLOW_ASYNC_STOP))
			m->counts[MARKS_ASYNC_DISABLE]++;
		if (item->kind != FLOW_MARK)
			continue;
		mark = &s->marks[item->mark - s->first_mark];
		event = event_of(m, s, mark, of_thread);
		if (event == NO_EVENT)
			continue;
		m->counts[event]++;
		list = list_of(event);
		if (list == NO_LIST)
			continue;
		r = keep(m, &m->lists[list], s, item, mark);
		if (r < 0)
			return r;
	}
	return 0;
}

void marks_end(struct marks *m)
{
	for (size_t list = 0; list < MARKS_N_LISTS; list++) {
		struct marks_list *l = &m->lists[list];

		drop_older(l);
		put_in_order(l);
		/* The newest first. */
		for (size_t i = 0; i < l->n / 2; i++) {
			struct mark older = l->list[i];

			l->list[i] = l->list[l->n - 1 - i];
			l->list[l->n - 1 - i] = older;
		}
	}
}

/* The bus clock is the TSC frequency divided by the greatest ratio without turbo, as in perf
 * (tools/perf/util/intel-pt.c, cbr2khz). If the recording does not have both: the bus clock of all
 * processors with PT is nominally 100 MHz. */
uint64_t marks_mhz(const struct replay *r, uint64_t ratio)
{
	const struct tscmap *clock = &r->clock;
	const uint64_t nonturbo = r->manifest->max_nonturbo_ratio;
	unsigned __int128 mhz = (unsigned __int128)ratio * 100;

	if (clock->known && nonturbo != 0)
		mhz = (((unsigned __int128)ratio * 1000 << clock->shift) / clock->mult +
		       nonturbo / 2) /
		      nonturbo;
	else if (r->manifest->source && strcmp(r->manifest->source, "emulated") == 0)
		mhz = MANIFEST_ABSENT;
	return mhz < MANIFEST_ABSENT ? (uint64_t)mhz : MANIFEST_ABSENT;
}
