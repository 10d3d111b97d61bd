/*
 * The last branches of walks, one by one. Called by tally.c at the end of each stretch: what later
 * ones of it have replaced is not even looked at.
 */
#include "decoder/worker/count/steps_clock.h"
#include "decoder/worker/count/tally_private.h"

struct expansion {
	const struct nodes *nodes;
	const uint32_t *steps;
	const struct flow_walk *walk;
	struct tally_lane *lane;
	struct steps_clock clock;
	uint64_t base, number; /* of the next branch, as n_last counts them */
	uint32_t context;
};

/* Whether branch NUMBER is still among the last ones. */
static bool is_among_last(const struct tally_lane *lane, uint64_t number)
{
	return number + REPORT_LAST_BRANCHES >= lane->n_last;
}

/* Goes back from branch number END, behind the step at LAST, to the first step that has one of the
 * last branches, as far as the walk goes. *ret_number: of its first branch. */
static uint32_t find_begin(const struct expansion *e, uint32_t last, uint64_t end,
			   uint64_t *ret_number)
{
	uint32_t i = last + 1;

	while (i > e->walk->first && end > 0 && is_among_last(e->lane, end - 1)) {
		i--;
		if ((e->steps[i] & 15u) != NODE_STEP_PLACE)
			end -= steps_items(e->nodes, e->steps[i]);
	}
	*ret_number = end;
	return i;
}

static uint64_t base_at(const struct expansion *e, uint32_t at)
{
	uint32_t place = e->walk->place;

	while (at-- > e->walk->first) {
		if ((e->steps[at] & 15u) != NODE_STEP_PLACE)
			continue;
		place = node_of_step(e->steps[at]);
		break;
	}
	return nodes_place_address(e->nodes, place);
}

static void remember(struct expansion *e, const struct steps_piece *p, uint32_t at)
{
	const struct steps_when *when = steps_clock_when(&e->clock, p->decided, p->direct);
	uint64_t number = e->number++, to = e->base + p->to;

	if (!is_among_last(e->lane, number))
		return;
	if (p->elsewhere)
		to = steps_behind(e->nodes, e->steps, e->walk, at, e->base);
	e->lane->last[number % REPORT_LAST_BRANCHES] = (struct tally_branch){
		.from = e->base + p->last,
		.to = to,
		.tsc_lo = when->lo,
		.tsc_hi = when->hi,
		.context = e->context,
		.kind = p->kind,
	};
}

static void expand(struct expansion *e, uint32_t at)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t i, n = steps_pieces(e->nodes, e->steps[at], pieces);

	for (i = 0; i < n; i++)
		if (pieces[i].kind != STEPS_ON)
			remember(e, &pieces[i], at);
	if (!e->clock.begun)
		e->clock.begun = !steps_is_go(e->nodes, e->steps[at]);
}

static void expand_all(struct expansion *e, uint32_t begin, uint32_t last)
{
	uint32_t i;

	for (i = begin; i <= last; i++) {
		while (i >= steps_clock_until(&e->clock))
			steps_clock_next(&e->clock);
		if ((e->steps[i] & 15u) == NODE_STEP_PLACE)
			e->base = nodes_place_address(e->nodes, node_of_step(e->steps[i]));
		else
			expand(e, i);
	}
}

static void expand_tail(struct tally_lane *lane, const struct replay_stretch *s,
			const struct tally_tail *tail)
{
	const struct flow_walk *walk = &s->batch->walks[tail->walk];
	struct expansion e = {
		.nodes = flow_nodes(s->flow),
		.steps = s->batch->steps,
		.walk = walk,
		.lane = lane,
		.context = s->context,
	};
	uint32_t begin = find_begin(&e, tail->last, tail->end, &e.number);

	e.base = base_at(&e, begin);
	steps_clock_begin(&e.clock, e.nodes, s->batch, walk, begin);
	expand_all(&e, begin, tail->last);
}

void tally_last(struct tally *t, struct tally_lane *lane, const struct replay_stretch *s)
{
	size_t i, n = MIN_OF(t->n_tails, ARRAY_SIZE(t->tails));

	for (i = 1; i <= n; i++) {
		const struct tally_tail *tail = &t->tails[(t->n_tails - i) % ARRAY_SIZE(t->tails)];

		if (!is_among_last(lane, tail->end - 1))
			break;
		expand_tail(lane, s, tail);
	}
	t->n_tails = 0;
}
