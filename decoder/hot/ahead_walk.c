/*
 * Walks ahead over one segment. The walk starts with what a PSB says, goes over plain packets, and
 * guesses what other packets do: that a system call comes back in the same code with the same
 * return addresses, and so on. Where there is a doubt it goes on at the next PSB. A wrong guess
 * costs time and nothing else.
 */
#include <string.h>

#include "decoder/hot/hot_private.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"

#define MARGIN 16u /* as of flow_nodes.c */
#define GO_MAX 64u
#define MORE   64u /* bytes by which a piece is made longer at a time, to end with a packet */

enum state { STATE_OFF, STATE_ON, STATE_LOST };

/* --- Where execution stands --- */

static bool compile(struct ahead_walker *w, uint32_t number)
{
	int r;

	nodes_lock(w->nodes, true);
	r = nodes_compile(w->nodes, number, w->place);
	nodes_unlock(w->nodes);
	return r == 0;
}

/* The return addresses changed, so their list does not hold any more. */
static void forget_list(struct ahead_walker *w)
{
	w->listed.n = PT_RET_STACK + 1;
}

/* Nodes on the return stack become addresses: nodes are of one mode, addresses hold in all modes.
 */
static void forget_nodes(struct ahead_walker *w)
{
	struct retstack *s = &w->returns;

	for (uint32_t i = s->bottom; i != s->top; i++) {
		struct retstack_entry *e = &s->entries[i % PT_RET_STACK];

		if (e->edge == 0)
			continue;
		e->where = nodes_place_address(w->nodes, (uint32_t)e->where) +
			   w->nodes->list[NODE_EDGE_NUMBER(e->edge)].offset;
		e->edge = 0;
	}
	forget_list(w);
}

static struct ahead_returns list_returns(struct ahead_walker *w, struct ahead_segment *s)
{
	struct retstack_entry *list = s->returns + s->n_returns;

	if (w->listed.n > PT_RET_STACK) {
		w->listed = (struct ahead_returns){list, retstack_list(&w->returns, list)};
		s->n_returns += w->listed.n;
	}
	return w->listed;
}

static void push_call(struct ahead_walker *w, uint32_t number)
{
	struct retstack *s = &w->returns;

	s->entries[s->top % PT_RET_STACK] =
		(struct retstack_entry){nodes_self(w->nodes, number), w->place};
	s->top++;
	if (s->top - s->bottom > PT_RET_STACK)
		s->bottom = s->top - PT_RET_STACK;
	forget_list(w);
}

/* Whether the call in the node comes before the instruction at OFFSET. *RET: the instruction is in
 * the node. */
static bool calls_before(const struct node_info *info, uint64_t offset, bool *ret)
{
	bool call = false;

	*ret = false;
	for (uint32_t i = 0; i < info->n_parts && !*ret; i++) {
		const struct node_part *p = &info->parts[i];

		*ret = offset >= p->start && offset <= p->last;
		call |= !*ret && p->kind == FLOW_CALL && (p->flags & FLOW_ZERO_LENGTH) == 0;
	}
	return call;
}

/* Goes on up to the address TO, or to the next branch that the trace decides. False: there is a
 * doubt.
 */
static bool go_up_to(struct ahead_walker *w, uint64_t to)
{
	uint64_t offset = to - nodes_place_address(w->nodes, w->place);

	for (unsigned int i = 0; i < GO_MAX; i++) {
		const struct node *node = &w->nodes->list[w->node];
		bool there;

		if (node->offset == offset)
			return true;
		if (!compile(w, w->node))
			return false;
		/* An edge says NODE_STOP also for a node that only leads to one. */
		if (node->info->kind == NODE_STOP)
			return true;
		if (calls_before(node->info, offset, &there))
			push_call(w, node->call);
		if (there || node->info->kind != NODE_GO)
			return true;
		w->node = NODE_EDGE_NUMBER(__atomic_load_n(&node->link[0], __ATOMIC_ACQUIRE));
	}
	return false;
}

