/*
 * Expands steps to the items that the stepping walk would have made of the same packets. The
 * packets are read again for what items say of them: which packet decided, and when.
 */
#include <string.h>

#include "decoder/flow/flow_private.h"
#include "decoder/hot/nodes.h"
#include "proto/base.h"

struct expand {
	uint32_t step, end; /* index into the batch's steps */
	uint32_t place;
	uint32_t node;	/* within a step of several decisions */
	uint32_t begun; /* decisions of the step that are done */
	uint32_t run_insns;
	uint64_t run_start, item_offset;
	struct packet_cursor cursor;
	const struct flow_time *time, *time_end; /* the time that holds, the end of all */
	/* Decisions in hand, of the packet at OFFSET. */
	uint64_t bits, offset;
	uint32_t n_bits;
	bool first;   /* the next decision is the packet's first */
	bool has_tip; /* a target is in hand, of the packet at TIP */
	uint64_t tip;
	uint64_t past_lo, past_offset; /* of the packet that was used last */
	uint8_t flags;
};

_Static_assert(sizeof(struct expand) <= sizeof(struct flow_position), "no room in a position");

/* Where the items go. */
struct expand_sink {
	struct flow_item *to;
	size_t n;
};

static struct expand begin(const struct flow *f, const struct flow_batch *batch,
			   const struct flow_walk *w)
{
	return (struct expand){
		.step = w->first,
		.end = w->first + w->n,
		.place = w->place,
		.run_insns = w->run_insns,
		.run_start = w->run_start,
		.item_offset = w->item_offset,
		.cursor = {.pos = f->config.trace + w->begin,
			   .end = f->config.trace + f->config.size},
		.time = batch->times + w->first_time,
		.time_end = batch->times + w->first_time + w->n_times,
		.past_lo = w->before,
		.past_offset = w->before_offset,
		.flags = w->flags,
	};
}

/* --- Packets --- */

/* The time of the packet at OFFSET. Offsets must not fall from call to call. */
static const struct flow_time *time_of(struct expand *e, uint64_t offset)
{
	while (e->time + 1 < e->time_end && e->time[1].offset <= offset)
		e->time++;
	return e->time;
}

static uint64_t first_hi(const struct flow_time *t, uint64_t offset)
{
	return t->offset == offset ? t->first_hi : t->hi;
}

/* Has the next packet of decisions or a target in hand. */
static void read_packet(struct expand *e, const struct flow *f)
{
	struct packet p;

	for (;;) {
		uint64_t offset = (uint64_t)(e->cursor.pos - f->config.trace);

		if (packet_next(&e->cursor, &p) != 0)
			return;
		if (p.type == PACKET_TIP) {
			e->has_tip = true;
			e->tip = offset;
			return;
		}
		if (p.type == PACKET_TNT) {
			e->bits = p.u.tnt.bits;
			e->n_bits = p.u.tnt.n;
			e->first = true;
			e->offset = offset;
			return;
		}
	}
}

static void have_packet(struct expand *e, const struct flow *f)
{
	if (e->n_bits == 0 && !e->has_tip)
		read_packet(e, f);
}

/* The time of a branch that needs no packet, as flow_between. */
static struct flow_when between(struct expand *e, const struct flow *f)
{
	struct flow_when when = {e->past_lo, 0, e->past_offset};
	const struct flow_time *t;

	have_packet(e, f);
	t = time_of(e, e->n_bits > 0 ? e->offset : e->tip);
	when.hi = t->hi;
	if (e->n_bits > 0 && e->first)
		when.hi = first_hi(t, e->offset);
	when.lo = MIN_OF(when.lo, when.hi);
	return when;
}

static struct flow_when use_decision(struct expand *e, const struct flow *f)
{
	const struct flow_time *t;
	struct flow_when when;

	have_packet(e, f);
	t = time_of(e, e->offset);
	when = (struct flow_when){t->lo, e->first ? first_hi(t, e->offset) : t->hi, e->offset};
	e->n_bits--;
	e->first = false;
	e->past_lo = when.lo;
	e->past_offset = when.offset;
	return when;
}

static struct flow_when use_target(struct expand *e, const struct flow *f)
{
	uint64_t lo = UINT64_MAX, bits;
	const struct flow_time *t;
	struct flow_when when;
	uint32_t n;

