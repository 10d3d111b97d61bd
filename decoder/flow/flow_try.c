/*
 * Tries the code of a context on packets, where time alone does not say which thread ran: a second
 * walk over the same bytes, whose items nobody sees.
 */
#include <string.h>

#include "decoder/flow/flow_private.h"
#include "proto/base.h"

struct flow *flow_scratch(struct flow *f)
{
	if (!f->scratch)
		f->scratch = flow_alloc(FLOW_TRIAL_ITEMS, false);
	return f->scratch;
}

struct flow *flow_fork(struct flow *f, uint32_t items)
{
	struct flow *s = flow_scratch(f);

	if (!s)
		return NULL;
	memcpy(s, f, offsetof(struct flow, versions));
	s->timing = f->timing;
	s->nodes = f->nodes;
	s->config.context = NULL;
	s->config.marks = s->config.ticks = false;
	s->config.switch_ip = 0;
	s->trial = true;
	s->out.full = s->out.later = s->ask.changes = s->ask.asked = s->ask.splits = s->group.open =
		false;
	s->held.tick = s->held.tick_due = false;
	s->held.n = 0;
	s->out.n_items = s->out.n_gaps = s->out.n_marks = 0;
	s->out.max_items = items + FLOW_STEP_ITEMS;
	flow_go(s, f->at.ip);
	return s;
}

/* The walk stands before its first instruction. */
static void prepare(struct flow *s, const struct flow *f, const struct event_reader *reader,
		    uint64_t ip, uint64_t context)
{
	const struct timing_config no_time = {.mtc_period = UINT32_MAX};

	memset(s, 0, offsetof(struct flow, versions));
	s->config = f->config;
	s->config.context = NULL;
	s->config.marks = s->config.ticks = false;
	s->trial = true;
	s->errata = f->errata;
	s->graph = f->graph;
	s->nodes = f->nodes;
	s->rule.rule = f->rule.rule;
	s->reader = *reader;
	s->out.max_items = FLOW_TRIAL_ITEMS;
	s->started = s->at.resumed = s->guests_known = true;
	s->ask.asked = true;
	s->ask.context = context;
	s->in.have_event = true;
	s->in.event = (struct event){.kind = EVENT_ENABLE,
				     .has_to = true,
				     .to = ip,
				     .mode = reader->mode,
				     .in_tx = reader->in_tx};
	timing_init(&s->timing, s->config.trace, s->config.size, s->config.size, &no_time);
}

static int walk(struct flow *s)
{
	while (!s->done && !s->out.full && s->out.n_items + FLOW_STEP_ITEMS <= s->out.max_items) {
		int r = 0;

		if (s->out.n_items > 0 && !s->at.enabled)
			break;
		flow_load(s);
		if (s->sync.on)
			flow_step_sync(s);
		else if (s->at.enabled)
			r = flow_step_on(s);
		else
			flow_step_off(s);
		if (r != 0)
			return r;
	}
	return 0;
}

static uint64_t mix(uint64_t hash, uint64_t v)
{
	return (hash ^ v) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
}

static uint64_t hash_items(const struct flow *s)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < s->out.n_items; i++) {
		const struct flow_item *item = &s->items[i];

		hash = mix(mix(mix(hash, item->kind), item->insns), item->from);
		hash = mix(hash, item->to);
	}
	return hash;
}

int flow_try(struct flow *f, const struct event_reader *reader, uint64_t ip, uint64_t context,
	     struct flow_trial *ret)
{
	struct flow *s = flow_scratch(f);
	const struct flow_item *last;
	int r;

	*ret = (struct flow_trial){0};
	if (!s)
		return -ENOMEM;
	prepare(s, f, reader, ip, context);
	r = walk(s);
	if (r != 0 || s->out.n_items == 0)
		return r;
	last = &s->items[s->out.n_items - 1];
	ret->whole = !s->at.enabled || s->done;
	ret->kind = last->kind;
	ret->from = last->from;
	ret->doubt = s->at.doubt;
	ret->inside = last->insns > 0 ||
		      (s->out.n_items > 1 && s->items[s->out.n_items - 2].kind == FLOW_COND);
	ret->hash = hash_items(s);
	if (last->kind == FLOW_GAP)
		ret->fault = s->gaps[last->gap].fault;
	return 0;
}
