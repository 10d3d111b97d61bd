/*
 * Walks over plain packets: hands the walk's state to the hot loop (node_walk.c), or takes what
 * other threads walked ahead (ahead.h) where the walk stands as they guessed.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/flow/flow_private.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#define STEPS	  16384u /* of a batch; an eighth where batches are small, more in an open batch */
#define TIMES	  4096u
#define WALKS	  1024u
#define FEW_STEPS 512u	/* a piece with so few steps is copied */
#define MORE	  1024u /* an open batch has room for so many steps more */
#define USER_END  (UINT64_C(1) << 47)
/* Most items of a step: three decisions, each with a node in front. */
#define STEP_ITEMS (3u * NODE_PARTS)

/* Shorter traces are not worth a thread. */
#define WORTH_BYTES ((size_t)512 << 10)

void flow_begin_steps(struct flow *f)
{
	if (!f->plain)
		return;
	f->plain->n_steps = f->plain->n_times = f->plain->n_walks = 0;
	f->plain->base = NULL;
	if (f->ahead.trace)
		ahead_return(f->ahead.trace);
}

void flow_end_steps(const struct flow *f, struct flow_batch *ret)
{
	if (!f->plain || !f->config.steps)
		return;
	ret->walks = f->plain->walks;
	ret->n_walks = f->plain->n_walks;
	ret->steps = f->plain->base;
	ret->times = f->plain->times;
}

void flow_free_plain(struct flow *f)
{
	struct flow_plain *p = f->plain;

	free(f->targets);
	f->targets = NULL;
	f->plain = NULL;
	if (!p)
		return;
	free(p->steps);
	free(p->times);
	free(p->walks);
	free(p->points);
	free(p);
}

/* With many CPUs batches are small (flow_config.batch_items), and so is all memory of a flow. */
static int make_plain(struct flow *f)
{
	struct flow *first = flow_first(f);
	struct flow_plain *p = calloc(1, sizeof(*p));
	size_t part = f->out.few_items < FLOW_ITEMS ? 8 : 1;

	if (!first->targets)
		first->targets = calloc(NODE_TARGETS, sizeof(*first->targets));
	f->plain = p;
	if (!p || !first->targets)
		return -ENOMEM;
	p->has = p->few = p->max = (struct flow_room){STEPS / part, TIMES / part, WALKS / part};
	p->steps = calloc(p->has.steps + 1, sizeof(*p->steps));
	p->times = calloc(p->has.times + 1, sizeof(*p->times));
	p->walks = calloc(p->has.walks, sizeof(*p->walks));
	p->points = calloc(p->has.times + 1, sizeof(*p->points));
	return p->steps && p->times && p->walks && p->points ? 0 : -ENOMEM;
}

/* Makes room for MORE steps, at least twice what there is. 0 or -ENOMEM. */
static int grow_steps(struct flow_plain *p, size_t more)
{
	size_t n = MAX_OF(2 * p->has.steps, p->n_steps + more);
	bool own = p->base == p->steps;

	if (p->has.steps - p->n_steps >= more)
		return 0;
	if (ARRAY_FIT(p->steps, n + 1) < 0)
		return -ENOMEM;
	if (own)
		p->base = p->steps;
	p->has.steps = n;
	return 0;
}

static int grow_times(struct flow_plain *p, size_t more)
{
	size_t n = MAX_OF(2 * p->has.times, p->n_times + more);

	if (p->has.times - p->n_times >= more)
		return 0;
	if (ARRAY_FIT(p->times, n + 1) < 0 || ARRAY_FIT(p->points, n + 1) < 0)
		return -ENOMEM;
	p->has.times = n;
	return 0;
}

/* Sets how much this batch takes. An open batch has room always: it grows in proportion to its
 * bytes.
 */
static int make_room(struct flow *f, struct flow_plain *p)
{
	int r;

	p->max = p->few;
	if (!flow_is_open(f))
		return 0;
	r = grow_steps(p, MORE);
	if (r == 0)
		r = grow_times(p, 2);
	if (r == 0)
		r = ARRAY_RESERVE(p->walks, p->has.walks, p->n_walks + 1);
	p->max = p->has;
	return r;
}

