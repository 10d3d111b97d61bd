/*
 * Sets the walk up and runs it batch by batch, and says which questions are asked within one batch.
 *
 * Trace and code are hostile. Work is in proportion to the trace: bytes become events in linear
 * time (event.h), an event takes a bounded number of steps and items, and between two packets the
 * walk goes over at most STEPS_MAX blocks (flow_walk.c), each of bounded cost (graph.c,
 * node_make.c). Where packets and code contradict each other, the packets up to the next place to
 * go on are read once. The constant is large: few bytes of a trace can stand for a long way through
 * code, as they do in real traces, so a program that decodes for strangers limits its time. Memory
 * is a batch with its steps, FLOW_GRAPH_BYTES of blocks, FLOW_NODES_BYTES of nodes
 * (flow_config.memory) and what threads walk ahead in (ahead.c), whatever the trace is.
 *
 * Questions (flow_config.context) may have better answers when another trace has come further, so
 * with `steps` the trace alone says which questions are asked within one batch, and not what
 * threads did or where a batch is full. The first question of a group is asked at the beginning of
 * a batch. A question is of the same group if its packet begins less than GROUP_BYTES behind the
 * first one's; the next question ends the batch before it is asked. Up to there the batch is open:
 * it does not end for want of room, but grows in proportion to these bytes. Behind them it may end
 * anywhere, as nothing is asked.
 *
 * Bytes do not bound items of direct branches that the stepping walk goes over. In the kernel's
 * code these items are counted, and end the batch always at the same item. In user code only the
 * stepping walk is at work where nodes cannot be made; a batch that is full of such items ends, and
 * only there threads may move the end, by the few items that stand where a piece of a thread does.
 */
#include "decoder/flow/flow.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/flow/flow_private.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"

/* Bytes of a group, and most of its items that may need the stepping walk; with small batches
 * fewer.
 */
#define GROUP_BYTES 4096u
#define GROUP_ITEMS 2048u
#define SMALL_PART  4u

/* Whether the trace is not decoded from its beginning: what lies before is no gap then. */
static bool is_window(const struct flow_config *c)
{
	return c->from_tsc != 0 || c->from_offset != 0;
}

static void gap_before_start(struct flow *f, enum fault fault, size_t bytes)
{
	struct flow_when when = {0, UINT64_MAX, 0};

	if (fault == FAULT_HEAD)
		when.hi = f->stats.tsc_first != 0 ? f->stats.tsc_first : UINT64_MAX;
	f->gaps[0] = (struct flow_gap){
		.fault = fault, .bytes = bytes, .tsc_lo = when.lo, .tsc_hi = when.hi};
	f->out.n_gaps = 1;
	flow_push(f, FLOW_GAP, 0, 0, &when);
	f->stats.bytes_decoded -= bytes;
}

static void start(struct flow *f)
{
	const struct flow_config *c = &f->config;
	size_t stop = c->end_offset != 0 ? (size_t)MIN_OF(c->end_offset, c->size) : c->size;
	size_t begin = stop;
	const uint8_t *psb = NULL;
	uint64_t tsc;

	if (c->size > 0) {
		const uint8_t *end = c->trace + c->size;
		const uint8_t *from = c->trace + MIN_OF(c->from_offset, (uint64_t)c->size);

		psb = c->from_tsc != 0 ? sync_find_tsc(from, end, c->from_tsc)
				       : sync_find(from, end);
	}
	if (psb)
		begin = MIN_OF((size_t)(psb - c->trace), stop);
	f->errata = errata_for(c->cpu_family, c->cpu_model);
	f->stats.bytes = f->stats.bytes_decoded = is_window(c) ? stop - begin : stop;
	f->at.resumed = true;
	flow_begin_trace(f, begin, stop);
	flow_begin_rule(f);
	f->done = begin == stop;
	if (begin < stop && sync_tsc(c->trace + begin, c->trace + c->size, &tsc))
		f->stats.tsc_first = tsc;
	if (f->pieces.size == 0)
		gap_before_start(f, FAULT_EMPTY, 0);
	else if (!is_window(c) && begin == f->pieces.size)
		gap_before_start(f, FAULT_NO_PSB, c->size);
	else if (!is_window(c) && begin > 0)
		gap_before_start(f, FAULT_HEAD, begin);
}

static void free_one(struct flow *f)
{
	free(f->items);
	free(f->gaps);
	free(f->marks);
	free(f);
}

struct flow *flow_alloc(size_t n, bool marks)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->items = calloc(n, sizeof(f->items[0]));
	f->gaps = calloc(n, sizeof(f->gaps[0]));
	f->marks = calloc(marks ? n : 1, sizeof(f->marks[0]));
	if (f->items && f->gaps && f->marks)
		return f;
	free_one(f);
	return NULL;
}

/* SIZE bytes, or less of them where config->memory limits what is kept of code. */
static size_t within_limit(const struct flow_config *config, size_t size)
{
	const uint64_t all = FLOW_GRAPH_BYTES + FLOW_NODES_BYTES;

	return config->memory == 0 || config->memory >= all
		       ? size
		       : (size_t)(config->memory * (size >> 20) / (all >> 20));
}

