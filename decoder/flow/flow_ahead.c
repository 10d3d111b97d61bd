/*
 * What other threads walked ahead (ahead.h), taken where the walk stands as they guessed. Called by
 * flow_nodes.c. Part of the walk (flow_private.h).
 */
#include "decoder/flow/flow_private.h"
#include "proto/base.h"

/* Shorter traces are not worth a thread. */
#define WORTH_BYTES ((size_t)512 << 10)

/* What is plain for ahead_walk.c is a little less than for the walk. */
static bool is_wanted(const struct flow *f, const struct node_walk *w)
{
	size_t left = (size_t)(w->limit - w->pos);

	return f->config.steps && f->config.threads != 1 && !f->config.retstack_libipt &&
	       w->skip_time && (f->config.thread_bytes != 0 || left >= WORTH_BYTES);
}

static uint32_t count_threads(const struct flow *f)
{
	uint32_t n = f->config.crew != NULL ? crew_idle(f->config.crew) + 1 : ahead_count_cpus();

	if (f->config.threads == 0)
		return n;
	return f->config.crew != NULL ? MIN_OF(n, f->config.threads) : f->config.threads;
}

/* Those of all that share, as many as the first one of them wants. */
static int have_threads(struct flow *f)
{
	struct flow *owner = flow_owner(f);
	uint32_t n;

	if (owner->ahead != NULL)
		return 0;
	n = count_threads(f);
	return n < 2 ? -EAGAIN : ahead_new(f->graph, f->nodes, n, f->config.crew, &owner->ahead);
}

/* Without threads it goes, too. */
static void open(struct flow *f, const struct node_walk *w)
{
	const struct ahead_config config = {
		.trace = w->trace,
		.size = f->config.size,
		.from = (size_t)(w->pos - w->trace),
		.stop = (size_t)(f->reader.stop - w->trace),
		.errata = f->errata,
		.ip_end = w->ip_end,
		.segment_bytes = f->config.thread_bytes,
	};

	f->ahead_tried = true;
	if (is_wanted(f, w) && have_threads(f) == 0)
		(void)ahead_open(flow_owner(f)->ahead, &config, &f->ahead_trace);
}

static bool same_returns(const struct flow *f, const struct ahead_returns *a,
			 const struct retstack *b)
{
	if (a->n != b->top - b->bottom)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct retstack_entry *x = &a->list[i];
		const struct retstack_entry *y = &b->entries[(b->bottom + i) % PT_RET_STACK];

		/* The same place of a node needs no look at where that is. */
		if (x->where == y->where && x->edge == y->edge)
			continue;
		if (flow_return_address(f, x) != flow_return_address(f, y))
			return false;
	}
	return true;
}

const struct ahead_piece *flow_ahead(struct flow *f, struct node_walk *w)
{
	const struct ahead_piece *p;
	const uint8_t *limit;

	if (!f->ahead_tried)
		open(f, w);
	if (f->ahead_trace == NULL)
		return NULL;
	p = ahead_take(f->ahead_trace, w->pos, w->context, &limit);
	w->limit = MIN_OF(w->limit, limit);
	if (p == NULL || p->context != w->context || p->mode != w->mode ||
	    p->node != NODE_EDGE_NUMBER(w->edge) || p->place != w->place ||
	    p->last_ip != w->last_ip || p->order != w->order ||
	    !same_returns(f, &p->before, w->returns))
		return NULL;
	f->ahead_steps += p->walk.n_steps;
	return p;
}
