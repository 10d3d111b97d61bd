/*
 * The inner loop of counting: known steps, at a time at which nobody has to look.
 *
 * Most steps stay within the running function and add to its instructions. This file also counts
 * calls, and returns that go behind the innermost call. tally_steps.c counts every step that stops
 * the loop; both give the same numbers. All state lives in a struct that never leaves this file's
 * inline functions, so that the compiler keeps the state in registers.
 */
#include "decoder/worker/count/tally_private.h"

/* The records of more nodes than FAR_NODES do not fit in the second cache: they are prefetched
 * STEPS_AHEAD steps before they are counted. */
#define FAR_NODES   16384u
#define STEPS_AHEAD 48

#define HOT __attribute__((always_inline)) static inline

struct quick {
	const struct tally_record *records;
	const struct tally_op *ops;
	const uint32_t *offsets; /* of the nodes */
	struct function *list;
	uint32_t number; /* of the running function; TALLY_NO_FUNCTION behind a call */
	uint32_t naming;
	uint32_t match; /* of plain records in the running function; else TALLY_NO_RECORD */
	struct calls_begin running; /* when its instance began */
	uint64_t base;		    /* where the place begins */
	uint64_t insns; /* of the thread; the running function has them less those at its begin */
	uint64_t items;
	/* The stack: frames [bottom, top) of a ring, which has room up to LIMIT. */
	struct calls_frame *frames;
	uint64_t mask, bottom, top, limit;
	const uint32_t *at;    /* the next step */
	const uint32_t *begin; /* in front of this step, counting.open says whether a run goes on */
	const uint32_t *end;   /* behind the last step of the current time */
	const uint32_t *last;  /* the loop stops here */
	const uint32_t *ahead; /* the first step whose record was not prefetched */
};

HOT void load_stack(struct quick *q, const struct counting *c)
{
	const struct tally_counters *counters = c->counters;
	const struct calls *calls = &counters->calls;

	q->number = counters->function;
	q->running = counters->begin;
	q->frames = calls->frames;
	q->mask = calls->capacity - 1;
	q->bottom = calls->begin;
	q->top = calls->end;
	q->limit = calls->begin + calls->capacity;
}

/* From here on, instructions belong to the running function: what it has is INSNS too small until
 * settle_insns(). */
HOT void begin_insns(const struct quick *q, struct function *f)
{
	f->self_insns -= q->insns;
}

HOT void settle_insns(const struct quick *q, struct function *f)
{
	f->self_insns += q->insns;
}

/* The running function's instructions are settled. */
HOT void save_stack(const struct quick *q, struct counting *c)
{
	struct tally_counters *counters = c->counters;

	counters->function = q->number;
	counters->begin = q->number != TALLY_NO_FUNCTION ? q->running : (struct calls_begin){0};
	counters->insns = q->insns;
	counters->calls.end = q->top;
}

HOT void load(struct quick *q, struct counting *c, uint32_t at, uint32_t last)
{
	const struct tally_counters *counters = c->counters;

	*q = (struct quick){
		.records = c->cache->records,
		.ops = c->cache->ops,
		.offsets = c->cache->offsets,
		.list = c->t->functions.list,
		.naming = c->naming,
		.match = counters->called ? TALLY_NO_RECORD
					  : tally_match(c->naming, counters->function),
		.base = c->base,
		.insns = counters->insns,
		.items = c->items,
		.at = c->steps + at,
		.begin = c->steps + at,
		.end = c->steps + at,
		.last = c->steps + last,
		.ahead = c->steps + at,
	};
	load_stack(q, c);
	if (q->number != TALLY_NO_FUNCTION)
		begin_insns(q, &q->list[q->number]);
	q->insns += c->insns;
	c->insns = 0;
}

/* Whether a run goes on with the step at hand. */
HOT bool is_open(const struct quick *q, const struct counting *c)
{
	return q->at == q->begin ? c->open : q->records[q->at[-1]].open;
}

HOT void save(const struct quick *q, struct counting *c)
{
	struct tally_counters *counters = c->counters;

	counters->called = q->number == TALLY_NO_FUNCTION;
	if (q->number != TALLY_NO_FUNCTION)
		settle_insns(q, &q->list[q->number]);
	save_stack(q, c);
	c->naming = q->naming;
	c->base = q->base;
	c->items = q->items;
	c->open = is_open(q, c);
}

/* The same as tally_deactivate and tally_activate. */
HOT void deactivate(const struct quick *q, const struct counting *c, struct function *f)
{
	if (--f->active > 0)
		return;
	f->total_insns += q->insns;
	f->total_ticks += c->counters->ticks;
}

HOT void activate(const struct quick *q, const struct counting *c, struct function *f)
{
	if (f->active++ > 0)
		return;
	f->total_insns -= q->insns;
	f->total_ticks -= c->counters->ticks;
}

HOT void run(struct quick *q, uint32_t number)
{
	q->number = number;
	q->match = tally_match(q->naming, number);
}