static enum state enter(struct ahead_walker *w, const struct ahead_config *c, uint64_t ip)
{
	int r;

	if (ip >= c->ip_end || w->reader.mode == INSN_MODE_16)
		return STATE_LOST;
	if (w->mode != w->reader.mode) {
		memset(w->targets, 0, sizeof(w->targets));
		forget_nodes(w);
	}
	w->mode = w->reader.mode;
	nodes_lock(w->nodes, true);
	r = nodes_at(w->nodes, w->context, w->mode, ip, &w->node, &w->place);
	nodes_unlock(w->nodes);
	return r == 0 ? STATE_ON : STATE_LOST;
}

/* --- Plain packets --- */

static struct node_walk begin(struct ahead_walker *w, const struct ahead_config *c,
			      struct ahead_segment *s, const uint8_t *limit)
{
	const struct event_reader *r = &w->reader;

	return (struct node_walk){
		.nodes = w->nodes,
		.targets = w->targets,
		.trace = c->trace,
		.pos = r->c.pos,
		.chain = r->c.pos,
		.limit = MIN_OF(limit, r->c.pos + AHEAD_BYTES),
		.context = w->context,
		.ip_end = c->ip_end,
		.skip_time = true,
		.rule = s->rule,
		.compile = true,
		.known = true,
		.mode = w->mode,
		.edge = nodes_self(w->nodes, w->node),
		.place = w->place,
		.last_ip = r->last_ip,
		.time = r->guest ? 0 : r->time,
		.returns = &w->returns,
		.timed = 2,
		.order = r->order,
		.steps = s->steps + s->n_steps,
		.max_steps = AHEAD_STEPS - s->n_steps,
		.points = s->points + s->n_points,
		.max_points = MIN_OF(AHEAD_PIECE_POINTS, AHEAD_POINTS - s->n_points),
	};
}

static bool has_room(const struct ahead_segment *s)
{
	return s->n < AHEAD_PIECES && s->n_steps + AHEAD_PIECE_STEPS <= AHEAD_STEPS &&
	       s->n_points + AHEAD_PIECE_POINTS <= AHEAD_POINTS &&
	       s->n_returns + 2 * PT_RET_STACK <= AHEAD_RETURNS;
}

/* Makes one piece. STATE_OFF: a packet that is not plain stands in front. */
static enum state walk_piece(struct ahead_walker *w, const struct ahead_config *c,
			     struct ahead_segment *s, const uint8_t *limit)
{
	struct ahead_piece *p = &s->pieces[s->n];
	struct node_walk walk = begin(w, c, s, limit);
	int r;

	p->pos = walk.pos;
	p->context = w->context;
	p->last_ip = walk.last_ip;
	p->time = walk.time;
	p->node = w->node;
	p->place = w->place;
	p->mode = w->mode;
	p->order = walk.order;
	p->before = list_returns(w, s);
	__atomic_store_n(&s->at, walk.pos, __ATOMIC_RELEASE);
	r = node_walk(&walk);
	/* A piece ends with a packet. */
	while (r == 0 && walk.n_bits > 0 && walk.n_steps < walk.max_steps &&
	       walk.pos >= walk.limit && walk.limit < limit) {
		walk.limit = MIN_OF(limit, walk.limit + MORE);
		r = node_walk(&walk);
	}
	/* Also where the walk ended for want of code, the steps up to there are kept. */
	if (walk.n_steps > 0) {
		forget_list(w);
		p->walk = walk;
		p->after = list_returns(w, s);
		s->n_steps += walk.n_steps;
		s->n_points += walk.n_points;
		__atomic_store_n(&s->n, s->n + 1, __ATOMIC_RELEASE);
	}
	w->node = NODE_EDGE_NUMBER(walk.edge);
	w->place = walk.place;
	w->reader.c.pos = walk.pos;
	w->reader.last_ip = walk.last_ip;
	w->reader.order = walk.order;
	if (!w->reader.guest)
		w->reader.time = walk.time;
	if (r != 0 || walk.n_bits > 0)
		return STATE_LOST;
	return walk.pos >= walk.limit || walk.n_points >= walk.max_points ? STATE_ON : STATE_OFF;
}

