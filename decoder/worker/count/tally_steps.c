/*
 * Counts walks of steps without making items, with the same result as tally.c has for their items;
 * and writes the last branches of walks.
 *
 * A run's instructions are counted piece by piece, each for the function that the piece lies in;
 * that gives the same sums as run by run. The instructions behind a walk's last branch are left to
 * the item that will end their run. Time goes on with the first branch whose time differs; the
 * branches from there to the next change of time need not be looked at.
 *
 * tally_quick.c counts nearly all steps. This file counts the beginning and the end of a walk, the
 * steps where time changes, and the odd ones: a piece in two functions, and a return that does not
 * go behind the innermost call. tally.c has the functions for them.
 */
#include "decoder/worker/count/tally_private.h"

/* Adds c->insns to the running function and to the thread. */
static void flush(struct counting *c)
{
	if (c->insns == 0)
		return;
	c->t->functions.list[c->counters->function].self_insns += c->insns;
	c->counters->insns += c->insns;
	c->insns = 0;
}

static int set_place(struct counting *c, uint32_t place)
{
	c->place = place;
	c->base = nodes_place_address(c->nodes, place);
	return tally_cache_naming(c->cache, c->s->context, place, &c->naming);
}

/* --- Time --- */

static void use_time(struct counting *c, const struct steps_when *when)
{
	tally_time(c->t, c->counters, &c->t->cpus[c->s->cpu], tally_instant(when->lo, when->hi));
	c->settled = when == &c->clock.rest;
}

void counting_time(struct counting *c, unsigned int items, unsigned int before, bool first)
{
	if (c->settled || items == 0)
		return;
	if (!c->clock.begun && before > 0)
		use_time(c, &c->clock.direct);
	if (!c->clock.begun && first)
		use_time(c, &c->clock.first);
	if (c->clock.begun || items > before + first)
		use_time(c, &c->clock.rest);
}

/* --- Calls and returns --- */

static int push(struct counting *c, uint64_t from)
{
	struct tally_counters *counters = c->counters;
	struct calls *calls = &counters->calls;

	flush(c);
	if (calls->end - calls->begin >= calls->capacity)
		return tally_calls(c->t, counters,
				   &(struct flow_item){.kind = FLOW_CALL, .from = from});
	*calls_slot(calls, calls->end++) = (struct calls_frame){
		.from = from, .function = counters->function, .begin = counters->begin};
	counters->function = TALLY_NO_FUNCTION;
	counters->begin = (struct calls_begin){0};
	counters->called = true;
	return 0;
}

/* The return that the stack does not know yet went to TO. */
static int pop(struct counting *c, uint64_t to)
{
	struct tally_counters *counters = c->counters;

	flush(c);
	c->returned = false;
	return tally_calls(c->t, counters, &(struct flow_item){.kind = FLOW_RET, .to = to});
}

/* --- Steps --- */

static int count_op(struct counting *c, const struct tally_op *op, bool begins)
{
	int r;

	if (c->counters->function != op->function || c->counters->called) {
		flush(c);
		r = tally_enter(c->t, c->counters, op->function, op->entry && begins);
		if (r < 0)
			return r;
	}
	c->insns += op->insns;
	c->items += op->items;
	counting_time(c, op->items, op->before, op->first);
	if (op->pushes)
		return push(c, c->base + op->from);
	c->returned = op->returns;
	return 0;
}

static int count_piece(struct counting *c, const struct steps_piece *p)
{
	bool item = p->kind != STEPS_ON;
	int r;

	c->counters->cut = c->open;
	r = tally_run(c->t, c->counters, c->s, c->base + p->start, c->base + p->last, p->insns);
	c->open = !item;
	if (r < 0 || !item)
		return r;
	c->items++;
	if (!c->settled)
		use_time(c, steps_clock_when(&c->clock, p->decided, p->direct));
	if (p->kind == FLOW_RET)
		c->returned = true;
	else if ((p->kind == FLOW_CALL || p->kind == FLOW_CALL_IND) &&
		 (p->flags & FLOW_ZERO_LENGTH) == 0)
		r = push(c, c->base + p->last);
	return r;
}

/* Counts STEP piece by piece; a piece in several functions is split by instruction. LAST: only up
 * to the last branch. */
static int take_apart(struct counting *c, uint32_t step, bool last)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t n = steps_pieces(c->nodes, step, pieces);
	int r = 0;

	while (last && n > 0 && pieces[n - 1].kind == STEPS_ON)
		n--;
	flush(c);
	for (size_t i = 0; i < n && r == 0; i++)
		r = count_piece(c, &pieces[i]);
	return r;
}

