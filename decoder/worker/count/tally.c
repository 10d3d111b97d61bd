/*
 * Counts every stretch of the replay, item by item, for its thread, its functions and its CPU.
 *
 * A run's instructions belong to the function in which the run begins, unless the run crosses the
 * function's end: then the run is split exactly. Walks of steps are counted in tally_steps.c.
 */
#include "decoder/worker/count/tally_private.h"

#include <assert.h>
#include <stdlib.h>

/* flow_run is asked for this many addresses at once. */
#define SPLIT_INSNS    512u
#define FIRST_CAPACITY 16u
#define EXPAND_ITEMS   512u

/* --- The table of threads --- */

static uint32_t *find_slot(struct tally *t, const struct timeline_thread *thread)
{
	size_t mask = t->n_slots - 1;
	uint64_t hash = ((uint64_t)(uintptr_t)thread >> 4) * 0x9e3779b97f4a7c15ull >> 32;
	size_t i = (size_t)hash & mask;

	for (; t->slots[i] != 0; i = (i + 1) & mask)
		if (t->threads[t->slots[i] - 1]->thread == thread)
			break;
	return &t->slots[i];
}

static int grow(struct tally *t)
{
	size_t capacity = t->capacity ? 2 * t->capacity : FIRST_CAPACITY;
	uint32_t *slots;

	if (ARRAY_FIT(t->threads, capacity) < 0)
		return -ENOMEM;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->n_slots = 2 * capacity;
	t->capacity = capacity;
	for (size_t i = 0; i < t->n_threads; i++)
		*find_slot(t, t->threads[i]->thread) = (uint32_t)i + 1;
	return 0;
}

static int add(struct tally *t, const struct timeline_thread *thread)
{
	struct tally_counters *counters;

	if (t->n_threads == t->capacity && grow(t) < 0)
		return -ENOMEM;
	counters = calloc(1, sizeof(*counters));
	if (!counters)
		return -ENOMEM;
	counters->thread = thread;
	counters->hash = HASH_BASIS;
	counters->function = TALLY_NO_FUNCTION;
	calls_init(&counters->calls);
	*find_slot(t, thread) = (uint32_t)t->n_threads + 1;
	t->threads[t->n_threads++] = counters;
	return 0;
}