static __attribute__((noinline)) void took(struct counting *c, uint32_t number, uint64_t tsc,
					   uint64_t ticks)
{
	int r = tally_took(c->t, c->counters, number, (struct calls_begin){tsc, ticks});

	if (r < 0)
		c->error = r;
}

/* The same as tally_leave, tally_begin, push and pop of tally.c. */
HOT void leave(const struct quick *q, struct counting *c)
{
	struct function *f = &q->list[q->number];

	settle_insns(q, f);
	deactivate(q, c, f);
	if (c->counters->last_tsc > q->running.tsc && q->running.tsc != 0)
		took(c, q->number, q->running.tsc, q->running.ticks);
}

HOT void begin(struct quick *q, const struct counting *c, uint32_t number, bool call)
{
	struct function *f = &q->list[number];
	uint64_t tsc = call ? c->counters->last_tsc : 0;

	f->calls += call;
	f->unended += call && tsc == 0;
	activate(q, c, f);
	begin_insns(q, f);
	q->running = (struct calls_begin){tsc, c->counters->ticks};
	run(q, number);
}

HOT void push(struct quick *q, uint64_t from)
{
	settle_insns(q, &q->list[q->number]);
	q->frames[q->top++ & q->mask] =
		(struct calls_frame){.from = from, .begin = q->running, .function = q->number};
	q->number = TALLY_NO_FUNCTION;
	q->match = TALLY_NO_RECORD;
}

HOT struct calls_frame *frame_at(const struct quick *q, uint64_t position)
{
	return &q->frames[position & q->mask];
}

/* LAST is the innermost frame. */
HOT void pop(struct quick *q, struct counting *c, const struct calls_frame *last)
{
	leave(q, c);
	run(q, last->function);
	begin_insns(q, &q->list[q->number]);
	q->running.tsc = last->begin.tsc;
	q->running.ticks = last->begin.ticks;
	q->top--;
}

/* As find_again() of tally.c, among the jumps that led to the running function. 0: not there. */
HOT unsigned find_again(const struct quick *q, uint32_t number, unsigned *ret_jumps)
{
	unsigned jumps = 0;

	for (uint64_t top = q->top; top != q->bottom; top--) {
		const struct calls_frame *frame = frame_at(q, top - 1);

		if (frame->from != CALLS_JUMP)
			break;
		jumps++;
		if (frame->function == number)
			return jumps;
	}
	*ret_jumps = jumps;
	return 0;
}

/* A jump that needs the whole stack, or makes it grow. */
static void jump_far(struct quick *q, struct counting *c, uint32_t number, bool entry)
{
	int r;

	settle_insns(q, &q->list[q->number]);
	save_stack(q, c);
	r = tally_jump(c->t, c->counters, number, entry);
	if (r < 0)
		c->error = r;
	load_stack(q, c);
	if (q->number != TALLY_NO_FUNCTION)
		begin_insns(q, &q->list[q->number]);
}

/* Execution jumps from the running function to function NUMBER. ENTRY: to its first instruction.
 * Few steps need this; apart from the others it leaves them more registers. The stack is that of
 * the counters. */
static __attribute__((noinline)) void jump(struct counting *c, uint32_t number, bool entry)
{
	struct quick q = {.list = c->t->functions.list, .insns = c->counters->insns};
	unsigned jumps = 0, pops;

	load_stack(&q, c);
	pops = find_again(&q, number, &jumps);
	if (pops == 0 && (!entry || jumps >= TALLY_MAX_JUMPS || q.top == q.limit)) {
		jump_far(&q, c, number, entry);
		return;
	}
	if (pops == 0)
		push(&q, CALLS_JUMP);
	for (; pops > 0; pops--) {
		pop(&q, c, frame_at(&q, q.top - 1));
		if (pops > 1 || entry)
			tally_count_left(&q.list[q.number], &q.running);
	}
	if (q.number == TALLY_NO_FUNCTION) {
		begin(&q, c, number, true);
	} else if (entry) {
		leave(&q, c);
		begin(&q, c, number, true);
	}
	save_stack(&q, c);
}

/* ENTRY: execution jumps to the function's first instruction, unless a call went there. */
HOT void enter(struct quick *q, struct counting *c, uint32_t number, bool entry)
{
	if (q->number == TALLY_NO_FUNCTION) {
		begin(q, c, number, true);
		return;
	}
	save_stack(q, c);
	jump(c, number, entry);
	load_stack(q, c);
	run(q, q->number);
}

/* Where the step behind the one at hand begins. False: unknown here. */
HOT bool next_start(const struct quick *q, const struct counting *c, uint64_t *ret)
{
	const uint32_t *at = q->at + 1;
	uint64_t base = q->base;

	if ((*at & 15u) == NODE_STEP_PLACE && at < q->last)
		base = nodes_place_address(c->nodes, node_of_step(*at++));
	if ((*at & 15u) == NODE_STEP_PLACE)
		return false;
	*ret = base + q->offsets[node_of_step(*at)];
	return true;
}

/* Ends the frames that the return at hand ends. False: the return does not go behind the innermost
 * call, or its target is unknown here. */
