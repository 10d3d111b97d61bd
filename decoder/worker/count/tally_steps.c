/*
 * Counting walks of steps: what tally.c would make of their items, at once. Called by tally.c for
 * each walk.
 *
 * A run's instructions are counted piece by piece, each by the function that it lies in, which
 * comes to the same as run by run. What lies behind a walk's last branch is left to the item that
 * will end its run. Time goes on with the first branch that has another one: from there up to where
 * the time changes again nobody has to look.
 *
 * Nearly all steps are done by tally_quick.c. Here is what begins and ends a walk, what tells the
 * time, and what is odd: a piece in two functions, a return that goes elsewhere than behind the
 * innermost call. That is done by tally.c's own means.
 */
#include "decoder/worker/count/tally_counting.h"

/* The function that runs, and the lane, are told of what it executed. */
static void flush(struct counting *c)
{
	if (c->insns == 0)
		return;
	c->t->functions.list[c->lane->function].self_insns += c->insns;
	c->lane->insns += c->insns;
	c->insns = 0;
}

static int set_place(struct counting *c, uint32_t place)
{
	c->place = place;
	c->base = nodes_place_address(c->nodes, place);
	return tally_cache_view(c->cache, c->s->context, place, &c->view);
}

/* --- Time --- */

static void tell_time(struct counting *c, const struct steps_when *when)
{
	tally_time(c->t, c->lane, &c->t->cpus[c->s->cpu], tally_instant(when->lo, when->hi));
	c->settled = when == &c->clock.rest;
}

/* As struct steps_piece has it. */
static void time_item(struct counting *c, unsigned int decided, bool direct)
{
	if (!c->settled)
		tell_time(c, steps_clock_when(&c->clock, decided, direct));
}

void counting_tell(struct counting *c, unsigned int items, unsigned int before, bool first)
{
	if (c->settled || items == 0)
		return;
	if (!c->clock.begun && before > 0)
		tell_time(c, &c->clock.direct);
	if (!c->clock.begun && first)
		tell_time(c, &c->clock.first);
	if (c->clock.begun || items > before + first)
		tell_time(c, &c->clock.rest);
}

/* --- Calls and returns --- */

static int push(struct counting *c, uint64_t from)
{
	struct tally_lane *lane = c->lane;
	struct calls *calls = &lane->calls;

	flush(c);
	if (calls->end - calls->begin >= calls->capacity)
		return tally_calls(c->t, lane,
				   &(struct flow_item){.kind = FLOW_CALL, .from = from});
	*calls_slot(calls, calls->end++) =
		(struct calls_frame){.from = from, .function = lane->function};
	lane->function = TALLY_NO_FUNCTION;
	lane->called = true;
	return 0;
}

/* The return that the stack has not been told of went to TO. */
static int pop(struct counting *c, uint64_t to)
{
	struct tally_lane *lane = c->lane;
	struct calls *calls = &lane->calls;

	flush(c);
	c->returned = false;
	if (calls->begin == calls->end || !calls_returns_to(calls_slot(calls, calls->end - 1), to))
		return tally_calls(c->t, lane, &(struct flow_item){.kind = FLOW_RET, .to = to});
	tally_deactivate(c->t, lane, lane->function);
	lane->function = calls_slot(calls, --calls->end)->function;
	return 0;
}

/* --- Steps --- */

static int count_op(struct counting *c, const struct tally_op *op, bool begins)
{
	if (c->lane->function != op->function || c->lane->called) {
		flush(c);
		tally_enter(c->t, c->lane, op->function, op->entry && begins);
	}
	c->insns += op->insns;
	c->items += op->items;
	counting_tell(c, op->items, op->before, op->first);
	if (op->pushes)
		return push(c, c->base + op->from);
	c->returned = op->returns;
	return 0;
}

static int count_ops(struct counting *c, const struct tally_op *ops, size_t n)
{
	int r = count_op(c, &ops[0], !c->open);
	size_t i;

	for (i = 1; i < n && r == 0; i++)
		r = count_op(c, &ops[i], ops[i].begins);
	return r;
}

static int count_piece(struct counting *c, const struct steps_piece *p)
{
	bool item = p->kind != STEPS_ON;
	int r;

	c->lane->cut = c->open;
	r = tally_run(c->t, c->lane, c->s, c->base + p->start, c->base + p->last, p->insns);
	c->open = !item;
	if (r < 0 || !item)
		return r;
	c->items++;
	time_item(c, p->decided, p->direct);
	if (p->kind == FLOW_RET)
		c->returned = true;
	else if ((p->kind == FLOW_CALL || p->kind == FLOW_CALL_IND) &&
		 (p->flags & FLOW_ZERO_LENGTH) == 0)
		r = push(c, c->base + p->last);
	return r;
}

/* Instruction by instruction, if need be. LAST: only up to its last branch. */
static int take_apart(struct counting *c, uint32_t step, bool last)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t i, n = steps_pieces(c->nodes, step, pieces);
	int r = 0;

	while (last && n > 0 && pieces[n - 1].kind == STEPS_ON)
		n--;
	flush(c);
	for (i = 0; i < n && r == 0; i++)
		r = count_piece(c, &pieces[i]);
	return r;
}

