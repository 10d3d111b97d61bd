/*
 * Counting: every stretch of the replay passes here once, item by item; what walks of steps in it
 * do, tally_steps.c counts, which comes to the same. Called by decode_stretch.c in ptsnap-decode.
 *
 * A run's instructions belong to the function in which it begins; a run that crosses a function's
 * end is split exactly. A function is active from its call, or from the jump to it out of another
 * function (a tail call, a PLT entry), until its frame ends or another function takes its place;
 * its total is the thread's counters over that time, recursion counted once.
 */
#include "decoder/worker/count/tally_private.h"

#include <stdlib.h>

#include "decoder/worker/count/lanes.h"

/* flow_run is asked for so many addresses at once. */
#define SPLIT_INSNS 512u

static void for_all_active(struct tally *t, struct tally_lane *lane,
			   void (*fn)(struct tally *, struct tally_lane *, uint32_t))
{
	size_t i, depth = calls_depth(&lane->calls);

	fn(t, lane, lane->function);
	for (i = 0; i < depth; i++)
		fn(t, lane, calls_at(&lane->calls, i)->function);
}

/* Activity is counted for one lane at a time. */
static void switch_to(struct tally *t, struct tally_lane *lane)
{
	if (t->lane == lane)
		return;
	if (t->lane != NULL)
		for_all_active(t, t->lane, tally_deactivate);
	t->lane = lane;
	if (lane != NULL)
		for_all_active(t, lane, tally_activate);
}

static void pop(struct tally *t, struct tally_lane *lane, size_t n)
{
	while (n-- > 0) {
		struct calls_frame frame = calls_pop(&lane->calls);

		tally_deactivate(t, lane, lane->function);
		lane->function = frame.function;
	}
}

static int push(struct tally *t, struct tally_lane *lane, struct calls_change *change)
{
	struct calls_frame dropped;
	int r;

	change->frame.function = lane->function;
	r = calls_push(&lane->calls, &change->frame, &dropped);
	if (r < 0)
		return r;
	if (r == CALLS_DROPPED)
		tally_deactivate(t, lane, dropped.function);
	lane->function = TALLY_NO_FUNCTION;
	lane->called = change->call;
	return 0;
}

/* Another program in the same thread (exec): nothing of the old stack is left. */
static void forget_stack(struct tally *t, struct tally_lane *lane)
{
	pop(t, lane, calls_depth(&lane->calls));
	tally_deactivate(t, lane, lane->function);
	lane->function = TALLY_NO_FUNCTION;
	/* The new program begins elsewhere than where execve was called: that is no signal. */
	lane->calls.stopped = false;
}

static void count_insns(struct tally *t, struct tally_lane *lane, uint64_t n)
{
	t->functions.list[lane->function].self_insns += n;
	lane->insns += n;
}