int flow_new(const struct flow_config *config, struct flow **ret)
{
	uint32_t max = FLOW_ITEMS;
	struct flow *f;

	if (config->batch_items != 0 && config->batch_items < FLOW_ITEMS)
		max = MAX_OF(config->batch_items, 2 * FLOW_STEP_ITEMS);
	f = flow_alloc(max, config->marks);
	if (!f)
		return -ENOMEM;
	f->config = *config;
	f->out.max_items = f->out.few_items = max;
	f->graph = config->share ? config->share->graph
				 : graph_new(config->code, config->userdata,
					     within_limit(config, FLOW_GRAPH_BYTES));
	if (f->graph)
		f->nodes = config->share
				   ? config->share->nodes
				   : nodes_new(f->graph, within_limit(config, FLOW_NODES_BYTES));
	if (!f->nodes) {
		if (!config->share)
			graph_free(f->graph);
		free_one(f);
		return -ENOMEM;
	}
	if (!config->share && config->kernel_start != 0)
		f->nodes->ip_end = MIN_OF(f->nodes->ip_end, config->kernel_start);
	if (!config->share && config->kernel_code)
		graph_set_kernel(f->graph, config->kernel_code);
	start(f);
	*ret = f;
	return 0;
}

void flow_free(struct flow *f)
{
	if (!f)
		return;
	flow_free_plain(f);
	ahead_close(f->ahead.trace);
	if (!f->config.share) {
		ahead_free(f->ahead.threads);
		nodes_free(f->nodes);
		graph_free(f->graph);
	}
	flow_forget_versions(f);
	if (f->scratch)
		free_one(f->scratch);
	free_one(f);
}

struct flow *flow_first(struct flow *f)
{
	while (f->config.share)
		f = f->config.share;
	return f;
}

/* --- Groups of questions --- */

static uint32_t part_of(const struct flow *f)
{
	return f->out.few_items < FLOW_ITEMS ? SMALL_PART : 1;
}

static void open_at(struct flow *f, uint64_t offset)
{
	f->group.open = f->config.steps;
	f->group.asked_at = offset;
	f->group.until = offset + GROUP_BYTES / part_of(f);
	f->group.n_firm = 0;
}

/* The offset at or behind which the next packet lies that may lead to a question. */
static uint64_t next_at(const struct flow *f)
{
	const struct event_reader *r = &f->reader;

	if (f->in.have_event || r->queue_n > 0 || r->n_waits > 0 || r->mode_waits || r->fup_owed)
		return f->in.event.offset;
	return (uint64_t)(r->c.pos - r->trace);
}

bool flow_is_open(struct flow *f)
{
	f->group.open = f->group.open && next_at(f) < f->group.until;
	return f->group.open;
}

bool flow_may_ask(struct flow *f)
{
	uint64_t offset = f->in.event.offset;

	if (!f->config.steps)
		return true;
	if (f->out.n_items == 0)
		open_at(f, offset);
	if (!f->group.open || offset >= f->group.until) {
		f->out.full = true;
		return false;
	}
	f->group.asked_at = offset;
	return true;
}

void flow_begin_group(struct flow *f)
{
	f->group.open = false;
	if (!f->started)
		open_at(f, (uint64_t)(f->reader.c.pos - f->reader.trace));
	else if (f->ask.asked || f->ask.changes || f->group.parted)
		open_at(f, f->ask.asked ? MAX_OF(f->group.asked_at, f->in.event.offset)
					: f->group.asked_at);
	f->group.parted = false;
}

/* Makes room for twice as many items. The bound is the items that are counted (n_firm), one item of
 * steps for each byte, and as many others as are counted. *RET: there is room for a step. 0 or
 * -ENOMEM. */
static int grow(struct flow *f, bool *ret)
{
	const uint32_t max = (2 * GROUP_ITEMS + GROUP_BYTES) / part_of(f);
	uint32_t n = MIN_OF(2 * f->out.max_items, max);

	*ret = f->out.n_items + FLOW_STEP_ITEMS <= n;
	if (!*ret)
		return 0;
	if (ARRAY_FIT(f->items, n) < 0 || ARRAY_FIT(f->gaps, n) < 0 ||
	    (f->config.marks && ARRAY_FIT(f->marks, n) < 0))
		return -ENOMEM;
	f->out.max_items = n;
	return 0;
}

int flow_has_room(struct flow *f, bool *ret)
{
	bool open = flow_is_open(f);

	*ret = f->out.n_items + FLOW_STEP_ITEMS <= (open ? f->out.max_items : f->out.few_items);
	if (open && f->group.n_firm >= GROUP_ITEMS / part_of(f))
		*ret = false;
	else if (open && !*ret)
		return grow(f, ret);
	return 0;
}

/* --- Batches --- */

/* BDM64 is corrected in the last branch, so a branch is not given before the packet behind it is
 * known. */
