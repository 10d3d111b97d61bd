/*
 * The pieces of code that the steps of walks execute, with their time and their sums.
 */
#include "decoder/worker/count/steps.h"

#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"

#define FIRST_NODES ((size_t)1 << 12)

/* --- Pieces --- */

/* A step of one decision, or of a target, has one node that decides; NODE_GO nodes may lie between
 * the nodes of a step. */
struct reader {
	const struct nodes *nodes;
	struct steps_piece *to;
	size_t n;
	uint8_t decided;
};

static void add_part(struct reader *r, const struct node_part *part, uint32_t to)
{
	r->to[r->n++] = (struct steps_piece){
		.start = part->start,
		.last = part->last,
		.to = to,
		.insns = part->insns,
		.kind = part->kind,
		.flags = part->flags,
		.decided = r->decided,
		.direct = true,
	};
}

size_t steps_pieces(const struct nodes *nodes, uint32_t step, struct steps_piece *to)
{
	struct reader r = {.nodes = nodes, .to = to};
	uint32_t number = node_of_step(step);
	unsigned int left = node_decisions(step);

	for (;;) {
		const struct node_info *info = nodes_info(nodes, number);
		struct steps_piece *last;
		bool taken;

		/* No room for the node. */
		if (!info || info->n_parts == 0 || r.n + info->n_parts > STEPS_MAX_PIECES)
			return r.n;
		for (unsigned int i = 0; i + 1 < info->n_parts; i++)
			add_part(&r, &info->parts[i], info->parts[i + 1].start);
		if (info->kind == NODE_GO) {
			add_part(&r, &info->parts[info->n_parts - 1], info->next);
			if (left == 0)
				return r.n;
			number = nodes_next(nodes, number, false);
			continue;
		}
		/* A packet decided the last part of this node. */
		taken = left == 0 || (step >> (left - 1) & 1) != 0;
		r.decided++;
		add_part(&r, &info->parts[info->n_parts - 1], info->target);
		last = &r.to[r.n - 1];
		last->direct = false;
		last->elsewhere = info->kind != NODE_COND;
		if (!last->elsewhere && !taken) {
			last->kind = STEPS_ON;
			last->to = info->next;
		}
		if (left <= 1 || info->kind != NODE_COND)
			return r.n;
		left--;
		number = nodes_next(nodes, number, taken);
	}
}

unsigned int steps_items(const struct nodes *nodes, uint32_t step)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t n = steps_pieces(nodes, step, pieces);
	unsigned int items = 0;

	for (size_t i = 0; i < n; i++)
		items += pieces[i].kind != STEPS_ON;
	return items;
}

uint64_t steps_behind(const struct nodes *nodes, const uint32_t *steps,
		      const struct flow_walk *walk, uint32_t at, uint64_t base)
{
	for (at++; at < walk->first + walk->n; at++) {
		uint32_t number = node_of_step(steps[at]);

		if ((steps[at] & 15u) != NODE_STEP_PLACE)
			return base + nodes->list[number].offset;
		base = nodes_place_address(nodes, number);
	}
	return walk->to;
}

/* --- Time --- */

/* Whether the first step, from the one at AT on, that a packet tells of is a target. A target has
 * only one time. */
static bool begins_with_target(const struct steps_clock *c, uint32_t at)
{
	for (; at < c->end; at++) {
		uint32_t step = c->steps[at];

		if ((step & 15u) != NODE_STEP_PLACE && !steps_is_go(c->nodes, step))
			return (step & 15u) == NODE_STEP_TARGET;
	}
	return false;
}

/* PAST: how early the last branch of the time before may have happened. */
static void begin_time(struct steps_clock *c, uint64_t past)
{
	const struct flow_time *t = c->time;
	uint64_t hi = t->first_hi;

	if (hi != t->hi && begins_with_target(c, t->step))
		hi = t->hi;
	c->begun = false;
	c->direct = (struct steps_when){MIN_OF(past, hi), hi};
	c->first = (struct steps_when){t->lo, hi};
	c->rest = (struct steps_when){t->lo, t->hi};
}

void steps_clock_next(struct steps_clock *c)
{
	uint64_t past = c->time->lo;

	c->time++;
	begin_time(c, past);
}

