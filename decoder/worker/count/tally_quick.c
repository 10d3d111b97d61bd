/*
 * The inner loop of counting: steps that are known, at a time at which nobody has to look. Called
 * by tally_steps.c, which does what is not; it comes to the same there.
 *
 * Most steps stay within the function that runs and add to what it executed. Of the others, calls
 * and returns to where the innermost call came from are done here, too. All that changes lives in a
 * struct that never leaves this file's inline functions, so that it is in registers.
 */
#include "decoder/worker/count/tally_counting.h"

#include "decoder/worker/count/steps.h"

/* Of more nodes than these the records do not lie in the second cache: they are asked for so many
 * steps before they are counted. */
#define FAR_NODES   16384u
#define STEPS_AHEAD 48

#define HOT __attribute__((always_inline)) static inline

struct quick {
	const struct tally_record *records;
	struct function *list;
	uint32_t number; /* of the function that runs; TALLY_NO_FUNCTION: another one was called */
	uint32_t view;
	uint32_t match; /* of plain records in it; nothing has it where another one was called */
	uint64_t base;	/* where the place begins */
	uint64_t insns; /* of the lane */
	uint64_t told;	/* how many of them the functions know of */
	uint64_t items;
	/* The stack: frames [bottom, top) of a ring, which has room up to LIMIT. */
	struct calls_frame *frames;
	uint64_t mask, bottom, top, limit;
	const uint32_t *at;    /* the next step */
	const uint32_t *begin; /* in front of this one the counting knows whether a run goes on */
	const uint32_t *end;   /* behind the last one of the time that holds */
	const uint32_t *last;  /* is left */
	const uint32_t *ahead; /* the first step whose record was not asked for */
};

HOT void load(struct quick *q, const struct counting *c, uint32_t at, uint32_t last)
{
	const struct tally_lane *lane = c->lane;
	const struct calls *calls = &lane->calls;

	*q = (struct quick){
		.records = c->cache->records,
		.list = c->t->functions.list,
		.number = lane->function,
		.view = c->view,
		.match = lane->called ? TALLY_NO_RECORD : tally_match(c->view, lane->function),
		.base = c->base,
		.insns = lane->insns + c->insns,
		.told = lane->insns,
		.items = c->items,
		.frames = calls->frames,
		.mask = calls->capacity - 1,
		.bottom = calls->begin,
		.top = calls->end,
		.limit = calls->begin + calls->capacity,
		.at = c->steps + at,
		.begin = c->steps + at,
		.end = c->steps + at,
		.last = c->steps + last,
		.ahead = c->steps + at,
	};
}

/* Whether a run goes on with the step at hand. */
HOT bool is_open(const struct quick *q, const struct counting *c)
{
	return q->at == q->begin ? c->open : q->records[q->at[-1]].open;
}

HOT void save(const struct quick *q, struct counting *c)
{
	struct tally_lane *lane = c->lane;

	lane->called = q->number == TALLY_NO_FUNCTION;
	lane->function = q->number;
	lane->insns = q->told;
	lane->calls.end = q->top;
	c->view = q->view;
	c->base = q->base;
	c->insns = q->insns - q->told;
	c->items = q->items;
	c->open = is_open(q, c);
}

/* F, which runs, does not go on. */
HOT void tell(struct quick *q, struct function *f)
{
	f->self_insns += q->insns - q->told;
	q->told = q->insns;
}

/* As tally_deactivate, tally_activate, tally_enter. */
HOT void deactivate(const struct quick *q, const struct counting *c, struct function *f)
{
	if (--f->active > 0)
		return;
	f->total_insns += q->insns - f->began_insns;
	f->total_ticks += c->lane->ticks - f->began_ticks;
}

HOT void activate(const struct quick *q, const struct counting *c, struct function *f)
{
	if (f->active++ > 0)
		return;
	f->began_insns = q->insns;
	f->began_ticks = c->lane->ticks;
}

HOT void run(struct quick *q, uint32_t number)
{
	q->number = number;
	q->match = tally_match(q->view, number);
}

/* ENTRY: by a jump to its first instruction, if not by a call. */
HOT void enter(struct quick *q, const struct counting *c, uint32_t number, bool entry)
{
	struct function *f = &q->list[number];

	if (q->number != TALLY_NO_FUNCTION) {
		tell(q, &q->list[q->number]);
		deactivate(q, c, &q->list[q->number]);
		f->calls += entry;
	} else {
		f->calls++;
	}
	activate(q, c, f);
	run(q, number);
}

HOT void push(struct quick *q, uint32_t from)
{
	tell(q, &q->list[q->number]);
	q->frames[q->top++ & q->mask] =
		(struct calls_frame){.from = q->base + from, .function = q->number};
	q->number = TALLY_NO_FUNCTION;
	q->match = TALLY_NO_RECORD;
}

/* Where the step behind the one at hand begins. False: that is not known here. */
HOT bool next_start(const struct quick *q, const struct counting *c, uint64_t *ret)
{
	const uint32_t *at = q->at + 1;
	uint64_t base = q->base;

	if ((*at & 15u) == NODE_STEP_PLACE && at < q->last)
		base = nodes_place_address(c->nodes, node_of_step(*at++));
	if ((*at & 15u) == NODE_STEP_PLACE)
		return false;
	*ret = base + c->cache->offsets[node_of_step(*at)];
	return true;
}