	have_packet(e, f);
	bits = e->bits;
	n = e->n_bits;
	/* The decisions in front of the target may stay in hand (SDM 33.4.2.3 "Deferred TIPs"). */
	if (n > 0)
		lo = time_of(e, e->offset)->lo;
	if (!e->has_tip)
		read_packet(e, f);
	e->bits = bits;
	e->n_bits = n;
	t = time_of(e, e->tip);
	when = (struct flow_when){MIN_OF(t->lo, lo), t->hi, e->tip};
	e->has_tip = false;
	e->past_lo = when.lo;
	e->past_offset = when.offset;
	return when;
}

/* --- Nodes --- */

static void emit(struct expand *e, struct expand_sink *s, uint8_t kind, uint64_t from, uint64_t to,
		 const struct flow_when *when, uint8_t flags)
{
	e->item_offset = MAX_OF(e->item_offset, when->offset);
	s->to[s->n++] = (struct flow_item){
		.from = from,
		.to = to,
		.start = e->run_start,
		.tsc_lo = when->lo,
		.tsc_hi = when->hi,
		.offset = e->item_offset,
		.insns = e->run_insns,
		.kind = kind,
		.flags = e->flags | flags,
	};
	e->run_start = to;
	e->run_insns = 0;
}

/* The direct branches in a node, including the last part's own, if it has one. */
static void expand_direct(struct expand *e, const struct flow *f, struct expand_sink *s,
			  const struct node_info *info)
{
	uint64_t base = nodes_place_address(f->nodes, e->place);
	uint32_t n = info->kind == NODE_GO ? info->n_parts : info->n_parts - 1u;

	for (uint32_t i = 0; i < n; i++) {
		const struct node_part *p = &info->parts[i];
		uint32_t to = i + 1 < info->n_parts ? info->parts[i + 1].start : info->next;
		struct flow_when when;

		e->run_insns += p->insns;
		if (p->kind == NODE_PLAIN)
			continue;
		when = between(e, f);
		emit(e, s, p->kind, base + p->last, base + to, &when, p->flags);
	}
}

/* The address where the step behind the one at hand begins; e->place becomes its place. */
static uint64_t next_address(struct expand *e, const struct flow *f, const struct flow_batch *batch,
			     const struct flow_walk *w)
{
	uint32_t step = e->step + 1;

	if (step < e->end && (batch->steps[step] & 15u) == NODE_STEP_PLACE) {
		e->place = node_of_step(batch->steps[step]);
		e->step = step++;
	}
	if (step == e->end)
		return w->to;
	return nodes_place_address(f->nodes, e->place) +
	       f->nodes->list[node_of_step(batch->steps[step])].offset;
}

static void expand_branch(struct expand *e, const struct flow *f, struct expand_sink *s,
			  const struct flow_batch *batch, const struct flow_walk *w,
			  const struct node_info *info, bool decided)
{
	const struct node_part *last = &info->parts[info->n_parts - 1];
	uint64_t from = nodes_place_address(f->nodes, e->place) + last->last;
	struct flow_when when;

	e->run_insns += last->insns;
	when = decided ? use_decision(e, f) : use_target(e, f);
	emit(e, s, last->kind, from, next_address(e, f, batch, w), &when,
	     decided ? FLOW_COMPRESSED : 0);
}

static void expand_cond(struct expand *e, const struct flow *f, struct expand_sink *s,
			const struct flow_batch *batch, const struct flow_walk *w,
			const struct node_info *info, bool taken)
{
	const struct node_part *last = &info->parts[info->n_parts - 1];
	uint64_t base = nodes_place_address(f->nodes, e->place);
	struct flow_when when = use_decision(e, f);
	bool ends = e->step + 1 == e->end && e->begun + 1 == node_decisions(batch->steps[e->step]);

	e->run_insns += last->insns;
	if (taken)
		emit(e, s, FLOW_COND, base + last->last, ends ? w->to : base + info->target, &when,
		     0);
}

/* One node, and how execution went on behind it. */
static void expand_node(struct expand *e, const struct flow *f, struct expand_sink *s,
			const struct flow_batch *batch, const struct flow_walk *w)
{
	uint32_t step = batch->steps[e->step], n = node_decisions(step);
	uint32_t node = e->begun > 0 ? e->node : node_of_step(step);
	const struct node_info *info = nodes_info(f->nodes, node);
	bool taken;

	expand_direct(e, f, s, info);
	if (info->kind != NODE_COND) {
		if (info->kind != NODE_GO)
			expand_branch(e, f, s, batch, w, info, n > 0);
		e->begun = 0;
		e->step++;
		return;
	}
	taken = (step >> (n - 1 - e->begun) & 1) != 0;
	expand_cond(e, f, s, batch, w, info, taken);
	if (++e->begun < n) {
		e->node = nodes_next(f->nodes, node, taken);
		return;
	}
	e->begun = 0;
	e->step++;
}