static void end_fill(struct flow *f)
{
	if (!f->errata.bdm64 || f->done || f->sync.on || !f->at.enabled || !f->in.branched ||
	    f->out.n_items == f->out.max_items)
		return;
	flow_load(f);
	if (f->in.tnt_n == 0)
		flow_mend_bdm64(f);
}

static int fill(struct flow *f)
{
	while (!f->done && !f->out.full) {
		bool room, walked;
		int r = flow_has_room(f, &room);

		if (r == 0 && !room)
			break;
		if (r == 0)
			r = flow_walk_plain(f, &walked);
		if (r != 0)
			return r;
		if (walked)
			continue;
		flow_load(f);
		if (f->sync.on)
			flow_step_sync(f);
		else if (f->config.no_walk)
			flow_step_read(f);
		else if (f->at.enabled)
			r = flow_step_on(f);
		else
			flow_step_off(f);
		if (r != 0)
			return r;
	}
	end_fill(f);
	return 0;
}

/* A piece begins with a batch, as the first one does. */
static int fill_piece(struct flow *f)
{
	int r = 0;

	if (!f->done)
		r = fill(f);
	if (r != 0 || !f->done || f->out.n_items > 0 || !flow_has_piece(f))
		return r;
	flow_begin_piece(f);
	return fill(f);
}

static void begin_batch(struct flow *f)
{
	flow_go(f, f->at.ip); /* flow_run may have thrown blocks away since the last batch */
	flow_begin_group(f);
	if (f->ask.changes)
		f->at.context = f->ask.next;
	f->ask.changes = false;
	f->out.n_items = f->out.n_gaps = f->out.n_marks = 0;
	flow_begin_steps(f);
	f->out.full = f->out.later = false;
	f->out.run_mode = f->at.mode;
}

int flow_next(struct flow *f, struct flow_batch *ret)
{
	const struct event_counts *c = &f->reader.counts;
	int r;

	*ret = (struct flow_batch){0};
	/* The first batch may begin with the gap that start() found. */
	if (f->started)
		begin_batch(f);
	else
		flow_begin_group(f);
	f->started = true;
	r = fill_piece(f);
	f->stats.packets = c->packets;
	f->stats.psbs = c->psbs;
	f->stats.cbr = c->cbr;
	f->stats.overflows = c->overflows;
	f->stats.unknown_packets = c->unknown;
	f->stats.tsc_first = c->tsc_first;
	f->stats.tsc_last = c->tsc_last;
	if (r != 0)
		return r;
	*ret = (struct flow_batch){
		.items = f->items,
		.n_items = f->out.n_items,
		.gaps = f->gaps,
		.n_gaps = f->out.n_gaps,
		.marks = f->marks,
		.n_marks = f->out.n_marks,
		.context = f->at.context,
	};
	flow_end_steps(f, ret);
	if (f->out.n_items > 0)
		return 0;
	return f->out.later ? FLOW_LATER : FLOW_DONE;
}

const struct flow_stats *flow_get_stats(const struct flow *f)
{
	return &f->stats;
}

uint64_t flow_asked_at(const struct flow *f)
{
	return f->ask.switched ? f->items[f->out.n_items - 1].offset : f->in.event.offset;
}

bool flow_asked_return(const struct flow *f)
{
	return f->ask.returning;
}

void flow_split(struct flow *f)
{
	f->ask.splits = true;
}

bool flow_asked_switch(const struct flow *f)
{
	return f->ask.switched;
}

bool flow_asked_again(const struct flow *f)
{
	return !f->ask.returning && f->in.event.kind != EVENT_ENABLE &&
	       (f->at.enabled || f->at.within);
}

bool flow_asked_behind_gap(const struct flow *f)
{
	return f->at.within;
}

bool flow_walks_guests(const struct flow *f)
{
	return f->config.guests;
}

uint64_t flow_not_after(const struct flow *f)
{
	return f->in.tnt_n > 0 ? f->in.tnt_hi : f->in.event_when.hi;
}

const struct flow_item *flow_left(const struct flow *f)
{
	return f->ask.have_left ? &f->ask.left : NULL;
}

void flow_readers(const struct flow *f, struct event_reader *ret_reader, struct timing *ret_timing)
{
	*ret_reader = f->reader;
	*ret_timing = f->timing;
}

uint8_t flow_run_mode(const struct flow *f)
{
	return f->out.run_mode;
}

size_t flow_run(struct flow *f, uint64_t start_ip, size_t n, uint64_t *ret_ips)
{
	uint64_t ip = start_ip;
	size_t done = 0;

	while (done < n) {
		const struct graph_block *b =
			graph_get(f->graph, flow_context_at(f, ip), f->out.run_mode, ip);

		if (!b)
			break;
		for (size_t i = 0; i < b->n && done < n; i++) {
			ret_ips[done++] = ip;
			ip += b->sizes[i];
		}
		if (b->fault != FAULT_NONE)
			break;
	}
	return done;
}