/* False: it is not known to return to where the innermost call came from. */
HOT bool pop(struct quick *q, const struct counting *c)
{
	const struct calls_frame *last;
	uint64_t to;

	if (q->bottom == q->top || !next_start(q, c, &to))
		return false;
	last = &q->frames[(q->top - 1) & q->mask];
	if (!calls_returns_to(last, to) || last->function == TALLY_NO_FUNCTION)
		return false;
	tell(q, &q->list[q->number]);
	deactivate(q, c, &q->list[q->number]);
	run(q, last->function);
	q->top--;
	return true;
}

HOT void tell_time(const struct quick *q, struct counting *c, unsigned int items,
		   unsigned int before, bool first)
{
	c->lane->function = q->number;
	counting_tell(c, items, before, first);
}

/* TIMED: its time is not told yet. */
HOT void count_op(struct quick *q, struct counting *c, const struct tally_op *op, bool timed)
{
	q->insns += op->insns;
	q->items += op->items;
	if (timed)
		tell_time(q, c, op->items, op->before, op->first);
	if (op->pushes)
		push(q, op->from);
}

/* False: it ends with a return that the stack has to be told of. */
HOT bool count_ops(struct quick *q, struct counting *c, const struct tally_record *r, bool timed)
{
	const struct tally_op *op = c->cache->ops + tally_record_ops(r), *last = op + r->items - 1;

	if (q->number != op->function)
		enter(q, c, op->function, op->entry && !is_open(q, c));
	count_op(q, c, op, timed);
	while (op < last) {
		op++;
		if (q->number != op->function)
			enter(q, c, op->function, op->entry && op->begins);
		count_op(q, c, op, timed);
	}
	if (op->returns)
		c->returned = !pop(q, c);
	q->at++;
	return !op->returns || !c->returned;
}

/* A step that is none. False: it is not known. */
HOT bool enter_place(struct quick *q, struct counting *c, uint32_t place)
{
	const struct tally_views *views = &c->cache->views;

	if (place >= views->n_places || views->of_place[place] <= TALLY_NO_VIEW + 1)
		return false;
	c->open = is_open(q, c);
	c->place = place;
	q->view = views->of_place[place] - 1;
	q->base = nodes_place_address(c->nodes, place);
	if (q->number != TALLY_NO_FUNCTION)
		run(q, q->number);
	q->begin = ++q->at;
	return true;
}

/* False: it is none of those that are known, or what follows is not for us. */
HOT bool count_step(struct quick *q, struct counting *c, bool timed)
{
	uint32_t step = *q->at;
	const struct tally_record *r = &q->records[step];

	/* The stack need not grow. */
	if (r->kind == TALLY_OPS && r->insns == q->view && q->top + r->items <= q->limit)
		return count_ops(q, c, r, timed);
	if (r->kind == TALLY_PLAIN && tally_record_view(r) == q->view) {
		if (q->match != r->match)
			enter(q, c, tally_record_function(r), r->entry && !is_open(q, c));
		q->insns += r->insns;
		q->items += r->items;
		if (timed)
			tell_time(q, c, r->items, r->before, r->first);
		q->at++;
		return true;
	}
	return (step & 15u) == NODE_STEP_PLACE && enter_place(q, c, node_of_step(step));
}

/* Steps up to where branches tell nothing new of the time. False: as above. */
HOT bool settle(struct quick *q, struct counting *c)
{
	while (!c->settled && q->at < q->end) {
		const uint32_t *step = q->at;
		bool known = count_step(q, c, true);

		if (q->at > step && (*step & 15u) != NODE_STEP_PLACE)
			counting_pass(c, *step);
		if (!known)
			return false;
	}
	return true;
}

/* Steps that are plain, in the function that runs. */
HOT void count_plain(struct quick *q)
{
	for (; q->at < q->end && q->records[*q->at].match == q->match; q->at++) {
		q->insns += q->records[*q->at].insns;
		q->items += q->records[*q->at].items;
	}
}

HOT void look_ahead(struct quick *q)
{
	const uint32_t *to = q->last - q->at > STEPS_AHEAD ? q->at + STEPS_AHEAD : q->last;

	for (q->ahead = MAX_OF(q->ahead, q->at); q->ahead < to; q->ahead++)
		__builtin_prefetch(&q->records[*q->ahead]);
}

/* The steps of one time. False: as above. */
HOT bool count_time(struct quick *q, struct counting *c)
{
	uint32_t at = (uint32_t)(q->at - c->steps);

	counting_reach(c, at);
	if (c->cache->n_offsets > FAR_NODES)
		look_ahead(q);
	q->end = c->steps + MIN_OF(steps_clock_until(&c->clock), (uint32_t)(q->last - c->steps));
	if (!settle(q, c))
		return false;
	for (;;) {
		count_plain(q);
		if (q->at >= q->end)
			return true;
		if (!count_step(q, c, false))
			return false;
	}
}

void tally_quick(struct counting *c, uint32_t *at, uint32_t end)
{
	struct quick q;

	/* Nothing is kept of the code, or nothing runs, or what runs counts as called once more. */
	if (c->view == TALLY_NO_VIEW || c->returned ||
	    c->lane->called != (c->lane->function == TALLY_NO_FUNCTION))
		return;
	load(&q, c, *at, end);
	while (q.at < q.last && count_time(&q, c))
		;
	save(&q, c);
	*at = (uint32_t)(q.at - c->steps);
}