static int count_plain(struct counting *c, const struct tally_record *record)
{
	uint32_t function = tally_record_function(record);
	int r = 0;

	if (c->counters->function != function || c->counters->called) {
		flush(c);
		r = tally_enter(c->t, c->counters, function, record->entry && !c->open);
	}
	c->insns += record->insns;
	c->items += record->items;
	counting_time(c, record->items, record->before, record->first);
	return r;
}

static int count_known(struct counting *c, uint32_t step)
{
	const struct tally_record *record = &c->cache->records[step];
	int r = 0;

	if (record->kind == TALLY_NEW || tally_record_naming(record) != c->naming) {
		c->t->functions.now = c->counters->last_tsc;
		r = tally_cache_make(c->cache, c->s->context, c->naming, c->place, step);
	}
	if (r < 0)
		return r;
	if (record->kind == TALLY_HARD)
		return take_apart(c, step, false);
	if (record->kind == TALLY_PLAIN) {
		r = count_plain(c, record);
	} else {
		const struct tally_op *ops = c->cache->ops + tally_record_ops(record);

		for (size_t i = 0; i < record->items && r == 0; i++)
			r = count_op(c, &ops[i], i == 0 ? !c->open : ops[i].begins);
	}
	c->open = record->open;
	return r;
}

/* LAST: STEP has the walk's last branch. */
static int count_step(struct counting *c, uint32_t step, bool last)
{
	int r = 0;

	if ((step & 15u) == NODE_STEP_PLACE)
		return set_place(c, node_of_step(step));
	if (c->returned)
		r = pop(c, counting_start(c, step));
	if (r == 0 && (last || c->naming == NAMING_NONE))
		r = take_apart(c, step, last);
	else if (r == 0)
		r = count_known(c, step);
	counting_pass(c, step);
	return r;
}

/* --- Walks --- */

/* The step of the walk's last branch. False: the walk has no branch. */
static bool find_last(const struct counting *c, const struct flow_walk *w, uint32_t *ret)
{
	for (uint32_t i = w->first + w->n; i-- > w->first;) {
		uint32_t step = c->steps[i];
		bool taken;

		if ((step & 15u) == NODE_STEP_PLACE)
			continue;
		if ((step & 15u) == NODE_STEP_TARGET)
			taken = !steps_is_go(c->nodes, step);
		else
			taken = (step & ((1u << node_decisions(step)) - 1)) != 0;
		if (!taken && steps_items(c->nodes, step) == 0)
			continue;
		*ret = i;
		return true;
	}
	return false;
}

static int count_all(struct counting *c, const struct flow_walk *w, uint32_t last)
{
	uint32_t at = w->first;
	int r = 0;

	while (at < last && r == 0) {
		r = tally_quick(c, &at, last);
		if (r < 0 || at == last)
			break;
		counting_reach(c, at);
		r = count_step(c, c->steps[at++], false);
	}
	counting_reach(c, last);
	return r == 0 ? count_step(c, c->steps[last], true) : r;
}

/* Where the walk's last branch, which is in the step at LAST, goes. */
static uint64_t last_target(const struct counting *c, const struct flow_walk *w, uint32_t last)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t n = steps_pieces(c->nodes, c->steps[last], pieces);

	while (n > 1 && pieces[n - 1].kind == STEPS_ON)
		n--;
	return pieces[n - 1].elsewhere ? steps_behind(c->nodes, c->steps, w, last, c->base)
				       : c->base + pieces[n - 1].to;
}

/* Behind the walk's last branch, which is in the step at LAST. */
static int finish(struct counting *c, const struct flow_walk *w, uint32_t last)
{
	struct tally *t = c->t;
	struct tally_counters *counters = c->counters;
	bool returned = c->returned;

	flush(c);
	counters->ip = last_target(c, w, last);
	counters->branches += c->items;
	counters->n_last += c->items;
	t->tails[t->n_tails++ % ARRAY_SIZE(t->tails)] = (struct tally_tail){
		.walk = (uint32_t)(w - c->s->batch->walks), .last = last, .end = counters->n_last};
	counters->cut = false;
	counters->calls.aborts = false;
	counters->calls.last_return = returned ? counters->ip : 0;
	return returned ? pop(c, counters->ip) : 0;
}

