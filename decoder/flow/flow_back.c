/*
 * Takes over from the hot loop: sets the walk's state as if the stepping walk had come to the same
 * place, and makes what was walked part of the batch.
 *
 * Where the hot loop stopped in the midst of decisions, the packet of the next decision is in hand
 * behind it, and packets behind that one become unread.
 */
#include <assert.h>

#include "decoder/flow/flow_private.h"
#include "decoder/packet/event_read.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* Adds the times of the hot loop's points to the batch. */
static void take_times(struct flow *f, struct flow_plain *p)
{
	const struct node_walk *w = &p->walk;

	p->until = 0;
	for (size_t i = 0; i < w->n_points; i++) {
		uint64_t offset = w->points[i].offset, lo, hi;

		if (i > 0 && offset <= p->until)
			continue;
		timing_at(&f->timing, offset, &lo, &hi);
		p->until = timing_until(&f->timing);
		p->time = (struct flow_time){.step = w->points[i].step,
					     .offset = offset,
					     .lo = lo,
					     .hi = hi,
					     .first_hi = timing_first(&f->timing)};
		p->times[p->n_times++] = p->time;
	}
}

/* The time of PACKET, or of its first decision (FIRST). The walk's times begin at FIRST_TIME. */
static struct flow_when when_of(const struct flow_plain *p, size_t first_time,
				const uint8_t *packet, bool first)
{
	uint64_t offset = (uint64_t)(packet - p->walk.trace);
	const struct flow_time *t;
	size_t i = p->n_times - 1;

	while (i > first_time && p->times[i].offset > offset)
		i--;
	t = &p->times[i];
	return (struct flow_when){t->lo, first && t->offset == offset ? t->first_hi : t->hi,
				  offset};
}

/* The number of decisions of the packet at POS. */
static uint32_t count_decisions(const struct node_walk *w, const uint8_t *pos, size_t *ret_size)
{
	struct packet p = {.size = 1};

	*ret_size = 1;
	if (packet_read(pos, w->limit + FLOW_MARGIN, &p) != 0)
		return 0;
	*ret_size = p.size;
	return p.type == PACKET_TNT ? p.u.tnt.n : 0;
}

/* Where the decisions in hand begin in the chain: the packets from w->chain to w->pos. */
struct chain {
	const uint8_t *used;   /* the packet of the last decision that was used; NULL: none was */
	bool used_first;       /* that was the packet's first decision */
	const uint8_t *next;   /* the packet of the next decision; NULL: none is left */
	uint32_t next_before;  /* decisions of that packet that were used, */
	uint32_t next_left;    /* and that were not */
	const uint8_t *unread; /* the first packet of decisions behind that one; NULL: none */
	uint32_t n_unread;     /* the number of such packets */
};

static struct chain find_in_chain(const struct node_walk *w)
{
	struct chain c = {0};
	uint32_t used = 0, before = 0;
	size_t size;

	if (w->n_bits == 0 && w->last != w->tip) {
		c.used = w->last;
		c.used_first = count_decisions(w, w->last, &size) == 1;
		return c;
	}
	for (const uint8_t *pos = w->chain; pos < w->pos; pos += size)
		used += count_decisions(w, pos, &size);
	used -= w->n_bits;
	for (const uint8_t *pos = w->chain; pos < w->pos; pos += size) {
		uint32_t n = count_decisions(w, pos, &size);

		if (n == 0)
			continue;
		if (c.next) {
			c.unread = c.unread ? c.unread : pos;
			c.n_unread++;
		} else if (before < used) {
			c.used = pos;
			c.used_first = used == before + 1;
		}
		if (!c.next && before + n > used) {
			c.next = pos;
			c.next_before = used - before;
			c.next_left = before + n - used;
		}
		before += n;
	}
	return c;
}

