/*
 * Knows which returns pop the return stack.
 *
 * The SDM's rule is that each near return pops (RETSTACK_ALL). Traces exist in which only
 * compressed returns do (RETSTACK_COMPRESSED). Both rules agree until a return that a TIP describes
 * comes while the stack is not empty: from there on the two stacks are parted, until a PSB empties
 * both. Addresses pushed behind the parting lie on top of both and are kept in f->returns, where
 * the hot loop finds it; what lies below is kept here, once for each rule. Only a compressed return
 * that goes below tells the rules apart: both are tried on the packets that follow, up to the next
 * PSB. The rule that these contradict is out. A processor has one rule, so after some such returns
 * that all tell the same the rule is known, and nothing is parted or tried any more.
 *
 * Where the packets contradict neither rule, or both, the rule goes on that more returns told so
 * far, or else the SDM's, and the return is counted.
 */
#include <string.h>

#include "decoder/flow/flow_private.h"
#include "proto/base.h"

#define TRIAL_ITEMS 512u
#define TRIAL_STEPS 4096u
#define TRIALS_MAX  1024u /* of one flow */
#define ENOUGH	    8u	  /* returns that tell the same rule */

void flow_begin_rule(struct flow *f)
{
	f->rule.rule =
		f->config.retstack_libipt ? RETSTACK_COMPRESSED : (uint8_t)f->config.retstack;
}

void flow_forget_returns(struct flow *f, bool lost)
{
	retstack_clear(&f->returns);
	f->rule.parted = false;
	f->rule.lost = lost;
}

/* --- Two stacks --- */

static void drop_oldest(struct retstack *s, uint32_t above)
{
	uint32_t n = s->top - s->bottom;

	if (n + above > PT_RET_STACK)
		s->bottom += MIN_OF(n, n + above - PT_RET_STACK);
}

/* Empties f->returns. The two stacks lose what its addresses had pushed out of the PT_RET_STACK
 * newest ones: as f->returns began with empty places, those that are not empty tell how many
 * addresses were on it at most. */
static void join(struct flow *f)
{
	uint32_t most = 0;

	while (most < PT_RET_STACK &&
	       (f->returns.entries[most].where != 0 || f->returns.entries[most].edge != 0))
		most++;
	drop_oldest(&f->rule.all, most);
	drop_oldest(&f->rule.compressed, most);
	memset(&f->returns, 0, sizeof(f->returns));
}

/* A return that is not compressed takes the newest of the addresses in f->returns, or does not. */
static void part(struct flow *f)
{
	struct retstack_entry list[PT_RET_STACK];
	uint32_t n = retstack_list(&f->returns, list);

	if (!f->rule.parted) {
		retstack_clear(&f->rule.all);
		retstack_clear(&f->rule.compressed);
		memset(&f->returns, 0, sizeof(f->returns));
	}
	join(f);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t address = flow_return_address(f, &list[i]);

		retstack_push(&f->rule.compressed, address);
		if (i + 1 < n)
			retstack_push(&f->rule.all, address);
	}
	f->rule.parted = true;
}

void flow_pass_return(struct flow *f)
{
	struct retstack_entry unused;

	if (f->rule.rule == RETSTACK_ALL) {
		(void)retstack_pop(&f->returns, &unused);
	} else if (f->rule.rule == RETSTACK_ASK && !retstack_is_empty(&f->returns)) {
		part(f);
	} else if (f->rule.rule == RETSTACK_ASK && f->rule.parted) {
		join(f);
		(void)retstack_pop(&f->rule.all, &unused);
	}
}

/* --- Which one fits --- */

struct ends {
	uint64_t from, to;
};

/* The outcome of trying a rule. */
struct outcome {
	bool known;
	bool contradiction;
	uint64_t reached; /* the offset of the last packet that the walk used, or could not use */
	uint32_t steps, n;
	struct ends branches[TRIAL_ITEMS + FLOW_STEP_ITEMS];
};

static void note_branches(const struct flow *s, struct outcome *o)
{
	for (size_t i = 0; i < s->out.n_items && o->n < ARRAY_SIZE(o->branches); i++)
		if (s->items[i].kind <= FLOW_FAR)
			o->branches[o->n++] = (struct ends){s->items[i].from, s->items[i].to};
}

static bool same(const struct ends *a, const struct ends *b)
{
	return a->from == b->from && a->to == b->to;
}

/* Goes one step. False: the walk came to a PSB, to where tracing ends, or to a fault. */
static bool step(struct flow *s, struct outcome *o)
{
	bool psb, goes_on;

	flow_load(s);
	o->reached = MAX_OF(o->reached,
			    s->in.tnt_n > 0 ? s->in.tnt_when.offset : s->in.event_when.offset);
	psb = s->in.have_event && s->in.tnt_n == 0 && s->in.event.kind == EVENT_PSB;
	if (!s->at.enabled || flow_step_on(s) != 0)
		return false;
	goes_on = !s->done && !s->out.full && s->out.n_items < TRIAL_ITEMS &&
		  !(psb && !s->in.have_event);
	if (s->sync.on || s->out.n_gaps > 0) {
		enum fault fault = s->out.n_gaps > 0 ? s->gaps[0].fault : s->sync.gap.fault;

		o->reached = MAX_OF(o->reached, s->in.event_when.offset);
		o->contradiction = (flow_is_contradiction(fault) || fault == FAULT_STATUS) &&
				   !(fault == FAULT_RET_EMPTY && s->rule.lost);
		goes_on = false;
	}
	o->steps++;
	return goes_on && o->steps < TRIAL_STEPS;
}