int tally_walk(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s,
	       uint32_t walk)
{
	const struct flow_walk *w = &s->batch->walks[walk];
	struct counting c = {
		.t = t,
		.counters = counters,
		.s = s,
		.cache = &t->cache,
		.nodes = flow_nodes(s->flow),
		.steps = s->batch->steps,
	};
	uint64_t before = counters->insns;
	uint32_t last;
	int r;

	if (!find_last(&c, w, &last))
		return 0;
	r = tally_cache_use(c.cache, c.nodes);
	if (r < 0)
		return r;
	steps_clock_begin(&c.clock, c.nodes, s->batch, w, w->first);
	r = set_place(&c, w->place);
	/* The part of the first run that was executed before the walk. */
	if (r == 0 && w->run_insns > 0) {
		r = tally_run(t, counters, s, w->run_start, UINT64_MAX, w->run_insns);
		counters->cut = true;
	}
	c.open = counters->cut;
	if (r == 0)
		r = count_all(&c, w, last);
	if (r == 0)
		r = finish(&c, w, last);
	flow_counted(s->flow, counters->insns - before, c.items);
	return r;
}

/* --- The last branches --- */

struct expansion {
	const struct nodes *nodes;
	const uint32_t *steps;
	const struct flow_walk *walk;
	struct tally_counters *counters;
	struct steps_clock clock;
	uint64_t base;	 /* address of the current place */
	uint64_t number; /* of the next branch, as n_last counts branches */
	uint32_t context;
};

/* Whether branch NUMBER is among the last branches that are kept. */
static bool is_among_last(const struct tally_counters *counters, uint64_t number)
{
	return number + REPORT_LAST_BRANCHES >= counters->n_last;
}

/* Goes back from branch number END, behind the step at LAST, to the first step of the walk that has
 * one of the last branches. *ret_number: the number of that step's first branch. */
static uint32_t find_begin(const struct expansion *e, uint32_t last, uint64_t end,
			   uint64_t *ret_number)
{
	uint32_t i = last + 1;

	while (i > e->walk->first && end > 0 && is_among_last(e->counters, end - 1)) {
		i--;
		if ((e->steps[i] & 15u) != NODE_STEP_PLACE)
			end -= steps_items(e->nodes, e->steps[i]);
	}
	*ret_number = end;
	return i;
}

static void remember(struct expansion *e, const struct steps_piece *p, uint32_t at)
{
	const struct steps_when *when = steps_clock_when(&e->clock, p->decided, p->direct);
	uint64_t number = e->number++, to = e->base + p->to;

	if (!is_among_last(e->counters, number))
		return;
	if (p->elsewhere)
		to = steps_behind(e->nodes, e->steps, e->walk, at, e->base);
	e->counters->last[number % REPORT_LAST_BRANCHES] = (struct tally_branch){
		.from = e->base + p->last,
		.to = to,
		.tsc_lo = when->lo,
		.tsc_hi = when->hi,
		.context = e->context,
		.kind = p->kind,
	};
}

static void expand_all(struct expansion *e, uint32_t begin, uint32_t last)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];

	for (uint32_t at = begin; at <= last; at++) {
		uint32_t step = e->steps[at];
		size_t n;

		while (at >= steps_clock_until(&e->clock))
			steps_clock_next(&e->clock);
		if ((step & 15u) == NODE_STEP_PLACE) {
			e->base = nodes_place_address(e->nodes, node_of_step(step));
			continue;
		}
		n = steps_pieces(e->nodes, step, pieces);
		for (size_t i = 0; i < n; i++)
			if (pieces[i].kind != STEPS_ON)
				remember(e, &pieces[i], at);
		if (!e->clock.begun)
			e->clock.begun = !steps_is_go(e->nodes, step);
	}
}

static void expand_tail(struct tally_counters *counters, const struct replay_stretch *s,
			const struct tally_tail *tail)
{
	const struct flow_walk *walk = &s->batch->walks[tail->walk];
	struct expansion e = {
		.nodes = flow_nodes(s->flow),
		.steps = s->batch->steps,
		.walk = walk,
		.counters = counters,
		.context = s->context,
	};
	uint32_t begin = find_begin(&e, tail->last, tail->end, &e.number), place = walk->place;

	for (uint32_t at = begin; at-- > walk->first;)
		if ((e.steps[at] & 15u) == NODE_STEP_PLACE) {
			place = node_of_step(e.steps[at]);
			break;
		}
	e.base = nodes_place_address(e.nodes, place);
	steps_clock_begin(&e.clock, e.nodes, s->batch, walk, begin);
	expand_all(&e, begin, tail->last);
}

void tally_last(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s)
{
	size_t n = MIN_OF(t->n_tails, ARRAY_SIZE(t->tails));

	for (size_t i = 1; i <= n; i++) {
		const struct tally_tail *tail = &t->tails[(t->n_tails - i) % ARRAY_SIZE(t->tails)];

		if (!is_among_last(counters, tail->end - 1))
			break;
		expand_tail(counters, s, tail);
	}
	t->n_tails = 0;
}
