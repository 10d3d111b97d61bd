/*
 * Goes over plain packets by nodes: the hot loop.
 *
 * Struct hot holds all that changes. It never leaves this file's inline functions, so that the
 * compiler keeps it in registers. node_rare.c does what is rare (new code, targets that were not
 * met before, packets of time), on struct node_walk; struct hot is copied to and from there.
 *
 * Each turn of the loop uses a decision, a packet, or one of a bounded number of nodes that need
 * neither (node_make.c, GO_MAX).
 */
#include "decoder/hot/node_walk.h"

#include <assert.h>
#include <string.h>

#include "decoder/hot/hot_private.h"
#include "decoder/packet/event_read.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#define HOT	  __attribute__((always_inline)) static inline
#define SHORT_TNT 6u  /* decisions of a packet of one byte */
#define DECISIONS 64u /* most decisions in hand */

struct hot {
	const struct node *list;
	const struct node_table *tables;
	const uint8_t *pos;
	uint64_t bits, edge;
	uint32_t n, place, top;
	uint32_t *step, *step_end;
	uint64_t *from; /* the link or table entry that EDGE was taken from; NULL: none */
};

HOT void load(struct hot *h, const struct node_walk *w)
{
	h->list = w->nodes->list;
	h->tables = w->nodes->tables;
	h->pos = w->pos;
	h->bits = w->bits;
	h->n = w->n_bits;
	h->edge = w->edge;
	h->place = w->place;
	h->top = w->returns->top;
	h->step = w->steps + w->n_steps;
	h->step_end = w->steps + w->max_steps;
}

HOT void save(const struct hot *h, struct node_walk *w)
{
	w->pos = h->pos;
	w->bits = h->bits;
	w->n_bits = h->n;
	w->edge = h->edge;
	w->place = h->place;
	w->returns->top = h->top;
	w->n_steps = (size_t)(h->step - w->steps);
}

/* --- Decisions --- */

HOT void put_step(struct hot *h, uint32_t number, uint32_t code)
{
	*h->step++ = number << NODE_STEP_BITS | code;
}

HOT void enter_place(struct hot *h, uint32_t place)
{
	if (h->place == place)
		return;
	h->place = place;
	put_step(h, place, NODE_STEP_PLACE);
}

HOT void push(struct hot *h, struct node_walk *w, uint32_t number)
{
	w->returns->entries[h->top % PT_RET_STACK] = (struct retstack_entry){
		__atomic_load_n(&h->list[number].self, __ATOMIC_ACQUIRE), h->place};
	h->top++;
	if (h->top - w->returns->bottom > PT_RET_STACK)
		w->returns->bottom = h->top - PT_RET_STACK;
}

HOT bool is_short_tnt(uint8_t byte)
{
	return (byte & 1) == 0 && byte > PT_OPC_EXT;
}

HOT bool is_tnt(const uint8_t *pos)
{
	return is_short_tnt(*pos) || (*pos == PT_OPC_EXT && pos[1] == PT_EXT_TNT64);
}

HOT void add_decisions(struct hot *h, struct node_walk *w, uint64_t payload, uint32_t n)
{
	/* The stop bit is shifted out. */
	h->bits |= (payload << 1 << (63 - n)) >> h->n;
	h->n += n;
	w->last_bits = n;
	w->last = h->pos;
	w->packets++;
}

/* Takes a packet of up to 47 decisions. False: the packet is another one, or there is no room. */
HOT bool fill_long(struct hot *h, struct node_walk *w)
{
	uint64_t payload;
	uint32_t n;

	memcpy(&payload, h->pos, sizeof(payload));
	if ((payload & 0xffff) != (PT_OPC_EXT | PT_EXT_TNT64 << 8) || payload >> 17 == 0)
		return false;
	payload >>= 16;
	n = 63u - (uint32_t)__builtin_clzll(payload);
	if (h->n + n > 64)
		return false;
	add_decisions(h, w, payload, n);
	h->pos += 8;
	return true;
}

