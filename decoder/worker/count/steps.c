/*
 * From steps to pieces of code. Used by the tally in ptsnap-decode: once for each kind of step, and
 * at the ends of a walk.
 */
#include "decoder/worker/count/steps.h"

/* Steps of one decision have one node, so have those of a target; NODE_GO may lie between. */
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

/* All but the last part. False: there is no room for more. */
static bool add_first_parts(struct reader *r, const struct node_info *info)
{
	unsigned int i;

	if (info == NULL || info->n_parts == 0 || r->n + info->n_parts > STEPS_MAX_PIECES)
		return false;
	for (i = 0; i + 1 < info->n_parts; i++)
		add_part(r, &info->parts[i], info->parts[i + 1].start);
	return true;
}

static void add_go(struct reader *r, const struct node_info *info)
{
	add_part(r, &info->parts[info->n_parts - 1], info->next);
}

/* The last part of a node that a packet decided. */
static void add_decided(struct reader *r, const struct node_info *info, bool taken)
{
	struct steps_piece *p;

	r->decided++;
	add_part(r, &info->parts[info->n_parts - 1], info->target);
	p = &r->to[r->n - 1];
	p->direct = false;
	p->elsewhere = info->kind != NODE_COND;
	if (p->elsewhere || taken)
		return;
	p->kind = STEPS_ON;
	p->to = info->next;
}

size_t steps_pieces(const struct nodes *nodes, uint32_t step, struct steps_piece *to)
{
	struct reader r = {.nodes = nodes, .to = to};
	uint32_t number = node_of_step(step);
	unsigned int left = node_decisions(step);

	for (;;) {
		const struct node_info *info = nodes_info(nodes, number);
		bool taken;

		if (!add_first_parts(&r, info))
			return r.n;
		if (info->kind == NODE_GO) {
			add_go(&r, info);
			if (left == 0)
				return r.n;
			number = nodes_next(nodes, number, false);
			continue;
		}
		taken = left == 0 || (step >> (left - 1) & 1) != 0;
		add_decided(&r, info, taken);
		if (left <= 1 || info->kind != NODE_COND)
			return r.n;
		left--;
		number = nodes_next(nodes, number, taken);
	}
}

unsigned int steps_items(const struct nodes *nodes, uint32_t step)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t i, n = steps_pieces(nodes, step, pieces);
	unsigned int items = 0;

	for (i = 0; i < n; i++)
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