/* Gives the decisions in hand back to the walk. */
static void give_decisions(struct flow *f, struct flow_plain *p, size_t first_time,
			   const struct chain *c)
{
	struct node_walk *w = &p->walk;

	if (!c->next)
		return;
	f->in.tnt_n = c->next_left;
	f->in.tnt_bits = w->bits >> (64 - c->next_left);
	f->in.tnt_when = when_of(p, first_time, c->next, c->next_before <= 1);
	f->in.tnt_hi = when_of(p, first_time, c->next, false).hi;
	f->in.tnt_begun = c->next_before > 0;
	f->held.tick = false;
	if (!c->unread)
		return;
	w->pos = c->unread;
	w->packets -= c->n_unread;
	w->order = c->next_before + c->next_left == PT_TNT8_MAX ||
				   c->next_before + c->next_left == PT_TNT64_MAX
			   ? ORDER_FULL
			   : ORDER_PARTIAL;
}

/* Whether the last step was done by a target. */
static bool ends_with_target(const struct flow *f, const struct node_walk *w)
{
	for (size_t i = w->n_steps; i-- > 0;) {
		uint32_t step = w->steps[i], code = step & 15u;

		if (code == NODE_STEP_PLACE)
			continue;
		if (code != NODE_STEP_TARGET)
			return false;
		if (nodes_info(f->nodes, node_of_step(step))->kind != NODE_GO)
			return true;
	}
	return false;
}

/* Sets the time of the packet that was used last. */
static void take_past(struct flow *f, const struct flow_plain *p, size_t first_time,
		      const struct chain *c)
{
	const struct node_walk *w = &p->walk;
	const uint8_t *packet = c->used;
	bool first = c->used_first;
	size_t size;

	if (ends_with_target(f, w)) {
		f->in.past = when_of(p, first_time, w->tip, true);
		if (c->next && c->next < w->tip)
			f->in.past.lo = MIN_OF(f->in.past.lo, f->in.tnt_when.lo);
		return;
	}
	if (!packet) {
		packet = w->used;
		first = packet && count_decisions(w, packet, &size) == 1;
	}
	if (packet)
		f->in.past = when_of(p, first_time, packet, first);
}

static void take_reader(struct flow *f, const struct node_walk *w)
{
	struct event_reader *r = &f->reader;

	r->c.pos = w->pos;
	if (w->last)
		r->at = w->last;
	r->last_ip = w->last_ip;
	r->prompt = w->prompt;
	r->order = w->order;
	r->counts.packets += w->packets;
	if (r->counts.tsc_first == 0)
		r->counts.tsc_first = w->tsc_first;
	if (w->has_tsc)
		r->counts.tsc_last = w->tsc_last;
	if (w->has_tsc && !r->guest)
		r->time = w->tsc_last;
	r->timed = w->timed != 0;
}

/* Notes if code that may have changed was walked, beginning in code of PLACE, and counts its
 * instructions. The place where the last step leads to does not count: nothing was executed there
 * yet. */
static void take_changing(struct flow *f, const struct flow_plain *p, uint32_t place)
{
	const struct node_walk *w = &p->walk;
	uint8_t change = f->nodes->places[place].changing;

	f->at.doubt |= code_is_doubted(change);
	if (!__atomic_load_n(&f->nodes->changing, __ATOMIC_RELAXED))
		return;
	for (size_t i = 0; i < w->n_steps; i++) {
		if ((w->steps[i] & 15u) == NODE_STEP_PLACE) {
			change = f->nodes->places[node_of_step(w->steps[i])].changing;
		} else if (change != CODE_SAME) {
			f->at.doubt |= code_is_doubted(change);
			f->stats.changing[change] += flow_step_insns(f->nodes, w->steps[i]);
		}
	}
}

static void push_items(struct flow *f, const struct flow_plain *p)
{
	const struct flow_batch batch = {.walks = &p->walks[p->n_walks - 1],
					 .n_walks = 1,
					 .steps = p->base,
					 .times = p->times};
	struct flow_position position = {0};
	struct flow_item *items = f->items + f->out.n_items;
	size_t n = flow_expand(f, &batch, 0, &position, items, f->out.max_items - f->out.n_items);

	f->out.n_items += n;
	f->stats.branches += n;
	for (size_t i = 0; i < n; i++)
		f->stats.instructions += items[i].insns;
}