const struct nodes *flow_nodes(const struct flow *f)
{
	return f->nodes;
}

/* --- Return addresses --- */

uint64_t flow_return_address(const struct flow *f, const struct retstack_entry *e)
{
	if (e->edge == 0)
		return e->where;
	return nodes_place_address(f->nodes, (uint32_t)e->where) +
	       f->nodes->list[NODE_EDGE_NUMBER(e->edge)].offset;
}

bool flow_pop_return(struct flow *f, uint64_t *ret)
{
	struct retstack_entry e;

	if (!retstack_pop(&f->returns, &e))
		return false;
	*ret = flow_return_address(f, &e);
	return true;
}

/* --- To the hot loop --- */

/* Whether the hot loop can go on from the walk's state. */
static bool is_plain(const struct flow *f)
{
	const struct event_reader *r = &f->reader;

	/* Between two packets the stepping walk counts its blocks (loop.steps), so it must be the
	 * one to go on there. */
	return f->at.enabled && f->loop.steps == 0 && f->in.tnt_n == 0 && !f->in.have_event &&
	       !f->sync.on && f->held.n == 0 && !f->trial && !f->config.ticks &&
	       !f->config.stepping && !f->held.tick_due && f->at.guest == f->reader.guest &&
	       (!f->at.guest || f->config.guests) && f->at.mode == f->reader.mode &&
	       f->at.mode != INSN_MODE_16 && r->queue_n == 0 && r->n_waits == 0 && !r->mode_waits &&
	       !r->fup_owed && !r->back && r->c.bip_bytes == 0 && f->at.ip < USER_END &&
	       !flow_is_kernel(f, f->at.ip);
}

static const uint8_t *limit_of(const struct event_reader *r)
{
	if ((size_t)(r->c.end - r->trace) <= FLOW_MARGIN)
		return r->trace;
	return MIN_OF(r->stop, r->c.end - FLOW_MARGIN);
}

/* A number for context and mode; 0: there is no number that no other pair has. */
static uint32_t tag_of(const struct flow *f)
{
	if (f->at.context > UINT32_MAX >> 3)
		return 0;
	return (uint32_t)f->at.context << 2 | (f->at.mode + 1u);
}

/* Targets and return addresses become those of the walk's context and mode. Targets belong to all
 * flows that share code. */
static void take_context(struct flow *f, struct flow_plain *p)
{
	struct retstack *s = &f->returns;

	if (tag_of(f) == 0)
		memset(flow_first(f)->targets, 0, NODE_TARGETS * sizeof(struct node_target));
	if (p->known && p->context == f->at.context && p->mode == f->at.mode)
		return;
	/* Nodes on the stack are of one context and mode, addresses hold in all. */
	for (uint32_t i = s->bottom; p->known && i != s->top; i++) {
		struct retstack_entry *e = &s->entries[i % PT_RET_STACK];

		*e = (struct retstack_entry){.where = flow_return_address(f, e)};
	}
	p->known = true;
	p->context = f->at.context;
	p->mode = f->at.mode;
}

static void prepare(struct flow *f, struct flow_plain *p)
{
	const struct event_reader *r = &f->reader;
	size_t room = (f->out.max_items - f->out.n_items - 1) / STEP_ITEMS; /* steps */

	if (f->config.steps)
		room = p->max.steps - MIN_OF(p->n_steps, p->max.steps);
	p->walk = (struct node_walk){
		.nodes = f->nodes,
		.targets = flow_first(f)->targets,
		.tag = tag_of(f),
		.trace = r->trace,
		.pos = r->c.pos,
		.chain = r->c.pos,
		.limit = limit_of(r),
		.context = f->at.context,
		.ip_end = f->config.kernel_start != 0 ? MIN_OF(f->config.kernel_start, USER_END)
						      : USER_END,
		.skip_time = r->c.quirks == 0,
		.rule = f->rule.rule,
		.parted = f->rule.parted,
		.compile = true,
		.mode = f->at.mode,
		.last_ip = r->last_ip,
		.time = r->guest ? 0 : r->time,
		.returns = &f->returns,
		.timed = 2, /* a CYC may stand before */
		.prompt = r->prompt,
		.order = r->order,
		.steps = p->steps + p->n_steps,
		.max_steps = room,
		.points = p->points,
		.max_points = p->max.times - MIN_OF(p->n_times, p->max.times),
	};
}

