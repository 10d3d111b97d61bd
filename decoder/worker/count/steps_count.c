/*
 * Counting, and nothing else. Used by decode_stretch.c for the summary.
 */
#include "decoder/worker/count/steps_count.h"

#include "decoder/worker/count/steps.h"

struct sum {
	uint16_t insns;
	uint8_t items;
	bool known;
};

void steps_count_done(struct steps_count *c)
{
	steps_table_done(&c->table);
}

static int reserve(struct steps_count *c, const struct nodes *nodes)
{
	if (c->nodes != nodes)
		steps_table_done(&c->table);
	c->nodes = nodes;
	c->table.size = sizeof(struct sum);
	return steps_table_reserve(&c->table, nodes);
}

static void look_through(const struct nodes *nodes, uint32_t step, struct sum *ret)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t i, n = 0;

	*ret = (struct sum){.known = true};
	if ((step & 15u) != NODE_STEP_PLACE)
		n = steps_pieces(nodes, step, pieces);
	for (i = 0; i < n; i++) {
		ret->insns = (uint16_t)(ret->insns + pieces[i].insns);
		ret->items = (uint8_t)(ret->items + (pieces[i].kind != STEPS_ON));
	}
}

static void count_walk(const struct steps_count *c, const struct replay_stretch *s,
		       const struct flow_walk *w)
{
	const uint32_t *steps = s->batch->steps + w->first;
	struct sum *sums = c->table.records;
	uint64_t insns = w->run_insns, items = 0;
	uint32_t i;

	for (i = 0; i < w->n; i++) {
		struct sum *sum = &sums[steps[i]];

		if (!sum->known)
			look_through(c->nodes, steps[i], sum);
		insns += sum->insns;
		items += sum->items;
	}
	/* The run that is open behind it is counted with its end. */
	flow_counted(s->flow, insns - w->insns_to, items);
}

int steps_count_stretch(struct steps_count *c, const struct replay_stretch *s)
{
	size_t i;
	int r = 0;

	for (i = 0; i < s->n_items && r == 0; i++) {
		if (s->items[i].kind != FLOW_STEPS)
			continue;
		r = reserve(c, flow_nodes(s->flow));
		if (r == 0)
			count_walk(c, s, &s->batch->walks[s->items[i].walk]);
	}
	return r;
}