void steps_clock_begin(struct steps_clock *c, const struct nodes *nodes,
		       const struct flow_batch *batch, const struct flow_walk *walk, uint32_t at)
{
	const struct flow_time *first = batch->times + walk->first_time;
	*c = (struct steps_clock){
		.nodes = nodes,
		.steps = batch->steps,
		.time = first + walk->n_times - 1,
		.last = first + walk->n_times - 1,
		.end = walk->first + walk->n,
	};
	while (c->time > first && c->time->step > at)
		c->time--;
	begin_time(c, c->time > first ? c->time[-1].lo : walk->before);
	for (uint32_t i = c->time->step; i < at && !c->begun; i++)
		c->begun =
			(c->steps[i] & 15u) != NODE_STEP_PLACE && !steps_is_go(nodes, c->steps[i]);
}

/* --- Tables --- */

static size_t bytes_of(const struct steps_table *t, size_t n_nodes)
{
	return (n_nodes << NODE_STEP_BITS) * t->size;
}

int steps_table_reserve(struct steps_table *t, const struct nodes *nodes)
{
	size_t n = MAX_OF(nodes_count(nodes), nodes_count_places(nodes));
	size_t n_nodes = MAX_OF(t->n_nodes, FIRST_NODES);
	void *records;

	if (n <= t->n_nodes)
		return 0;
	while (n_nodes < n)
		n_nodes *= 2;
	if (t->n_nodes == 0)
		records = mmap(NULL, bytes_of(t, n_nodes), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	else
		records = mremap(t->records, bytes_of(t, t->n_nodes), bytes_of(t, n_nodes),
				 MREMAP_MAYMOVE);
	if (records == MAP_FAILED)
		return -ENOMEM;
	/* Records are read in no order. If there are no large pages, small ones do. */
	madvise(records, bytes_of(t, n_nodes), MADV_HUGEPAGE);
	t->records = records;
	t->n_nodes = n_nodes;
	return 0;
}

void steps_table_clear(struct steps_table *t)
{
	/* Most pages were never written; given back, they are zero again. */
	if (t->n_nodes > 0 && madvise(t->records, bytes_of(t, t->n_nodes), MADV_DONTNEED) < 0)
		memset(t->records, 0, bytes_of(t, t->n_nodes));
}

void steps_table_done(struct steps_table *t)
{
	if (t->n_nodes > 0)
		munmap(t->records, bytes_of(t, t->n_nodes));
	t->records = NULL;
	t->n_nodes = 0;
}

/* --- Sums --- */

struct sum {
	uint16_t insns;
	uint8_t items;
	bool known;
};

void steps_count_done(struct steps_count *c)
{
	steps_table_done(&c->table);
}

static void count_walk(const struct steps_count *c, const struct replay_stretch *s,
		       const struct flow_walk *w)
{
	const uint32_t *steps = s->batch->steps + w->first;
	struct sum *sums = c->table.records;
	uint64_t insns = w->run_insns, items = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		struct sum *sum = &sums[steps[i]];

		if (!sum->known) {
			struct steps_piece pieces[STEPS_MAX_PIECES];
			bool is_place = (steps[i] & 15u) == NODE_STEP_PLACE;
			size_t n = is_place ? 0 : steps_pieces(c->nodes, steps[i], pieces);

			*sum = (struct sum){.known = true};
			for (size_t p = 0; p < n; p++) {
				sum->insns = (uint16_t)(sum->insns + pieces[p].insns);
				sum->items = (uint8_t)(sum->items + (pieces[p].kind != STEPS_ON));
			}
		}
		insns += sum->insns;
		items += sum->items;
	}
	/* The run that is open behind the walk is counted with the item that ends the run. */
	flow_counted(s->flow, insns - w->insns_to, items);
}

int steps_count_stretch(struct steps_count *c, const struct replay_stretch *s)
{
	for (size_t i = 0; i < s->n_items; i++) {
		const struct nodes *nodes;
		int r;

		if (s->items[i].kind != FLOW_STEPS)
			continue;
		nodes = flow_nodes(s->flow);
		if (c->nodes != nodes)
			steps_table_done(&c->table);
		c->nodes = nodes;
		c->table.size = sizeof(struct sum);
		r = steps_table_reserve(&c->table, nodes);
		if (r < 0)
			return r;
		count_walk(c, s, &s->batch->walks[s->items[i].walk]);
	}
	return 0;
}