static void try(struct flow *f, enum retstack_rule rule, const struct retstack *stack,
		struct outcome *o)
{
	struct flow *s = flow_fork(f, TRIAL_ITEMS);

	o->known = s != NULL;
	o->contradiction = false;
	o->reached = 0;
	o->steps = o->n = 0;
	if (!s)
		return;
	s->rule.rule = (uint8_t)rule;
	s->rule.parted = false;
	s->returns = *stack;
	while (step(s, o))
		;
	note_branches(s, o);
}

/* The branches of CHOSEN that OTHER does not have at the same distance from the beginning or from
 * the end. */
static uint32_t count_other(const struct outcome *chosen, const struct outcome *other)
{
	const uint32_t n = MIN_OF(chosen->n, other->n);
	uint32_t front = 0, back = 0;

	while (front < n && same(&chosen->branches[front], &other->branches[front]))
		front++;
	while (back < n - front &&
	       same(&chosen->branches[chosen->n - 1 - back], &other->branches[other->n - 1 - back]))
		back++;
	return chosen->n - front - back;
}

/* The rule of a return that the packets do not decide. */
static enum retstack_rule likely(const struct flow *f)
{
	return f->stats.returns_compressed > f->stats.returns_all ? RETSTACK_COMPRESSED
								  : RETSTACK_ALL;
}

static enum retstack_rule choose(struct flow *f, const struct outcome *all,
				 const struct outcome *compressed)
{
	const bool tried = all->known && compressed->known;
	enum retstack_rule rule = likely(f);

	/* The other rule explains the packet that one rule contradicts. */
	if (tried && all->contradiction != compressed->contradiction &&
	    (all->contradiction ? compressed->reached >= all->reached
				: all->reached >= compressed->reached)) {
		rule = all->contradiction ? RETSTACK_COMPRESSED : RETSTACK_ALL;
		f->stats.returns_all += rule == RETSTACK_ALL;
		f->stats.returns_compressed += rule == RETSTACK_COMPRESSED;
		return rule;
	}
	if (tried && all->contradiction && compressed->contradiction &&
	    all->reached != compressed->reached)
		rule = all->reached > compressed->reached ? RETSTACK_ALL : RETSTACK_COMPRESSED;
	f->stats.returns_undecided++;
	f->stats.branches_undecided += !tried ? 1
				       : rule == RETSTACK_ALL
					       ? MAX_OF(count_other(all, compressed), 1u)
					       : MAX_OF(count_other(compressed, all), 1u);
	return rule;
}

/* Whether all returns that were decided tell one rule, and are enough. */
static void learn(struct flow *f)
{
	const struct flow_stats *s = &f->stats;

	if (MAX_OF(s->returns_all, s->returns_compressed) < ENOUGH ||
	    MIN_OF(s->returns_all, s->returns_compressed) > 0)
		return;
	f->rule.rule = (uint8_t)likely(f);
	if (f->ahead.trace)
		ahead_set_rule(f->ahead.trace, f->rule.rule);
}

/* Whether both stacks have the same newest address, or neither has one. */
static bool agree(const struct flow_rule *r)
{
	const struct retstack *a = &r->all, *c = &r->compressed;

	if (retstack_is_empty(a) || retstack_is_empty(c))
		return retstack_is_empty(a) && retstack_is_empty(c);
	return a->entries[(a->top - 1) % PT_RET_STACK].where ==
	       c->entries[(c->top - 1) % PT_RET_STACK].where;
}

/* The two stacks have different newest addresses: goes on with one of them. */
static void decide(struct flow *f)
{
	struct flow_rule *r = &f->rule;
	struct outcome all, compressed;
	enum retstack_rule rule;

	all.known = compressed.known = false;
	if (r->trials < TRIALS_MAX) {
		r->trials++;
		try(f, RETSTACK_ALL, &r->all, &all);
		try(f, RETSTACK_COMPRESSED, &r->compressed, &compressed);
	}
	rule = choose(f, &all, &compressed);
	f->returns = rule == RETSTACK_ALL ? r->all : r->compressed;
	r->parted = false;
	learn(f);
	flow_go(f, f->at.ip); /* the trials may have thrown blocks away */
}

bool flow_decide_return(struct flow *f)
{
	struct flow_rule *r = &f->rule;
	struct retstack_entry e;

	if (!r->parted || f->in.tnt_n == 0 || !retstack_is_empty(&f->returns))
		return false;
	join(f);
	if (agree(r)) {
		/* The address that is popped next. */
		if (retstack_pop(&r->all, &e))
			retstack_push(&f->returns, e.where);
		(void)retstack_pop(&r->compressed, &e);
		return false;
	}
	/* A trial ends there: what it is about is something else. */
	if (f->trial)
		f->out.full = true;
	else
		decide(f);
	return true;
}