/* Takes the next packets of decisions, as many as there is room for. */
HOT void fill(struct hot *h, struct node_walk *w)
{
	while (h->pos < w->limit) {
		uint32_t byte = *h->pos;

		if (byte == PT_OPC_EXT) {
			if (!fill_long(h, w))
				return;
			continue;
		}
		if (!is_short_tnt((uint8_t)byte) || h->n > 64 - SHORT_TNT)
			return;
		add_decisions(h, w, byte >> 1, 30u - (uint32_t)__builtin_clz(byte));
		h->pos++;
	}
}

/* In front of packets of decisions or a target: notes that packets of time stand before. LEFT: what
 * is left to be noted for the packet behind. */
HOT void note_time(struct hot *h, struct node_walk *w, uint8_t left)
{
	uint64_t offset = (uint64_t)(h->pos - w->trace);

	if (__builtin_expect(w->timed == 0, 1))
		return;
	w->timed = left;
	/* A node that needs no decision may have noted the same packet. */
	if (w->n_points > 0 && w->points[w->n_points - 1].offset == offset)
		return;
	w->points[w->n_points++] = (struct node_point){(uint32_t)(h->step - w->steps), offset};
}

/* Takes decisions of new packets. False: none are in hand. */
HOT bool refill(struct hot *h, struct node_walk *w)
{
	const uint8_t *begin = h->pos;

	if (h->n == 0) {
		w->used = w->last;
		w->chain = begin;
		if (begin < w->limit && is_tnt(begin))
			note_time(h, w, 0);
	}
	fill(h, w);
	if (h->pos == begin)
		return h->n > 0;
	w->prompt |= w->order == ORDER_PARTIAL_TIP;
	w->order = w->last_bits == PT_TNT8_MAX || w->last_bits == PT_TNT64_MAX ? ORDER_FULL
									       : ORDER_PARTIAL;
	return true;
}

/* --- Targets --- */

HOT bool is_tip(const struct hot *h, const struct node_walk *w)
{
	return h->pos < w->limit && (*h->pos & PT_OPC_IP_MASK) == PT_OPC_TIP;
}

/* The bits that an IP packet keeps of the last IP and takes of its payload, by enum pt_ipbytes. An
 * address of 48 bits whose highest bit is set is left to the stepping walk, extended or not. */
static const struct {
	uint64_t keep, take;
	size_t size; /* 0: the packet has no IP, or an odd one */
} ip_forms[8] = {
	[PT_IPB_UPDATE16] = {~UINT64_C(0xffff), UINT64_C(0xffff), 3},
	[PT_IPB_UPDATE32] = {~UINT64_C(0xffffffff), UINT64_C(0xffffffff), 5},
	[PT_IPB_SEXT48] = {0, UINT64_C(0xffffffffffff), 7},
	[PT_IPB_UPDATE48] = {~UINT64_C(0xffffffffffff), UINT64_C(0xffffffffffff), 7},
	[PT_IPB_FULL] = {0, UINT64_MAX, 9},
};

/* The IP of the TIP in front. False: the TIP has no IP, or an odd one. */
HOT bool read_tip(const struct hot *h, const struct node_walk *w, uint64_t *ret, size_t *ret_size)
{
	uint32_t form = *h->pos >> 5;
	uint64_t raw;

	memcpy(&raw, h->pos + 1, sizeof(raw));
	*ret = (w->last_ip & ip_forms[form].keep) | (raw & ip_forms[form].take);
	*ret_size = ip_forms[form].size;
	return *ret_size != 0;
}

HOT struct node_target *target_slot(const struct node_walk *w, uint64_t ip)
{
	return &w->targets[(ip ^ ip >> 12) & (NODE_TARGETS - 1)];
}