/* The part of the run at START that lies within SPAN; *ret_next: the instruction after it. */
static size_t part_within(const struct replay_stretch *s, const struct functions_span *span,
			  uint64_t start, size_t left, uint64_t *ret_next)
{
	uint64_t ips[SPLIT_INSNS];
	size_t done = 0;

	/* Each round begins with the last instruction of the one before. */
	for (;;) {
		/* No more than there can be up to the first one behind it: a file's symbols may lie
		 * as close as bytes, and each splits the run anew. */
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

int tally_run(struct tally *t, struct tally_lane *lane, const struct replay_stretch *s,
	      uint64_t start, uint64_t last, size_t n)
{
	bool entry = !lane->cut;

	while (n > 0) {
		struct functions_span span;
		size_t part = n;
		int r = functions_find(&t->functions, s->context, start, &span);

		if (r < 0)
			return r;
		tally_enter(t, lane, span.function, entry && start == span.entry);
		if (last >= span.hi && n > 1)
			part = part_within(s, &span, start, n, &start);
		count_insns(t, lane, part);
		n -= part;
		entry = false;
	}
	return 0;
}

static void count_cpu_time(struct tally_cpu *cpu, uint64_t now)
{
	if (cpu->first_tsc == 0)
		cpu->first_tsc = now;
	cpu->last_tsc = MAX_OF(cpu->last_tsc, now);
	if (cpu->gap_tsc == 0)
		return;
	cpu->lost_ticks += now > cpu->gap_tsc ? now - cpu->gap_tsc : 0;
	cpu->gap_tsc = 0;
}

static void count_gap_time(struct tally_cpu *cpu, uint64_t now)
{
	if (cpu->first_tsc == 0)
		cpu->first_tsc = now;
	cpu->last_tsc = MAX_OF(cpu->last_tsc, now);
	if (cpu->gap_tsc == 0)
		cpu->gap_tsc = now;
}

static void count_time(struct tally *t, struct tally_lane *lane, uint64_t now)
{
	uint64_t ticks;

	if (lane->traced && lane->last_tsc != 0 && now > lane->last_tsc) {
		ticks = now - lane->last_tsc;
		lane->ticks += ticks;
		if (lane->function != TALLY_NO_FUNCTION)
			t->functions.list[lane->function].self_ticks += ticks;
	}
	lane->last_tsc = now;
}

void tally_time(struct tally *t, struct tally_lane *lane, struct tally_cpu *cpu, uint64_t now)
{
	if (now != 0) {
		count_cpu_time(cpu, now);
		count_time(t, lane, now);
	}
	lane->traced = true;
}

static bool ends_stretch(const struct flow_item *item)
{
	return item->kind == FLOW_SYSCALL || item->kind == FLOW_DISABLE || item->kind == FLOW_GAP ||
	       item->kind == FLOW_END;
}

static void remember(struct tally_lane *lane, const struct flow_item *item, uint32_t context)
{
	if (item->from != 0 || item->to != 0)
		lane->ip = item->to != 0 ? item->to : item->from;
	if (item->kind == FLOW_GAP || item->kind == FLOW_END)
		return;
	lane->branches++;
	lane->last[lane->n_last++ % REPORT_LAST_BRANCHES] = (struct tally_branch){
		.from = item->from,
		.to = item->to,
		.tsc_lo = item->tsc_lo,
		.tsc_hi = item->tsc_hi,
		.context = context,
		.kind = item->kind,
	};
}

int tally_calls(struct tally *t, struct tally_lane *lane, const struct flow_item *item)
{
	struct calls_change change = calls_decide(&lane->calls, item);

	pop(t, lane, change.pops);
	return change.pushes ? push(t, lane, &change) : 0;
}

static int count_item(struct tally *t, struct tally_lane *lane, const struct replay_stretch *s,
		      const struct flow_item *item)
{
	uint64_t now = tally_instant(item->tsc_lo, item->tsc_hi);
	int r;

	if (item->kind == FLOW_STEPS)
		return tally_walk(t, lane, s, item->walk);
	r = tally_run(t, lane, s, item->start, item->from, item->insns);
	if (r < 0)
		return r;
	/* A mark only cuts a run in two. */
	lane->cut = item->kind == FLOW_MARK && (lane->cut || item->insns > 0);
	if (item->kind == FLOW_MARK) {
		calls_mark(&lane->calls, &s->marks[item->mark - s->first_mark]);
		return 0;
	}
	if (item->kind != FLOW_GAP) {
		tally_time(t, lane, &t->cpus[s->cpu], now);
	} else if (now != 0) {
		/* Before the first PSB nothing could have been decoded, so nothing is lost. */
		if (s->gaps[item->gap - s->first_gap].fault != FAULT_HEAD)
			count_gap_time(&t->cpus[s->cpu], now);
		count_time(t, lane, now);
	}
	lane->traced = !ends_stretch(item);
	remember(lane, item, s->context);
	return tally_calls(t, lane, item);
}

int tally_stretch(struct tally *t, const struct replay_stretch *s)
{
	const struct space *space = t->functions.replay->contexts.list[s->context].space;
	struct tally_lane *lane;
	size_t i;
	int r = lanes_find(t, s->thread, &lane);

	if (r < 0)
		return r;
	switch_to(t, lane);
	/* What has no thread has no stack that goes on. */
	if (lane->space != space || (s->thread == NULL && !s->goes_on))
		forget_stack(t, lane);
	lane->space = space;
	lane->context = s->context;
	lane->calls.kernel_start =
		t->functions.replay->kernel != NULL ? t->functions.replay->kernel_start : 0;
	/* What the thread waited for the CPU is not its time. */
	lane->traced = lane->traced && !s->switched;
	for (i = 0; i < s->n_items && r == 0; i++)
		r = count_item(t, lane, s, &s->items[i]);
	tally_last(t, lane, s);
	return r;
}

void tally_end(struct tally *t)
{
	switch_to(t, NULL);
}

int tally_init(struct tally *t, const struct replay *replay)
{
	struct tally_lane *unknown;
	int r;

	*t = (struct tally){0};
	r = functions_init(&t->functions, replay);
	if (r < 0)
		return r;
	t->cpus = calloc(replay->manifest->n_cpus + 1, sizeof(*t->cpus));
	r = t->cpus == NULL ? -ENOMEM : tally_cache_init(&t->cache, &t->functions);
	if (r == 0)
		r = lanes_find(t, NULL, &unknown);
	if (r < 0)
		tally_done(t);
	return r;
}

void tally_done(struct tally *t)
{
	tally_cache_done(&t->cache);
	functions_done(&t->functions);
	lanes_done(t);
	free(t->cpus);
	*t = (struct tally){0};
}