static void push_steps(struct flow *f, const struct flow_plain *p)
{
	const struct flow_walk *w = &p->walks[p->n_walks - 1];

	f->items[f->out.n_items++] = (struct flow_item){
		.from = w->to,
		.to = w->to,
		.tsc_lo = p->times[w->first_time].lo,
		.tsc_hi = p->times[w->first_time].hi,
		.offset = MAX_OF(w->begin, f->at.offset),
		.walk = (uint32_t)p->n_walks - 1,
		.kind = FLOW_STEPS,
		.flags = w->flags,
	};
}

/* Makes the walk part of the batch. */
static void add_walk(struct flow *f, struct flow_plain *p, size_t first_time, uint32_t place,
		     const struct flow_when *before)
{
	const struct node_walk *w = &p->walk;
	struct flow_walk *added = &p->walks[p->n_walks++];

	*added = (struct flow_walk){
		.first = (uint32_t)(w->steps - p->base),
		.n = (uint32_t)w->n_steps,
		.first_time = (uint32_t)first_time,
		.n_times = (uint32_t)(p->n_times - first_time),
		.place = place,
		.flags = f->at.in_tx ? FLOW_IN_TX : 0,
		.begin = w->points[0].offset,
		.end = (uint64_t)(w->pos - w->trace),
		.before = before->lo,
		.before_offset = before->offset,
		.item_offset = f->at.offset,
		.run_start = f->at.run_start,
		.run_insns = f->at.run_insns,
		.to = f->at.ip,
	};
	flow_end_run(f->nodes, w->steps, added, w->place);
	for (size_t i = first_time; i < p->n_times; i++)
		p->times[i].step += added->first;
	if (p->base == p->steps)
		p->n_steps += w->n_steps;
	assert(p->n_steps <= p->has.steps + 1 && p->n_times <= p->has.times + 1);
	f->at.run_start = added->run_to;
	f->at.run_insns = added->insns_to;
	if (f->config.steps)
		push_steps(f, p);
	else
		push_items(f, p);
	f->at.offset = MAX_OF(f->at.offset, f->in.past.offset);
	/* Decisions that are left behind a deferred TIP stand before it. */
	if (w->tip)
		f->at.offset = MAX_OF(f->at.offset, (uint64_t)(w->tip - w->trace));
	/* Without `steps` only the items are kept. */
	if (!f->config.steps)
		flow_begin_steps(f);
}

/* Sets what the stepping walk would know of the last decision: which branch it was about, for
 * BDM64, and if a packet was used behind the last direct branch. Such branches lead to another
 * decision, so they are no circle. */
static void note_decided(struct flow *f, const struct node_walk *w, uint32_t place)
{
	uint64_t decided = 0;
	size_t i = w->n_steps;

	while (i > 0 && (w->steps[i - 1] & 15u) == NODE_STEP_PLACE)
		i--;
	f->loop.steps = 1;
	if (i > 0 && nodes_info(f->nodes, node_of_step(w->steps[i - 1]))->kind != NODE_GO)
		f->loop.steps = 0;
	f->loop.limit = UINT32_MAX;
	f->loop.mark = UINT64_MAX;
	if (f->errata.bdm64)
		decided = flow_last_branch(f->nodes, w->steps, w->n_steps, place);
	if (decided == 0)
		return;
	f->in.branched = true;
	f->in.decided = decided;
}

void flow_mend_steps(struct flow *f, uint32_t walk, uint64_t to)
{
	f->plain->walks[walk].to = f->plain->walks[walk].run_to = to;
}

void flow_take_walk(struct flow *f, struct flow_plain *p, uint32_t place)
{
	struct node_walk *w = &p->walk;
	struct flow_when before = f->in.past;
	size_t first_time = p->n_times;
	struct chain c;

	take_times(f, p);
	c = find_in_chain(w);
	give_decisions(f, p, first_time, &c);
	take_past(f, p, first_time, &c);
	take_reader(f, w);
	take_changing(f, p, place);
	f->stats.returns += w->n_returns;
	f->stats.compressed_returns += w->n_compressed;
	flow_go(f, nodes_place_address(f->nodes, w->place) +
			   f->nodes->list[NODE_EDGE_NUMBER(w->edge)].offset);
	note_decided(f, w, place);
	add_walk(f, p, first_time, place, &before);
}