/* --- What other threads walked ahead --- */

/* Has threads for all flows that share code, as many as the first flow wants. 0, -EAGAIN: they
 * would be too few; -errno. */
static int have_threads(struct flow *f)
{
	struct flow *first = flow_first(f);
	struct crew *crew = f->config.crew;
	uint32_t n = f->config.threads;

	if (first->ahead.threads)
		return 0;
	if (crew)
		n = n == 0 ? crew_idle(crew) + 1 : MIN_OF(n, crew_idle(crew) + 1);
	else if (n == 0)
		n = ahead_count_cpus();
	return n < 2 ? -EAGAIN : ahead_new(f->graph, f->nodes, n, crew, &first->ahead.threads);
}

/* Has threads walk ahead from where W stands, if that is worth it and possible. */
static void open_ahead(struct flow *f, const struct node_walk *w)
{
	bool worth = f->config.thread_bytes != 0 || (size_t)(w->limit - w->pos) >= WORTH_BYTES;
	const struct ahead_config config = {
		.trace = w->trace,
		.size = f->config.size,
		.from = (size_t)(w->pos - w->trace),
		.stop = (size_t)(f->reader.stop - w->trace),
		.errata = f->errata,
		.ip_end = w->ip_end,
		.rule = w->rule,
		.segment_bytes = f->config.thread_bytes,
	};

	f->ahead.tried = true;
	/* ahead_walk.c goes over a little less than the walk does. */
	if (!f->config.steps || f->config.threads == 1 || f->config.retstack_libipt ||
	    !w->skip_time || !worth)
		return;
	if (have_threads(f) == 0)
		(void)ahead_open(flow_first(f)->ahead.threads, &config, &f->ahead.trace);
}

static bool same_returns(const struct flow *f, const struct ahead_returns *a,
			 const struct retstack *b)
{
	if (a->n != b->top - b->bottom)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct retstack_entry *x = &a->list[i];
		const struct retstack_entry *y = &b->entries[(b->bottom + i) % PT_RET_STACK];

		/* The same node at the same place has the same address. */
		if (x->where == y->where && x->edge == y->edge)
			continue;
		if (flow_return_address(f, x) != flow_return_address(f, y))
			return false;
	}
	return true;
}

/* Whether the TSCs of P follow what W knows of time: a thread that begins at a PSB without a TSC
 * knows of no time before. */
static bool same_time(const struct ahead_piece *p, const struct node_walk *w)
{
	return p->time == w->time || !p->walk.has_tsc || p->walk.tsc_first >= w->time;
}

/* The piece that another thread made of the packets from where W begins; NULL: nothing fits, and
 * W's limit may be nearer now. */
static const struct ahead_piece *take_ahead(struct flow *f, struct node_walk *w)
{
	const struct ahead_piece *p;
	const uint8_t *limit;

	if (!f->ahead.tried)
		open_ahead(f, w);
	if (!f->ahead.trace)
		return NULL;
	p = ahead_take(f->ahead.trace, w->pos, w->context, &limit);
	w->limit = MIN_OF(w->limit, limit);
	/* A piece in which all returns are compressed holds by each rule. */
	if (p &&
	    (w->parted || (p->walk.rule != w->rule && p->walk.n_returns != p->walk.n_compressed)))
		return NULL;
	if (!p || p->context != w->context || p->mode != w->mode ||
	    p->node != NODE_EDGE_NUMBER(w->edge) || p->place != w->place ||
	    p->last_ip != w->last_ip || p->order != w->order || !same_time(p, w) ||
	    !same_returns(f, &p->before, w->returns))
		return NULL;
	f->ahead.steps += p->walk.n_steps;
	return p;
}