/* Finds the node at TO. 0, NODES_NONE, -ENOMEM. */
HOT int locate(struct hot *h, struct node_walk *w, uint64_t to, const struct node_target **ret)
{
	struct node_target *t = target_slot(w, to);
	int r = 0;

	if (__builtin_expect(t->ip != to || t->tag != w->tag || to == 0, 0)) {
		save(h, w);
		t->ip = 0;
		r = node_walk_target(w, to, t);
	}
	*ret = t;
	return r;
}

HOT void go_to(struct hot *h, const struct node_target *t)
{
	enter_place(h, t->place);
	h->edge = t->edge;
	h->from = NULL;
}

/* Does what the call in the node does to the return stack, and the branch at its end. */
HOT void make_calls(struct hot *h, struct node_walk *w, uint32_t number, uint32_t kind)
{
	const struct node *node = &h->list[number];

	if (kind == NODE_CALLS) {
		push(h, w, node->call);
		kind = node->info->kind;
	}
	if (kind == NODE_CALL_IND) {
		push(h, w, node->return_node);
	} else if (kind == NODE_RET) {
		w->n_returns++;
		if (w->rule == RETSTACK_ALL && h->top != w->returns->bottom)
			h->top--;
	}
}

/* The branch at the node's end goes where the TIP in front says. 0; NODES_NONE: not by the hot
 * loop; -ENOMEM. */
HOT int take_tip(struct hot *h, struct node_walk *w)
{
	uint32_t number = NODE_EDGE_NUMBER(h->edge), kind = NODE_EDGE_KIND(h->edge);
	const struct node_target *target;
	uint64_t to;
	size_t size;
	int r;

	if (!read_tip(h, w, &to, &size))
		return NODES_NONE;
	r = locate(h, w, to, &target);
	if (r != 0)
		return r;
	/* A CYC in front of the TIP says something that does not hold for the next packet. */
	note_time(h, w, w->timed == 2);
	make_calls(h, w, number, kind);
	put_step(h, number, NODE_STEP_TARGET);
	go_to(h, target);
	w->last = w->tip = h->pos;
	w->last_ip = to;
	w->packets++;
	h->pos += size;
	if (w->order == ORDER_FULL)
		w->order = ORDER_FULL_TIP;
	else if (w->order == ORDER_PARTIAL)
		w->order = ORDER_PARTIAL_TIP;
	return 0;
}

/* A return, with a decision in hand, is compressed. 0; NODES_NONE: there is a doubt; -ENOMEM. */
HOT int take_return(struct hot *h, struct node_walk *w)
{
	uint32_t number = NODE_EDGE_NUMBER(h->edge);
	const struct retstack_entry *e = &w->returns->entries[(h->top - 1) % PT_RET_STACK];
	const struct node_target *target;
	int r;

	if (h->bits >> 63 == 0 || h->top == w->returns->bottom)
		return NODES_NONE;
	if (__builtin_expect(e->edge != 0, 1)) {
		put_step(h, number, 3);
		enter_place(h, (uint32_t)e->where);
		h->edge = e->edge;
		h->from = NULL;
	} else {
		r = locate(h, w, e->where, &target);
		if (r != 0)
			return r;
		put_step(h, number, 3);
		go_to(h, target);
	}
	h->top--;
	h->bits <<= 1;
	h->n--;
	w->n_returns++;
	w->n_compressed++;
	return 0;
}

/* --- The loop --- */

HOT void follow(struct hot *h, struct node_walk *w, uint64_t edge, uint64_t *from)
{
	if (__builtin_expect(NODE_EDGE_CALL(edge) != 0, 0))
		push(h, w, NODE_EDGE_CALL(edge));
	h->edge = edge;
	h->from = from;
}

HOT bool is_cond(uint64_t edge)
{
	return (edge & 7u << 2) == NODE_COND << 2;
}

/* Whether EDGE is known, and takes no more decisions than are in hand. */
HOT bool leads_on(const struct hot *h, uint64_t edge)
{
	return ((uint32_t)edge & 3) - 1u < h->n;
}

