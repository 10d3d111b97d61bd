/*
 * The inner loop of counting: steps that are known, at a time at which nobody has to look. Called
 * by tally_steps.c, which does what is not; it comes to the same there.
 *
 * Most steps stay within the function that runs and add to what it executed. Of the others, calls
 * and returns to where the innermost call came from are done here, too. All that changes lives in a
 * struct that never leaves this file's inline functions, so that it is in registers.
 */
#include "decoder/worker/tally_counting.h"

#include "decoder/worker/steps.h"

#define HOT __attribute__((always_inline)) static inline

struct quick {
	struct function *list;
	uint32_t number; /* of the function that runs; TALLY_NO_FUNCTION: another one was called */
	uint64_t insns;	 /* of it; neither it nor the lane was told */
	uint64_t items;
	uint32_t match; /* of plain records in it */
	uint32_t at;	/* the next step */
};

/* What plain records begin with that can be counted without a look; nothing, when none can. */
HOT void look_for(struct quick *q, const struct counting *c)
{
	q->match = TALLY_NO_RECORD;
	if (q->number != TALLY_NO_FUNCTION && c->view != TALLY_NO_VIEW)
		q->match = tally_match(c->view, q->number);
}

HOT void load(struct quick *q, const struct counting *c, uint32_t at)
{
	const struct tally_lane *lane = c->lane;

	*q = (struct quick){
		.list = c->t->functions.list,
		.number = lane->function,
		.insns = c->insns,
		.items = c->items,
		.at = at,
	};
	look_for(q, c);
}

HOT void save(const struct quick *q, struct counting *c, uint32_t begin)
{
	struct tally_lane *lane = c->lane;

	lane->called = q->number == TALLY_NO_FUNCTION;
	lane->function = q->number;
	c->insns = q->insns;
	c->items = q->items;
	if (q->at > begin)
		c->open = c->cache->records[c->steps[q->at - 1]].open;
}

/* The function that runs does not go on. */
HOT void tell(struct quick *q, struct counting *c)
{
	q->list[q->number].self_insns += q->insns;
	c->lane->insns += q->insns;
	q->insns = 0;
}

/* As tally_deactivate, tally_activate, tally_enter. */
HOT void deactivate(const struct quick *q, const struct counting *c)
{
	struct function *f = &q->list[q->number];

	if (--f->active > 0)
		return;
	f->total_insns += c->lane->insns - f->began_insns;
	f->total_ticks += c->lane->ticks - f->began_ticks;
}

HOT void enter(struct quick *q, struct counting *c, uint32_t number, bool entry)
{
	struct function *f = &q->list[number];

	if (q->number != TALLY_NO_FUNCTION) {
		tell(q, c);
		deactivate(q, c);
		f->calls += entry;
	} else {
		f->calls++;
	}
	q->number = number;
	if (f->active++ > 0)
		return;
	f->began_insns = c->lane->insns;
	f->began_ticks = c->lane->ticks;
}

HOT void push(struct quick *q, struct counting *c, uint32_t from)
{
	struct calls *calls = &c->lane->calls;

	tell(q, c);
	*calls_slot(calls, calls->end++) =
		(struct calls_frame){.from = c->base + from, .function = q->number};
	q->number = TALLY_NO_FUNCTION;
}

/* Where the step behind the one at hand begins. False: that is not known here. */
HOT bool next_start(const struct quick *q, const struct counting *c, uint32_t end, uint64_t *ret)
{
	uint64_t base = c->base;
	uint32_t at = q->at + 1;

	if (at < end && (c->steps[at] & 15u) == NODE_STEP_PLACE)
		base = nodes_place_address(c->nodes, node_of_step(c->steps[at++]));
	if (at >= end)
		return false;
	*ret = base + c->nodes->list[node_of_step(c->steps[at])].offset;
	return true;
}