/* All steps of a batch are in one array: whether steps in the array BASE can be added. */
static bool may_add(struct flow_plain *p, const uint32_t *base)
{
	if (p->n_walks == 0)
		p->base = base;
	return p->base == base;
}

/* Finds room for PIECE in the batch. *RET_COPY: its steps have to be copied. *RET: there is room. 0
 * or -ENOMEM. */
static int find_room(struct flow *f, struct flow_plain *p, const struct ahead_piece *piece,
		     bool *ret_copy, bool *ret)
{
	const struct node_walk *w = &piece->walk;
	int r = 0;

	/* Questions may be asked behind PIECE within this batch, so PIECE must be part of it. */
	*ret_copy = flow_is_open(f) &&
		    (w->n_bits > 0 || (uint64_t)(w->pos - w->trace) < f->group.until);
	if (*ret_copy) {
		r = grow_steps(p, piece->walk.n_steps + 1);
		if (r == 0)
			r = grow_times(p, piece->walk.n_points);
		p->max = p->has;
		*ret = may_add(p, p->steps);
		assert(*ret);
		return r;
	}
	*ret_copy = p->n_walks > 0 && p->base == p->steps && w->n_steps <= FEW_STEPS &&
		    w->n_steps <= p->walk.max_steps;
	*ret = p->n_times + piece->walk.n_points <= p->max.times &&
	       (*ret_copy || may_add(p, ahead_steps(f->ahead.trace)));
	return 0;
}

/* Makes PIECE the walk that was made. *RET: the batch has room. 0 or -ENOMEM. */
static int take_piece(struct flow *f, struct flow_plain *p, const struct ahead_piece *piece,
		      bool *ret)
{
	const struct node_walk made = p->walk;
	bool copy;
	int r = find_room(f, p, piece, &copy, ret);

	if (r != 0 || !*ret)
		return r;
	if (!copy)
		ahead_lend(f->ahead.trace);
	p->walk = piece->walk;
	if (copy)
		memcpy(p->walk.steps = p->steps + p->n_steps, piece->walk.steps,
		       piece->walk.n_steps * sizeof(*p->steps));
	p->walk.limit = limit_of(&f->reader);
	p->walk.prompt |= made.prompt;
	p->walk.returns = made.returns;
	retstack_set(&f->returns, piece->after.list, piece->after.n);
	return 0;
}

static void end_batch(struct flow *f, bool *ret)
{
	f->out.full = f->out.n_items > 0;
	*ret = f->out.full;
}

int flow_walk_plain(struct flow *f, bool *ret)
{
	const struct ahead_piece *piece;
	struct flow_plain *p;
	uint32_t number, place;
	bool done;
	int r;

	*ret = false;
	if (!is_plain(f))
		return 0;
	if (!f->plain && make_plain(f) != 0) {
		flow_free_plain(f);
		return -ENOMEM;
	}
	p = f->plain;
	r = make_room(f, p);
	if (r != 0)
		return r;
	if (p->n_walks >= p->max.walks || p->n_times + 1 >= p->max.times) {
		end_batch(f, ret);
		return 0;
	}
	take_context(f, p);
	prepare(f, p);
	if (p->walk.pos >= p->walk.limit)
		return 0;
	nodes_lock(f->nodes, false);
	r = nodes_at(f->nodes, f->at.context, f->at.mode, f->at.ip, &number, &place);
	nodes_unlock(f->nodes);
	if (r != 0)
		return r < 0 ? r : 0;
	p->walk.place = place;
	p->walk.edge = nodes_self(f->nodes, number);
	piece = take_ahead(f, &p->walk);
	if (piece) {
		r = take_piece(f, p, piece, &done);
	} else {
		done = p->walk.max_steps > 0 && may_add(p, p->steps);
		r = done ? node_walk(&p->walk) : 0;
	}
	flow_go(f, f->at.ip); /* blocks may have been thrown away */
	if (r == 0 && !done)
		end_batch(f, ret);
	if (r != 0 || !done || p->walk.n_steps == 0)
		return r;
	flow_take_walk(f, p, place);
	*ret = true;
	return 0;
}