static void count_plain(struct counting *c, const struct tally_record *r)
{
	uint32_t function = tally_record_function(r);

	if (c->lane->function != function || c->lane->called) {
		flush(c);
		tally_enter(c->t, c->lane, function, r->entry && !c->open);
	}
	c->insns += r->insns;
	c->items += r->items;
	counting_tell(c, r->items, r->before, r->first);
}

static int count_known(struct counting *c, uint32_t step)
{
	const struct tally_record *record = &c->cache->records[step];
	int r = 0;

	if (record->kind == TALLY_NEW || tally_record_view(record) != c->view)
		r = tally_cache_make(c->cache, c->s->context, c->view, c->place, step);
	if (r < 0)
		return r;
	if (record->kind == TALLY_HARD)
		return take_apart(c, step, false);
	if (record->kind == TALLY_PLAIN)
		count_plain(c, record);
	else
		r = count_ops(c, c->cache->ops + tally_record_ops(record), record->items);
	c->open = record->open;
	return r;
}

/* LAST: it is that of the walk's last branch. */
static int count_step(struct counting *c, uint32_t step, bool last)
{
	int r = 0;

	if ((step & 15u) == NODE_STEP_PLACE)
		return set_place(c, node_of_step(step));
	if (c->returned)
		r = pop(c, counting_start(c, step));
	if (r == 0 && (last || c->view == TALLY_NO_VIEW))
		r = take_apart(c, step, last);
	else if (r == 0)
		r = count_known(c, step);
	counting_pass(c, step);
	return r;
}

/* --- Walks --- */

static bool has_item(const struct nodes *nodes, uint32_t step)
{
	uint32_t decisions = (1u << node_decisions(step)) - 1;

	if ((step & 15u) == NODE_STEP_TARGET)
		return !steps_is_go(nodes, step) || steps_items(nodes, step) > 0;
	return (step & decisions) != 0 || steps_items(nodes, step) > 0;
}

/* The step of the walk's last branch. False: it has none. */
static bool find_last(const struct counting *c, const struct flow_walk *w, uint32_t *ret)
{
	uint32_t i;

	for (i = w->first + w->n; i-- > w->first;) {
		if ((c->steps[i] & 15u) == NODE_STEP_PLACE || !has_item(c->nodes, c->steps[i]))
			continue;
		*ret = i;
		return true;
	}
	return false;
}

/* The part of the first run that was executed before the walk. */
static int count_head(struct counting *c, const struct flow_walk *w)
{
	int r = 0;

	if (w->run_insns > 0) {
		r = tally_run(c->t, c->lane, c->s, w->run_start, UINT64_MAX, w->run_insns);
		c->lane->cut = true;
	}
	c->open = c->lane->cut;
	return r;
}

static int count_all(struct counting *c, const struct flow_walk *w, uint32_t last)
{
	uint32_t at = w->first;
	int r = 0;

	while (at < last && r == 0) {
		tally_quick(c, &at, last);
		if (at == last)
			break;
		counting_reach(c, at);
		r = count_step(c, c->steps[at++], false);
	}
	counting_reach(c, last);
	return r == 0 ? count_step(c, c->steps[last], true) : r;
}

/* Where the walk's last branch, in the step at LAST, goes. */
static uint64_t last_target(const struct counting *c, const struct flow_walk *w, uint32_t last)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t n = steps_pieces(c->nodes, c->steps[last], pieces);

	while (n > 1 && pieces[n - 1].kind == STEPS_ON)
		n--;
	return pieces[n - 1].elsewhere ? steps_behind(c->nodes, c->steps, w, last, c->base)
				       : c->base + pieces[n - 1].to;
}

/* Behind the last branch. */
static int finish(struct counting *c, const struct flow_walk *w, uint32_t last)
{
	struct tally *t = c->t;
	struct tally_lane *lane = c->lane;
	bool returned = c->returned;

	flush(c);
	lane->ip = last_target(c, w, last);
	lane->branches += c->items;
	lane->n_last += c->items;
	t->tails[t->n_tails++ % ARRAY_SIZE(t->tails)] = (struct tally_tail){
		.walk = (uint32_t)(w - c->s->batch->walks), .last = last, .end = lane->n_last};
	lane->cut = false;
	lane->calls.aborts = false;
	lane->calls.last_return = returned ? lane->ip : 0;
	return returned ? pop(c, lane->ip) : 0;
}

int tally_walk(struct tally *t, struct tally_lane *lane, const struct replay_stretch *s,
	       uint32_t walk)
{
	const struct flow_walk *w = &s->batch->walks[walk];
	struct counting c = {
		.t = t,
		.lane = lane,
		.s = s,
		.cache = &t->cache,
		.nodes = flow_nodes(s->flow),
		.steps = s->batch->steps,
	};
	uint64_t before = lane->insns;
	uint32_t last;
	int r;

	if (!find_last(&c, w, &last))
		return 0;
	r = tally_cache_use(c.cache, c.nodes);
	if (r < 0)
		return r;
	steps_clock_begin(&c.clock, c.nodes, s->batch, w, w->first);
	r = set_place(&c, w->place);
	if (r == 0)
		r = count_head(&c, w);
	if (r == 0)
		r = count_all(&c, w, last);
	if (r == 0)
		r = finish(&c, w, last);
	flow_counted(s->flow, lane->insns - before, c.items);
	return r;
}