HOT bool count_return(struct quick *q, struct counting *c)
{
	const struct calls_frame *last = NULL;
	uint64_t top = q->top, to;

	for (; top != q->bottom; top--) {
		last = frame_at(q, top - 1);
		if (__builtin_expect(last->from != CALLS_JUMP, 1))
			break;
	}
	if (top == q->bottom || !next_start(q, c, &to) || !calls_returns_to(last, to) ||
	    last->function == TALLY_NO_FUNCTION)
		return false;
	while (__builtin_expect(q->top != top, 0)) {
		pop(q, c, frame_at(q, q->top - 1));
		tally_count_left(&q->list[q->number], &q->running);
	}
	pop(q, c, last);
	return true;
}

HOT void count_time(const struct quick *q, struct counting *c, unsigned int items,
		    unsigned int before, bool first)
{
	c->counters->function = q->number;
	counting_time(c, items, before, first);
}

/* TIMED: the op's time is not counted yet. */
HOT void count_op(struct quick *q, struct counting *c, const struct tally_op *op, bool timed)
{
	q->insns += op->insns;
	q->items += op->items;
	if (timed)
		count_time(q, c, op->items, op->before, op->first);
	if (op->pushes)
		push(q, q->base + op->from);
}

/* False: the step ends with a return that is left to tally_steps.c. */
HOT bool count_ops(struct quick *q, struct counting *c, const struct tally_record *r, bool timed)
{
	const struct tally_op *op = q->ops + tally_record_ops(r), *last = op + r->items - 1;

	if (q->number != op->function)
		enter(q, c, op->function, op->entry && !is_open(q, c));
	count_op(q, c, op, timed);
	while (op < last) {
		op++;
		if (q->number != op->function)
			enter(q, c, op->function, op->entry && op->begins);
		count_op(q, c, op, timed);
	}
	if (op->returns && !count_return(q, c))
		c->returned = true;
	q->at++;
	return !c->returned;
}

/* A step that only names a place. False: the place has no known naming. */
HOT bool enter_place(struct quick *q, struct counting *c, uint32_t place)
{
	const struct namings *namings = &c->cache->namings;

	if (place >= namings->n_places || namings->of_place[place] <= NAMING_NONE + 1)
		return false;
	c->open = is_open(q, c);
	c->place = place;
	q->naming = namings->of_place[place] - 1;
	q->base = nodes_place_address(c->nodes, place);
	if (q->number != TALLY_NO_FUNCTION)
		run(q, q->number);
	q->begin = ++q->at;
	return true;
}

/* False: the step is not known, or tally_steps.c has to go on behind the step. */
HOT bool count_step(struct quick *q, struct counting *c, bool timed)
{
	uint32_t step = *q->at;
	const struct tally_record *r = &q->records[step];

	/* The stack need not grow: an op enters a function by a jump, and calls another one. */
	if (tally_record_has_ops(r, q->naming) && q->top + UINT64_C(2) * r->items <= q->limit)
		return count_ops(q, c, r, timed);
	if (r->kind == TALLY_PLAIN && tally_record_naming(r) == q->naming) {
		if (q->match != r->match)
			enter(q, c, tally_record_function(r), r->entry && !is_open(q, c));
		q->insns += r->insns;
		q->items += r->items;
		if (timed)
			count_time(q, c, r->items, r->before, r->first);
		q->at++;
		return true;
	}
	return (step & 15u) == NODE_STEP_PLACE && enter_place(q, c, node_of_step(step));
}

/* Counts steps until more branches do not change the counted time. False: as above. */
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

/* Counts plain steps of the running function. */
HOT void count_plain(struct quick *q)
{
	const struct tally_record *records = q->records;
	const uint32_t *at = q->at, *end = q->end, match = q->match;
	uint64_t insns = 0, items = 0;

	for (; at < end && records[*at].match == match; at++) {
		insns += records[*at].insns;
		items += records[*at].items;
	}
	q->at = at;
	q->insns += insns;
	q->items += items;
}

HOT void look_ahead(struct quick *q)
{
	const uint32_t *to = q->last - q->at > STEPS_AHEAD ? q->at + STEPS_AHEAD : q->last;

	const uint32_t *at = MAX_OF(q->ahead, q->at);

#pragma GCC unroll 4
	for (; at < to; at++)
		__builtin_prefetch(&q->records[*at]);
	q->ahead = at;
}

/* Counts the steps of one time. False: as above. */
HOT bool count_steps_of_time(struct quick *q, struct counting *c)
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

int tally_quick(struct counting *c, uint32_t *at, uint32_t end)
{
	struct quick q;

	/* There are no records of the code; or a return has to be carried out; or no function runs;
	 * or the running function was called and will count as called once more. */
	if (c->naming == NAMING_NONE || c->returned ||
	    c->counters->called != (c->counters->function == TALLY_NO_FUNCTION))
		return 0;
	load(&q, c, *at, end);
	while (q.at < q.last && count_steps_of_time(&q, c) && c->error == 0)
		;
	save(&q, c);
	*at = (uint32_t)(q.at - c->steps);
	return c->error;
}