size_t flow_expand(struct flow *f, const struct flow_batch *batch, uint32_t walk,
		   struct flow_position *position, struct flow_item *to, size_t room)
{
	const struct flow_walk *w = &batch->walks[walk];
	struct expand_sink sink = {.to = to};
	struct expand e;

	memcpy(&e, position, sizeof(e));
	if (!e.cursor.pos)
		e = begin(f, batch, w);
	while (e.step < e.end && sink.n + NODE_PARTS <= room)
		expand_node(&e, f, &sink, batch, w);
	memcpy(position, &e, sizeof(e));
	return sink.n;
}

/* --- What a walk comes to --- */

uint32_t flow_step_insns(const struct nodes *nodes, uint32_t step)
{
	uint32_t node = node_of_step(step), n = node_decisions(step), insns = 0;

	for (uint32_t i = 1;; i++) {
		const struct node_info *info = nodes_info(nodes, node);

		insns += info->insns;
		if (info->kind != NODE_COND || i >= n)
			return insns;
		node = nodes_next(nodes, node, (step >> (n - i) & 1) != 0);
	}
}

/* The run that is open behind some steps. */
struct tail {
	bool found; /* a branch that ends a run was found, so START is known */
	uint64_t start;
	uint32_t insns;
};

static void add_direct(struct tail *t, const struct node_info *info, uint64_t base)
{
	uint32_t n = info->kind == NODE_GO ? info->n_parts : info->n_parts - 1u;

	for (uint32_t i = 0; i < n; i++) {
		t->insns += info->parts[i].insns;
		if (info->parts[i].kind == NODE_PLAIN)
			continue;
		*t = (struct tail){
			true,
			base + (i + 1 < info->n_parts ? info->parts[i + 1].start : info->next), 0};
	}
}

/* The run that is open behind STEP. The next step begins at NEXT. */
static struct tail tail_of(const struct nodes *nodes, uint32_t step, uint64_t base, uint64_t next)
{
	uint32_t node = node_of_step(step), n = node_decisions(step);
	struct tail t = {0};

	for (uint32_t i = 0;; i++) {
		const struct node_info *info = nodes_info(nodes, node);
		bool taken;

		add_direct(&t, info, base);
		if (info->kind == NODE_GO)
			return t;
		if (info->kind != NODE_COND)
			return (struct tail){true, next, 0};
		t.insns += info->parts[info->n_parts - 1].insns;
		taken = (step >> (n - 1 - i) & 1) != 0;
		if (taken)
			t = (struct tail){true, base + info->target, 0};
		if (i + 1 == n)
			return t;
		node = nodes_next(nodes, node, taken);
	}
}

void flow_end_run(const struct nodes *nodes, const uint32_t *steps, struct flow_walk *w,
		  uint32_t place)
{
	uint64_t base = nodes_place_address(nodes, place), next = w->to;
	uint32_t insns = 0;

	for (uint32_t i = w->n; i-- > 0;) {
		struct tail t;

		/* Only a branch that ends a run leads to another place. */
		if ((steps[i] & 15u) == NODE_STEP_PLACE)
			continue;
		t = tail_of(nodes, steps[i], base, next);
		insns += t.insns;
		if (t.found) {
			w->run_to = t.start;
			w->insns_to = insns;
			return;
		}
		next = base + nodes->list[node_of_step(steps[i])].offset;
	}
	w->run_to = w->run_start;
	w->insns_to = w->run_insns + insns;
}

static uint32_t place_before(const uint32_t *steps, size_t n, uint32_t first_place)
{
	while (n-- > 0) {
		if ((steps[n] & 15u) == NODE_STEP_PLACE)
			return node_of_step(steps[n]);
	}
	return first_place;
}

uint64_t flow_last_branch(const struct nodes *nodes, const uint32_t *steps, size_t n,
			  uint32_t first_place)
{
	while (n-- > 0) {
		uint32_t node = node_of_step(steps[n]), count = node_decisions(steps[n] | 1u);
		const struct node_info *info;

		if ((steps[n] & 15u) == NODE_STEP_PLACE)
			continue;
		for (; count > 1; count--)
			node = nodes_next(nodes, node, (steps[n] >> (count - 1) & 1) != 0);
		info = nodes_info(nodes, node);
		if (info->kind != NODE_GO)
			return nodes_place_address(nodes, place_before(steps, n, first_place)) +
			       info->parts[info->n_parts - 1].last;
	}
	return 0;
}

void flow_counted(struct flow *f, uint64_t insns, uint64_t branches)
{
	f->stats.instructions += insns;
	f->stats.branches += branches;
}