/* Goes on by three decisions at a time, or by as many as there are up to another kind of branch.
 * Bits behind the last decision in hand are zero and do not count. False: the table has no such
 * edge. */
HOT bool strides(struct hot *h, struct node_walk *w)
{
	do {
		/* The number is left where it stands in the edge. */
		uint64_t number = (uint32_t)h->edge & ~31u, taken = h->bits >> (64 - NODE_STRIDE);
		const uint64_t *edges =
			(const uint64_t *)(const void *)((const char *)h->tables +
							 number * (sizeof(*h->tables) / 32));
		uint64_t edge = __atomic_load_n(&edges[taken], __ATOMIC_ACQUIRE);
		uint32_t n = (uint32_t)edge & 3;

		if (__builtin_expect(!leads_on(h, edge), 0))
			return false;
		*h->step++ = (uint32_t)(number >> 1) | (uint32_t)(8 | taken) >> (NODE_STRIDE - n);
		h->bits <<= n;
		h->n -= n;
		follow(h, w, edge, (uint64_t *)(uintptr_t)&edges[taken]);
	} while (is_cond(h->edge) && h->n >= NODE_STRIDE && h->step < h->step_end);
	return true;
}

HOT void single(struct hot *h, struct node_walk *w)
{
	uint32_t number = NODE_EDGE_NUMBER(h->edge), taken = (uint32_t)(h->bits >> 63);
	const uint64_t *from = &h->list[number].link[taken];

	put_step(h, number, 2u | taken);
	h->bits <<= 1;
	h->n--;
	follow(h, w, __atomic_load_n(from, __ATOMIC_ACQUIRE), (uint64_t *)(uintptr_t)from);
}

/* Makes the edge that was missing, or else goes on by one decision alone. */
HOT int condition(struct hot *h, struct node_walk *w)
{
	uint64_t *edge = &w->nodes->tables[NODE_EDGE_NUMBER(h->edge)].edges[h->bits >> 61];
	int r = 0;

	if ((__atomic_load_n(edge, __ATOMIC_ACQUIRE) & 3) == 0) {
		save(h, w);
		r = node_walk_edge(w, edge);
	}
	if (r == 0 && !leads_on(h, __atomic_load_n(edge, __ATOMIC_ACQUIRE)))
		single(h, w);
	return r;
}

HOT int conditions(struct hot *h, struct node_walk *w)
{
	if (h->n < NODE_STRIDE && !refill(h, w))
		return NODES_NONE;
	return __builtin_expect(strides(h, w), 1) ? 0 : condition(h, w);
}

/* The edge says that the node in front is not compiled: compiles it, unless that happened since. */
HOT int renew(struct hot *h, struct node_walk *w)
{
	uint64_t old;
	int r;

	save(h, w);
	r = node_walk_make(w);
	if (r != 0)
		return r;
	h->edge = w->edge;
	if (h->from) {
		old = __atomic_load_n(h->from, __ATOMIC_ACQUIRE);
		__atomic_store_n(h->from, old | (h->edge & 7u << 2), __ATOMIC_RELEASE);
	}
	return 0;
}

/* A node that needs no decision. It was executed if another decision or target follows. */
HOT int go_on(struct hot *h, struct node_walk *w)
{
	uint32_t number = NODE_EDGE_NUMBER(h->edge);
	uint64_t to, *link;
	size_t size;

	if (h->n == 0 && !refill(h, w) && !(is_tip(h, w) && read_tip(h, w, &to, &size)))
		return NODES_NONE;
	if (h->n == 0)
		note_time(h, w, w->timed & 2);
	put_step(h, number, NODE_STEP_TARGET);
	link = (uint64_t *)(uintptr_t)&h->list[number].link[0];
	follow(h, w, __atomic_load_n(link, __ATOMIC_ACQUIRE), link);
	return 0;
}