/* False: it is not known to return to where the innermost call came from. */
HOT bool pop(struct quick *q, struct counting *c, uint32_t end)
{
	struct calls *calls = &c->lane->calls;
	const struct calls_frame *top;
	uint64_t to;

	if (calls->begin == calls->end || !next_start(q, c, end, &to))
		return false;
	top = calls_slot(calls, calls->end - 1);
	if (!calls_returns_to(top, to) || top->function == TALLY_NO_FUNCTION)
		return false;
	tell(q, c);
	deactivate(q, c);
	q->number = top->function;
	calls->end--;
	return true;
}

/* Whether a run begins with the step at hand. BEGIN: the first one that was counted here. */
HOT bool begins(const struct quick *q, const struct counting *c, uint32_t begin)
{
	return q->at == begin ? !c->open : !c->cache->records[c->steps[q->at - 1]].open;
}

HOT void count_op(struct quick *q, struct counting *c, const struct tally_op *op, bool entry)
{
	if (q->number != op->function)
		enter(q, c, op->function, entry);
	q->insns += op->insns;
	q->items += op->items;
	if (op->pushes)
		push(q, c, op->from);
}

/* False: it ends with a return that the stack has to be told of. */
HOT bool count_ops(struct quick *q, struct counting *c, const struct tally_record *r,
		   uint32_t begin, uint32_t end)
{
	const struct tally_op *op = c->cache->ops + tally_record_ops(r), *last = op + r->items - 1;

	count_op(q, c, op, op->entry && begins(q, c, begin));
	while (op < last) {
		op++;
		count_op(q, c, op, op->entry && op->begins);
	}
	c->returned = op->returns && !pop(q, c, end);
	q->at++;
	return !c->returned;
}

/* A step that is none. False: it is not known. */
HOT bool enter_place(struct quick *q, struct counting *c, uint32_t place)
{
	const struct tally_views *views = &c->cache->views;

	if (place >= views->n_places || views->of_place[place] == 0)
		return false;
	c->place = place;
	c->view = views->of_place[place] - 1;
	c->base = nodes_place_address(c->nodes, place);
	q->at++;
	return true;
}

/* N more frames fit, and the stack need not grow. */
HOT bool may_push(const struct counting *c, uint32_t n)
{
	const struct calls *calls = &c->lane->calls;

	return calls->end - calls->begin + n <= calls->capacity;
}

/* False: it is none of those that are known, or what follows is not for us. */
HOT bool count_step(struct quick *q, struct counting *c, uint32_t begin, uint32_t end)
{
	uint32_t step = c->steps[q->at];
	const struct tally_record *r = &c->cache->records[step];

	if (r->kind == TALLY_OPS && r->insns == c->view && may_push(c, r->items))
		return count_ops(q, c, r, begin, end);
	if (r->kind == TALLY_PLAIN && tally_record_view(r) == c->view) {
		/* It is counted next. */
		enter(q, c, tally_record_function(r), r->entry && begins(q, c, begin));
		return true;
	}
	return (step & 15u) == NODE_STEP_PLACE && enter_place(q, c, node_of_step(step));
}

/* Steps that are plain, in the function that runs. */
HOT void count_plain(struct quick *q, const struct counting *c, uint32_t end)
{
	const struct tally_record *records = c->cache->records;
	const uint32_t *steps = c->steps;

	for (; q->at < end && records[steps[q->at]].match == q->match; q->at++) {
		q->insns += records[steps[q->at]].insns;
		q->items += records[steps[q->at]].items;
	}
}

void tally_quick(struct counting *c, uint32_t *at, uint32_t end)
{
	const uint32_t begin = *at;
	struct quick q;

	/* Nothing runs, or what runs counts as called once more. */
	if (c->returned || c->lane->called != (c->lane->function == TALLY_NO_FUNCTION))
		return;
	load(&q, c, begin);
	for (;;) {
		count_plain(&q, c, end);
		if (q.at >= end || !count_step(&q, c, begin, end))
			break;
		look_for(&q, c);
	}
	save(&q, c, begin);
	*at = q.at;
}
