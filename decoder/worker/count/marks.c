/*
 * Counting and keeping what is not a branch. Called by decode.c in ptsnap-decode for each stretch;
 * read by the report.
 *
 * A trace may hold a hundred million marks, on many CPUs, and those of one CPU may all come before
 * those of the next. A list grows to twice its limit; then it is put in order of time, unless it
 * is, and its older half goes, which costs each mark but a few comparisons. What is older than all
 * that is kept is not even looked at.
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
	return m->cpus != NULL ? 0 : -ENOMEM;
}

void marks_done(struct marks *m)
{
	size_t i;

	for (i = 0; i < MARKS_N_LISTS; i++)
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
	size_t i;

	for (i = 1; i < l->n; i++) {
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

static int reserve(struct marks_list *l)
{
	size_t capacity = MIN_OF(MAX_OF(2 * l->capacity, (size_t)64), (size_t)2 * MARKS_MAX);

	if (l->n == 2 * MARKS_MAX)
		drop_older(l);
	if (l->n < l->capacity)
		return 0;
	if (ARRAY_FIT(l->list, capacity) < 0)
		return -ENOMEM;
	l->capacity = capacity;
	return 0;
}

/* One instant for an interval: its beginning, else its end. 0: unknown. */
static uint64_t instant(const struct flow_mark *said)
{
	if (said->tsc_lo != 0)
		return said->tsc_lo;
	return said->tsc_hi == UINT64_MAX ? 0 : said->tsc_hi;
}

static int keep(struct marks *m, struct marks_list *l, const struct replay_stretch *s,
		const struct flow_item *item, const struct flow_mark *said)
{
	uint64_t at = instant(said);
	bool traced = item->to != 0;
	int r;

	l->total++;
	if (at < l->floor)
		return 0;
	r = reserve(l);
	if (r < 0)
		return r;
	l->list[l->n++] = (struct mark){
		.at = at,
		.seq = m->seq++,
		.said = *said,
		.cpu = (uint32_t)s->cpu,
		.context = s->context,
		.thread = traced ? s->thread : NULL,
		.process = traced ? s->process : NULL,
	};
	return 0;
}

static enum marks_event event_of_tsx(const struct flow_mark *said,
				     struct marks_transactions *of_thread)
{
	switch (said->value) {
	case FLOW_TSX_BEGIN: of_thread->begun++; return MARKS_TX_BEGIN;
	case FLOW_TSX_COMMIT: of_thread->committed++; return MARKS_TX_COMMIT;
	case FLOW_TSX_ABORT: of_thread->aborted++; return MARKS_TX_ABORT;
	default: return NO_EVENT;
	}
}

/* NO_EVENT: it is no change, or says nothing. */
static enum marks_event event_of_cbr(struct marks_cpu *cpu, const struct flow_mark *said)
{
	uint32_t ratio = said->value <= UINT8_MAX ? (uint32_t)said->value : 0;

	if (ratio == 0 || ratio == cpu->ratio)
		return NO_EVENT;
	cpu->changes += cpu->ratio != 0;
	cpu->ratio = ratio;
	cpu->lowest = cpu->lowest == 0 ? ratio : MIN_OF(cpu->lowest, ratio);
	cpu->highest = MAX_OF(cpu->highest, ratio);
	return MARKS_FREQUENCY;
}

/* What is said for the first time may have been so for long. (Where the processor does not trace
 * events, it always says that interrupts are off.) */
static bool changes(uint8_t *last, const struct flow_mark *said)
{
	uint8_t before = *last;

	*last = (uint8_t)((said->value & 0x7f) + 1);
	return before != 0 && before != *last;
}

static enum marks_event event_of_mode(struct marks_cpu *cpu, const struct flow_mark *said)
{
	if (said->kind == FLOW_MARK_MODE)
		return changes(&cpu->mode, said) ? MARKS_MODE : NO_EVENT;
	if (!changes(&cpu->iflag, said))
		return NO_EVENT;
	return said->value ? MARKS_INTERRUPTS_ON : MARKS_INTERRUPTS_OFF;
}

static enum marks_event event_of(struct marks *m, const struct replay_stretch *s,
				 const struct flow_mark *said, struct marks_transactions *of_thread)
{
	struct marks_cpu *cpu = &m->cpus[s->cpu];

	if (said->kind == FLOW_MARK_CBR)
		return event_of_cbr(cpu, said);
	if (said->kind == FLOW_MARK_MODE || said->kind == FLOW_MARK_IFLAG)
		return event_of_mode(cpu, said);
	/* It has been so for a while. */
	if (said->flags & FLOW_MARK_STATUS)
		return NO_EVENT;
	switch (said->kind) {
	case FLOW_MARK_TSX: return event_of_tsx(said, of_thread);
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

static int count_mark(struct marks *m, const struct replay_stretch *s, const struct flow_item *item,
		      struct marks_transactions *of_thread)
{
	const struct flow_mark *said = &s->marks[item->mark - s->first_mark];
	enum marks_event event = event_of(m, s, said, of_thread);
	enum marks_list_id list;

	if (event == NO_EVENT)
		return 0;
	m->counts[event]++;
	list = list_of(event);
	return list == NO_LIST ? 0 : keep(m, &m->lists[list], s, item, said);
}

int marks_stretch(struct marks *m, const struct replay_stretch *s,
		  struct marks_transactions *of_thread)
{
	size_t i;
	int r = 0;

	for (i = 0; i < s->n_items && r == 0; i++) {
		const struct flow_item *item = &s->items[i];

		if (item->kind == FLOW_MARK)
			r = count_mark(m, s, item, of_thread);
		else if (item->kind == FLOW_ASYNC)
			m->counts[MARKS_ASYNC_BRANCH]++;
		else if (item->kind == FLOW_DISABLE && (item->flags & FLOW_ASYNC_STOP))
			m->counts[MARKS_ASYNC_DISABLE]++;
	}
	return r;
}

static void turn_round(struct marks_list *l)
{
	size_t i;

	for (i = 0; i < l->n / 2; i++) {
		struct mark older = l->list[i];

		l->list[i] = l->list[l->n - 1 - i];
		l->list[l->n - 1 - i] = older;
	}
}

void marks_end(struct marks *m)
{
	size_t i;

	for (i = 0; i < MARKS_N_LISTS; i++) {
		drop_older(&m->lists[i]);
		put_in_order(&m->lists[i]);
		turn_round(&m->lists[i]);
	}
}