/* Whether the TIP in front may be deferred: a deferred TIP stands behind the packet of the
 * decisions in hand. Where a time begins with the first of these, which comes behind the target,
 * only the stepping walk can tell the two apart. */
HOT bool may_be_deferred(const struct hot *h, const struct node_walk *w)
{
	if (h->n > w->last_bits || w->timed != 0)
		return false;
	return h->n < w->last_bits || w->n_points == 0 ||
	       w->points[w->n_points - 1].offset != (uint64_t)(w->last - w->trace);
}

/* The branch at the end of the node needs a target. */
HOT int indirect(struct hot *h, struct node_walk *w)
{
	if (h->n == 0 && !is_tip(h, w))
		refill(h, w);
	if (!is_tip(h, w) || (h->n > 0 && !may_be_deferred(h, w)))
		return NODES_NONE;
	return take_tip(h, w);
}

/* A return that is not compressed is the stepping walk's where the rules of the return stack
 * differ. */
HOT bool is_disputed(const struct hot *h, const struct node_walk *w)
{
	return w->rule == RETSTACK_ASK && (w->parted || h->top != w->returns->bottom);
}

HOT int go_back(struct hot *h, struct node_walk *w)
{
	if (h->n > 0 || refill(h, w))
		return take_return(h, w);
	return is_disputed(h, w) ? NODES_NONE : indirect(h, w);
}

/* A return behind a call in the same node goes where that call says. */
HOT int calls(struct hot *h, struct node_walk *w)
{
	const struct node *node = &h->list[NODE_EDGE_NUMBER(h->edge)];

	if (node->info->kind != NODE_RET)
		return indirect(h, w);
	if (h->n == 0 && !refill(h, w))
		return w->rule == RETSTACK_ASK ? NODES_NONE : indirect(h, w);
	if (h->bits >> 63 == 0)
		return NODES_NONE;
	push(h, w, node->call);
	return take_return(h, w);
}

HOT int step(struct hot *h, struct node_walk *w)
{
	uint32_t kind = NODE_EDGE_KIND(h->edge);

	/* In the order of how often they are met. */
	if (__builtin_expect(kind == NODE_COND, 1))
		return conditions(h, w);
	if (kind == NODE_RET)
		return go_back(h, w);
	if (kind == NODE_JUMP_IND || kind == NODE_CALL_IND)
		return indirect(h, w);
	switch (kind) {
	case NODE_CALLS: return calls(h, w);
	case NODE_GO: return go_on(h, w);
	case NODE_NEW: return renew(h, w);
	default: return NODES_NONE;
	}
}

/* Uses up the decisions in hand, but no further packet, so that the walk does not end in the midst
 * of packets, which flow_back.c would have to find out. */
__attribute__((noinline)) static int use_up(struct node_walk *w)
{
	const uint8_t *limit = w->limit;
	struct hot h = {0};
	int r = 0;

	load(&h, w);
	w->limit = w->trace;
	while (r == 0 && h.n > 0 && h.step < h.step_end)
		r = step(&h, w);
	save(&h, w);
	w->limit = limit;
	return r;
}

int node_walk(struct node_walk *w)
{
	/* Room for the steps of decisions in hand, each with a place, or behind a node that needs
	 * no decision; only where there is room for many steps. */
	size_t reserved = w->max_steps > 8 * DECISIONS ? 4 * DECISIONS : 0;
	struct hot h = {0};
	int r;

	do {
		load(&h, w);
		h.from = NULL;
		h.step_end -= reserved;
		do
			r = step(&h, w);
		while (__builtin_expect(r == 0 && h.step < h.step_end, 1));
		save(&h, w);
		if (r == 0 && w->n_bits > 0)
			r = use_up(w);
	} while (r == NODES_NONE && w->n_bits == 0 && node_walk_pass(w));
	assert(w->n_steps <= w->max_steps + 1 && w->n_points <= w->max_points + 1);
	return r < 0 ? r : 0;
}
