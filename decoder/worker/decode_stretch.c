/*
 * Takes a stretch of the replay into the view: counts it, hashes it, or writes its lines; and drops
 * what is not permitted.
 */
#include "decoder/worker/decode_private.h"

#include <string.h>

#include "decoder/worker/count/tally.h"
#include "proto/base.h"

/* The first item of S, also out of a walk. False: S has none, and *ret is an item close by. */
static bool first_item(const struct replay_stretch *s, struct flow_item *ret)
{
	struct flow_item items[FLOW_EXPAND_MIN];
	size_t i = 0;

	for (; i < s->n_items && s->items[i].kind == FLOW_STEPS; i++) {
		struct flow_position position = {0};

		if (flow_expand(s->flow, s->batch, s->items[i].walk, &position, items,
				FLOW_EXPAND_MIN) > 0) {
			*ret = items[0];
			return true;
		}
	}
	*ret = s->items[MIN_OF(i, s->n_items - 1)];
	return i < s->n_items;
}

int decode_settle(struct decode *d)
{
	struct decode_unowned *n = &d->unowned;
	struct flow_gap none = {.fault = FAULT_THREAD_UNCERTAIN, .tsc_hi = UINT64_MAX};
	size_t first = d->gaps.n;
	int r;

	if (!n->open || n->insns == 0) {
		n->open = false;
		return 0;
	}
	none.offset = n->item.offset;
	none.address = n->item.to != 0 ? n->item.to : n->item.from;
	none.tsc_lo = n->item.tsc_lo;
	r = gaps_add_unowned(&d->gaps, d->replay, d->replay->manifest->cpus[n->cpu].cpu, &none,
			     n->insns);
	if (d->gaps.n > first)
		d->gaps.list[first].trace = n->cpu;
	n->open = false;
	return r < 0 ? r : gaps_name(&d->gaps, first, d->replay, &n->candidates);
}

/* Counts the gaps of S, in which INSNS instructions were executed. */
static int count_gaps(struct decode_job *job, const struct replay_stretch *s, uint64_t insns)
{
	struct decode *d = job->d;
	const struct manifest_cpu *cpu = &d->replay->manifest->cpus[s->cpu];
	uint64_t head = d->gaps.head_bytes;
	/* For a CPU that did not trace, a gap of the recording says why its trace is empty; a slice
	 * may have nothing of a CPU. */
	bool told = (cpu->state && strcmp(cpu->state, "tracing") != 0) || job->slice;
	struct decode_unowned *n = &d->unowned;
	size_t first;
	int r = s->goes_on && d->unowned.cpu == s->cpu ? 0 : decode_settle(d);

	first = d->gaps.n;
	for (size_t i = 0; i < s->n_gaps && r == 0; i++)
		if (!permit_address(d->replay->permit, s->gaps[i].address))
			d->withheld = true;
		else if (!told || s->gaps[i].fault != FAULT_EMPTY)
			r = gaps_add_flow(&d->gaps, d->replay, cpu->cpu, &s->gaps[i]);
	if (r == 0 && !s->thread)
		r = gaps_name(&d->gaps, first, d->replay, s->candidates);
	d->cpus[s->cpu].head_bytes += d->gaps.head_bytes - head;
	for (size_t i = first; i < d->gaps.n; i++)
		d->gaps.list[i].trace = s->cpu;
	/* Code of a process whose thread is unknown: one gap, wherever batches end. */
	if (s->process && s->n_items > 0) {
		if (!n->open)
			*n = (struct decode_unowned){
				.open = true, .cpu = s->cpu, .candidates = *s->candidates};
		if (!n->found)
			n->found = first_item(s, &n->item);
		n->insns += insns;
	}
	return r;
}

/* The instructions of S count in the totals alone. */
static int leave_out(struct decode *d, const struct replay_stretch *s)
{
	const int r = tally_leave_out(&d->tally, s);

	return r == 0 ? steps_count_stretch(&d->counts, s) : r;
}

static int view_stretch(struct decode_job *job, const struct replay_stretch *s)
{
	struct decode *d = job->d;
	struct tally_counters *counters;
	int r;

	if (job->listing)
		return listing_stretch(job->listing, s);
	switch (job->options->view) {
	case WORKER_VIEW_REPORT:
		if (!decode_slice_has(job, s))
			return leave_out(d, s);
		r = tally_stretch(&d->tally, s);
		return r == 0 ? marks_stretch(&d->marks, s, &d->tally.current->transactions) : r;
	case WORKER_VIEW_BRANCHES:
	case WORKER_VIEW_INSNS:
	case WORKER_VIEW_EVENTS: return views_stretch(&job->views, s);
	case WORKER_VIEW_CALLS: return calltree_stretch(job->calls, s);
	default: break;
	}
	/* A summary. */
	if (!job->options->hash)
		return steps_count_stretch(&d->counts, s);
	r = tally_find(&d->tally, s->thread, &counters);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->n_items; i++)
		counters->insns += s->items[i].insns;
	return views_hash_two(&d->cpus[s->cpu].hash, &counters->hash, s);
}

/* Adds a gap that says only that there was a stretch, and when. */
static int exclude(struct decode_job *job, const struct replay_stretch *s)
{
	struct decode *d = job->d;
	const struct flow_gap *gap = s->n_gaps > 0 ? &s->gaps[0] : NULL;
	struct flow_gap none = {.fault = FAULT_EXCLUDED, .tsc_hi = UINT64_MAX};
	size_t first;
	int r = decode_settle(d);

	if (r < 0 || s->goes_on || (s->n_items == 0 && !gap))
		return r;
	none.offset = s->n_items > 0 ? s->items[0].offset : gap->offset;
	none.tsc_lo = s->n_items > 0 ? s->items[0].tsc_lo : gap->tsc_lo;
	views_left_out(&job->views, FAULT_EXCLUDED);
	if (job->listing)
		listing_left_out(job->listing, s->cpu, FAULT_EXCLUDED);
	if (job->calls)
		r = calltree_left_out(job->calls, s);
	first = d->gaps.n;
	if (r == 0)
		r = gaps_add_flow(&d->gaps, d->replay, d->replay->manifest->cpus[s->cpu].cpu,
				  &none);
	if (d->gaps.n > first)
		d->gaps.list[first].trace = s->cpu;
	return r;
}

int decode_stretch(void *userdata, const struct replay_stretch *s)
{
	struct decode_job *job = userdata;
	struct decode *d = job->d;
	const struct permit *permit = d->replay->permit;
	const struct flow_stats *stats = flow_get_stats(s->flow);
	uint64_t insns = 0, before = stats->instructions;
	uint64_t tsc = s->n_items > 0 ? s->items[0].tsc_lo : 0;
	/* When the stretch began, at the earliest. */
	uint64_t began = tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&d->replay->clocks[s->cpu], tsc);
	int r;

	if (permit_thread(permit, s->thread ? s->thread : s->process, began) != PERMIT_YES) {
		/* In a limited report this can also be an excluded program of the user. */
		if (!permit_is_limited(permit))
			return exclude(job, s);
		d->withheld = true;
		return 0;
	}
	r = view_stretch(job, s);
	/* The flow learns what walks executed when they are counted. */
	for (size_t i = 0; i < s->n_items; i++)
		insns += s->items[i].insns;
	return r == 0 ? count_gaps(job, s, insns + stats->instructions - before) : r;
}