int tally_find(struct tally *t, const struct timeline_thread *thread, struct tally_counters **ret)
{
	uint32_t slot = t->n_slots > 0 ? *find_slot(t, thread) : 0;

	assert(t->n_slots > 0 || t->n_threads == 0); /* not after tally_sort() */
	if (slot == 0 && t->n_threads == TALLY_MAX_THREADS) {
		t->threads_refused++;
		slot = 1;
	}
	if (slot == 0) {
		if (add(t, thread) < 0)
			return -ENOMEM;
		slot = (uint32_t)t->n_threads;
	}
	*ret = t->threads[slot - 1];
	return 0;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int tally_compare_threads(const struct timeline_thread *a, const struct timeline_thread *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return !a ? -1 : 1;
	if (a->tid != b->tid)
		return compare_u64(a->tid, b->tid);
	return a->begin != b->begin ? compare_u64(a->begin, b->begin) : compare_u64(a->pid, b->pid);
}

static int compare_counters(const void *a, const void *b)
{
	const struct tally_counters *x = *(struct tally_counters *const *)a;
	const struct tally_counters *y = *(struct tally_counters *const *)b;

	return tally_compare_threads(x->thread, y->thread);
}

void tally_sort(struct tally *t)
{
	/* The slots hold positions in the unsorted list. */
	free(t->slots);
	t->slots = NULL;
	t->n_slots = 0;
	qsort(t->threads, t->n_threads, sizeof(struct tally_counters *), compare_counters);
}

/* --- Functions that are active --- */

static void for_all_active(struct tally *t, struct tally_counters *counters,
			   void (*fn)(struct tally *, struct tally_counters *, uint32_t))
{
	size_t depth = calls_depth(&counters->calls);

	fn(t, counters, counters->function);
	for (size_t i = 0; i < depth; i++)
		fn(t, counters, calls_at(&counters->calls, i)->function);
}

/* A function's activity is counted for one thread at a time. NULL: no thread. */
static void switch_to(struct tally *t, struct tally_counters *counters)
{
	if (t->current == counters)
		return;
	if (t->current)
		for_all_active(t, t->current, tally_deactivate);
	t->current = counters;
	if (counters)
		for_all_active(t, counters, tally_activate);
}

/* --- Items --- */

/* How many of the LEFT instructions of the run at START lie within SPAN. *ret_next: the first
 * instruction behind them. */
static size_t part_within(const struct replay_stretch *s, const struct functions_span *span,
			  uint64_t start, size_t left, uint64_t *ret_next)
{
	uint64_t ips[SPLIT_INSNS];
	size_t done = 0;

	/* Each round begins with the last instruction of the one before. */
	for (;;) {
		/* Ask for no more instructions than can lie in front of the span's end, and one:
		 * symbols can be one byte apart, and each symbol splits the run again. */
		uint64_t most = MIN_OF(span->hi - start, (uint64_t)SPLIT_INSNS - 1) + 1;
		size_t i, n = flow_run(s->flow, start, MIN_OF(left - done, (size_t)most), ips);

		for (i = 0; i < n && ips[i] < span->hi; i++)
			;
		if (i < n)
			*ret_next = ips[i];
		if (i < n && i > 0)
			return done + i;
		if (n < SPLIT_INSNS || i == 0)
			return left;
		done += n - 1;
		start = ips[n - 1];
	}
}

int tally_run(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s,
	      uint64_t start, uint64_t last, size_t n)
{
	bool entry = !counters->cut;

	t->functions.now = counters->last_tsc;
	while (n > 0) {
		struct functions_span span;
		size_t part = n;
		int r = functions_find(&t->functions, s->context, start, &span);

		if (r < 0)
			return r;
		r = tally_enter(t, counters, span.function, entry && start == span.entry);
		if (r < 0)
			return r;
		if (last >= span.hi && n > 1)
			part = part_within(s, &span, start, n, &start);
		t->functions.list[span.function].self_insns += part;
		counters->insns += part;
		n -= part;
		entry = false;
	}
	return 0;
}

static void extend_time(struct tally_cpu *cpu, uint64_t now)
{
	if (cpu->first_tsc == 0)
		cpu->first_tsc = now;
	cpu->last_tsc = MAX_OF(cpu->last_tsc, now);
}

static void count_time(struct tally *t, struct tally_counters *counters, uint64_t now)
{
	if (counters->traced && counters->last_tsc != 0 && now > counters->last_tsc) {
		uint64_t ticks = now - counters->last_tsc;

		counters->ticks += ticks;
		if (counters->function != TALLY_NO_FUNCTION)
			t->functions.list[counters->function].self_ticks += ticks;
	}
	counters->last_tsc = now;
}

void tally_time(struct tally *t, struct tally_counters *counters, struct tally_cpu *cpu,
		uint64_t now)
{
	if (now != 0) {
		extend_time(cpu, now);
		if (cpu->gap_tsc != 0 && now > cpu->gap_tsc)
			cpu->lost_ticks += now - cpu->gap_tsc;
		cpu->gap_tsc = 0;
		count_time(t, counters, now);
	}
	counters->traced = true;
}

static void remember(struct tally_counters *counters, const struct flow_item *item,
		     uint32_t context, enum fault fault)
{
	if (item->from != 0 || item->to != 0)
		counters->ip = item->to != 0 ? item->to : item->from;
	/* In front of the first branch a gap joins nothing. */
	if (item->kind == FLOW_END || (item->kind == FLOW_GAP && counters->n_last == 0))
		return;
	counters->branches += item->kind != FLOW_GAP;
	counters->last[counters->n_last++ % REPORT_LAST_BRANCHES] = (struct tally_branch){
		.from = item->from,
		.to = item->to,
		.tsc_lo = item->tsc_lo,
		.tsc_hi = item->tsc_hi,
		.context = context,
		.kind = item->kind,
		.fault = (uint8_t)fault,
	};
}

/* An interrupt in front of the first instruction of a function that was called (a page fault,
 * often) interrupts that function. */
static int enter_interrupted(struct tally *t, struct tally_counters *counters, uint32_t context,
			     const struct flow_item *item)
{
	bool async = item->kind == FLOW_ASYNC ||
		     (item->kind == FLOW_DISABLE && (item->flags & FLOW_ASYNC_STOP));
	struct functions_span span;
	int r;

	if (!async || !counters->called || item->from == 0)
		return 0;
	r = functions_find(&t->functions, context, item->from, &span);
	return r < 0 ? r : tally_enter(t, counters, span.function, true);
}

static int count_item(struct tally *t, struct tally_counters *counters,
		      const struct replay_stretch *s, const struct flow_item *item)
{
	uint64_t now = tally_instant(item->tsc_lo, item->tsc_hi);
	struct tally_cpu *cpu = &t->cpus[s->cpu];
	enum fault fault = FAULT_NONE;
	int r;

	if (item->kind == FLOW_ENABLE && now != 0)
		tally_waited(t, counters, now, counters->async);
	r = tally_run(t, counters, s, item->start, item->from, item->insns);
	if (r < 0)
		return r;
	/* A mark divides a run, which goes on behind the mark. */
	counters->cut = item->kind == FLOW_MARK && (counters->cut || item->insns > 0);
	if (item->kind == FLOW_MARK) {
		calls_mark(&counters->calls, &s->marks[item->mark - s->first_mark]);
		return 0;
	}
	if (item->kind == FLOW_GAP)
		fault = s->gaps[item->gap - s->first_gap].fault;
	counters->async = item->kind == FLOW_DISABLE && (item->flags & FLOW_ASYNC_STOP) != 0;
	if (item->kind != FLOW_GAP) {
		tally_time(t, counters, cpu, now);
	} else if (now != 0) {
		/* Before the first PSB nothing can be decoded, therefore nothing is lost. */
		if (fault != FAULT_HEAD) {
			extend_time(cpu, now);
			if (cpu->gap_tsc == 0)
				cpu->gap_tsc = now;
		}
		count_time(t, counters, now);
	}
	counters->traced = item->kind != FLOW_SYSCALL && item->kind != FLOW_DISABLE &&
			   item->kind != FLOW_GAP && item->kind != FLOW_END;
	remember(counters, item, s->context, fault);
	r = enter_interrupted(t, counters, s->context, item);
	if (t->watch && r == 0)
		r = t->watch->item(t->watch->userdata, counters, s, item);
	return r == 0 ? tally_calls(t, counters, item) : r;
}

static int count_watched(struct tally *t, struct tally_counters *counters,
			 const struct replay_stretch *s, const struct flow_item *item)
{
	int r = t->watch->before(t->watch->userdata, counters, s, item);

	return r == 0 ? count_item(t, counters, s, item) : r;
}

/* A walk as items. */
static int expand(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s,
		  uint32_t walk)
{
	struct flow_position position = {0};
	struct flow_item items[EXPAND_ITEMS];
	uint64_t insns = 0, branches = 0;
	size_t n;
	int r = 0;

	do {
		n = flow_expand(s->flow, s->batch, walk, &position, items, EXPAND_ITEMS);
		for (size_t i = 0; i < n && r == 0; i++) {
			insns += items[i].insns;
			r = count_watched(t, counters, s, &items[i]);
		}
		branches += n;
	} while (n > 0 && r == 0);
	flow_counted(s->flow, insns, branches);
	return r;
}

static int count_any(struct tally *t, struct tally_counters *counters,
		     const struct replay_stretch *s, const struct flow_item *item)
{
	counters->cpu = s->cpu;
	if (item->kind == FLOW_STEPS)
		return t->watch ? expand(t, counters, s, item->walk)
				: tally_walk(t, counters, s, item->walk);
	return t->watch ? count_watched(t, counters, s, item) : count_item(t, counters, s, item);
}

static bool ran_unseen(const struct tally *t, const struct tally_counters *counters,
		       const struct replay_stretch *s)
{
	const struct replay *r = t->functions.replay;
	const struct flow_item *item = s->items;
	uint64_t tsc, time, since;

	if (!s->thread || s->goes_on || s->n_items == 0 || item->kind == FLOW_STEPS ||
	    counters->last_tsc == 0)
		return false;
	tsc = item->tsc_hi == UINT64_MAX ? item->tsc_lo : item->tsc_hi;
	time = tscmap_ns(&r->clocks[s->cpu], tsc);
	since = tscmap_ns(&r->clocks[counters->cpu], counters->last_tsc);
	return tsc != 0 && time != MANIFEST_ABSENT && since != MANIFEST_ABSENT &&
	       turns_untraced(&r->turns, s->cpu, time, s->thread, since);
}

int tally_unseen(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s)
{
	int r;

	if (!ran_unseen(t, counters, s))
		return 0;
	switch_to(t, counters);
	r = tally_forget(t, counters, TALLY_LOST);
	/* The thread went on elsewhere than where it was seen last; no signal did that. */
	counters->calls.stopped = false;
	return r;
}

int tally_stretch(struct tally *t, const struct replay_stretch *s)
{
	const struct space *space = t->functions.replay->contexts.list[s->context].space;
	struct tally_counters *counters;
	int r = tally_find(t, s->thread, &counters);

	if (r < 0)
		return r;
	switch_to(t, counters);
	/* After an exec nothing is left of the old stack; stretches of unknown threads have no
	 * common stack. */
	if (counters->space != space || (!s->thread && !s->goes_on)) {
		r = tally_forget(t, counters, TALLY_UNWOUND);
		/* The new program begins elsewhere than at execve; no signal did that. */
		counters->calls.stopped = false;
	}
	if (r == 0)
		r = tally_unseen(t, counters, s);
	counters->space = space;
	counters->context = s->context;
	counters->calls.kernel_start =
		t->functions.replay->kernel ? t->functions.replay->kernel_start : 0;
	/* The time in which the thread waited for the CPU does not count. */
	counters->traced = counters->traced && !s->switched;
	if (s->switched && s->n_items > 0)
		tally_waited(t, counters, tally_instant(s->items[0].tsc_lo, s->items[0].tsc_hi),
			     false);
	for (size_t i = 0; i < s->n_items && r == 0; i++)
		r = count_any(t, counters, s, &s->items[i]);
	tally_last(t, counters, s);
	return r;
}

int tally_leave_out(struct tally *t, const struct replay_stretch *s)
{
	const uint32_t slot = t->n_slots > 0 ? *find_slot(t, s->thread) : 0;
	struct tally_counters *counters = slot != 0 ? t->threads[slot - 1] : NULL;

	if (!counters)
		return 0;
	counters->traced = false;
	return tally_forget(t, counters, TALLY_LOST);
}

void tally_end(struct tally *t)
{
	switch_to(t, NULL);
	for (size_t i = 0; i < t->n_threads; i++)
		tally_forget_open(t, t->threads[i]);
}

int tally_init(struct tally *t, const struct replay *replay)
{
	struct tally_counters *unknown;
	int r;

	*t = (struct tally){0};
	r = functions_init(&t->functions, replay);
	if (r < 0)
		return r;
	t->cpus = calloc(replay->manifest->n_cpus + 1, sizeof(*t->cpus));
	r = !t->cpus ? -ENOMEM : tally_cache_init(&t->cache, &t->functions);
	if (r == 0)
		r = tally_find(t, NULL, &unknown);
	if (r < 0)
		tally_done(t);
	return r;
}

void tally_done(struct tally *t)
{
	tally_cache_done(&t->cache);
	functions_done(&t->functions);
	for (size_t i = 0; i < t->n_threads; i++) {
		calls_done(&t->threads[i]->calls);
		free(t->threads[i]);
	}
	free(t->threads);
	free(t->slots);
	free(t->cpus);
	*t = (struct tally){0};
}