static enum state walk_plain(struct ahead_walker *w, const struct ahead_config *c,
			     struct ahead_segment *s)
{
	const uint8_t *limit = MIN_OF(s->end, c->trace + c->size - MARGIN);
	enum state state = STATE_ON;

	while (state == STATE_ON && w->reader.c.pos < limit) {
		if (!has_room(s) || __atomic_load_n(&s->dropped, __ATOMIC_RELAXED))
			return STATE_LOST;
		state = walk_piece(w, c, s, limit);
	}
	return state == STATE_LOST ? STATE_LOST : STATE_ON;
}

/* --- Other packets --- */

static enum state enter_from(struct ahead_walker *w, const struct ahead_config *c,
			     const struct event *e, enum state state)
{
	if (!e->has_from || state != STATE_ON || !go_up_to(w, e->from))
		return STATE_LOST;
	return enter(w, c, e->from);
}

static enum state take_event(struct ahead_walker *w, const struct ahead_config *c,
			     const struct event *e, enum state state)
{
	switch (e->kind) {
	case EVENT_NONE: return state;
	case EVENT_MARK:
		if (state != STATE_ON || e->bind == EVENT_NOW)
			return state;
		return e->bind == EVENT_BEFORE ? enter_from(w, c, e, state) : STATE_LOST;
	case EVENT_PSB:
		retstack_clear(&w->returns);
		forget_list(w);
		if (e->clash)
			return STATE_LOST;
		return e->has_from ? enter(w, c, e->from) : STATE_OFF;
	case EVENT_ENABLE: return state == STATE_OFF && e->has_to ? enter(w, c, e->to) : STATE_LOST;
	case EVENT_DISABLE:
	case EVENT_ASYNC_OFF:
		if (state != STATE_ON)
			return state;
		return go_up_to(w, e->kind == EVENT_ASYNC_OFF ? e->from : UINT64_MAX) ? STATE_OFF
										      : STATE_LOST;
	case EVENT_ASYNC:
		if (!e->has_to || enter_from(w, c, e, state) != STATE_ON)
			return STATE_LOST;
		return enter(w, c, e->to);
	case EVENT_STATUS:
		if (state == STATE_OFF)
			return STATE_OFF;
		return e->mode == w->mode ? enter_from(w, c, e, state) : STATE_LOST;
	default: return STATE_LOST;
	}
}

void ahead_run(struct ahead_walker *w, const struct ahead_config *config, struct ahead_segment *s)
{
	const struct event_reader *r = &w->reader;
	const uint8_t *psb = s->begin, *trace = config->trace;

	if (!w->known || w->context != s->context)
		memset(w->targets, 0, sizeof(w->targets));
	w->context = s->context;
	w->known = true;
	for (; psb && has_room(s); psb = sync_find(w->reader.c.pos, s->end)) {
		enum state state = STATE_OFF;

		event_reader_init(&w->reader, trace, config->size, (size_t)(psb - trace),
				  (size_t)(s->end - trace), config->errata);
		retstack_clear(&w->returns);
		forget_list(w);
		while (state != STATE_LOST && has_room(s)) {
			struct event e;

			if (state == STATE_ON && r->queue_n == 0 && r->n_waits == 0 &&
			    !r->mode_waits && !r->fup_owed && !r->back && r->c.bip_bytes == 0 &&
			    !r->guest)
				state = walk_plain(w, config, s);
			if (state == STATE_LOST)
				break;
			if (w->reader.c.pos >= s->end)
				return;
			event_next(&w->reader, &e);
			state = take_event(w, config, &e, state);
		}
		if (w->reader.c.pos <= psb)
			return;
	}
}
