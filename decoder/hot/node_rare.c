/*
 * Does what is rare in the hot loop: compiles nodes, finds targets that were not met before, and
 * passes packets that say nothing about branches.
 */
#include <string.h>

#include "decoder/hot/hot_private.h"
#include "decoder/packet/event_read.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#define CYC_SIZE_MAX 5u /* a longer CYC is left to the stepping walk */

/* Something failed with the code that is known: whether to try again. The caller's thread asks for
 * the code that was missing, while other threads go on. */
static bool unlock_and_ask(const struct node_walk *w)
{
	if (!w->known)
		return nodes_unlock_and_ask(w->nodes);
	nodes_unlock(w->nodes);
	return false;
}

/* As nodes_compile. */
static int compile(const struct node_walk *w, uint32_t number)
{
	int r;

	if (NODE_EDGE_KIND(nodes_self(w->nodes, number)) != NODE_NEW)
		return 0;
	if (!w->compile)
		return NODES_NONE;
	do {
		nodes_lock(w->nodes, true);
		r = nodes_compile(w->nodes, number, w->place);
	} while (r < 0 ? unlock_and_ask(w) : (nodes_unlock(w->nodes), false));
	if (r >= 0 || w->known)
		return r;
	nodes_lock(w->nodes, false);
	r = nodes_compile(w->nodes, number, w->place);
	nodes_unlock(w->nodes);
	return r;
}

int node_walk_make(struct node_walk *w)
{
	uint32_t number = NODE_EDGE_NUMBER(w->edge);
	int r = compile(w, number);

	if (r != 0)
		return r;
	w->edge = nodes_self(w->nodes, number);
	return 0;
}

int node_walk_edge(struct node_walk *w, uint64_t *edge)
{
	uint32_t number = NODE_EDGE_NUMBER(w->edge), call = 0, n = 0;
	uint64_t bits = w->bits, at = w->edge;

	while (n < NODE_STRIDE && NODE_EDGE_KIND(at) == NODE_COND) {
		uint64_t next =
			__atomic_load_n(&w->nodes->list[number].link[bits >> 63], __ATOMIC_ACQUIRE);
		int r;

		if (n == w->n_bits)
			return 0;
		if (call != 0 && NODE_EDGE_CALL(next) != 0)
			break;
		call |= NODE_EDGE_CALL(next);
		number = NODE_EDGE_NUMBER(next);
		r = compile(w, number);
		if (r < 0)
			return r;
		at = nodes_self(w->nodes, number);
		n++;
		bits <<= 1;
	}
	__atomic_store_n(edge, (uint64_t)call << 32 | (uint32_t)at | n, __ATOMIC_RELEASE);
	return 0;
}

static int find_node(const struct node_walk *w, uint64_t to, uint32_t *ret_number,
		     uint32_t *ret_place)
{
	int r = nodes_at(w->nodes, w->context, w->mode, to, ret_number, ret_place);

	return r == 0 ? nodes_compile(w->nodes, *ret_number, *ret_place) : r;
}

int node_walk_target(struct node_walk *w, uint64_t to, struct node_target *ret)
{
	uint32_t number;
	int r;

	if (to >= w->ip_end || !w->compile)
		return NODES_NONE;
	do {
		nodes_lock(w->nodes, true);
		r = find_node(w, to, &number, &ret->place);
	} while (r < 0 ? unlock_and_ask(w) : (nodes_unlock(w->nodes), false));
	if (r < 0 && !w->known) {
		nodes_lock(w->nodes, false);
		r = find_node(w, to, &number, &ret->place);
		nodes_unlock(w->nodes);
	}
	if (r != 0)
		return r;
	ret->ip = to;
	ret->tag = w->tag;
	ret->edge = nodes_self(w->nodes, number);
	return 0;
}

/* --- Packets of time --- */

static size_t cyc_size(const uint8_t *pos)
{
	size_t n = 1;

	if ((pos[0] & 0x04) == 0)
		return 1;
	while (n < CYC_SIZE_MAX && (pos[n] & 0x01) != 0)
		n++;
	return n < CYC_SIZE_MAX ? n + 1 : 0;
}

/* The size of the packet of time at w->pos; 0: another packet, or an odd one. */
static size_t time_size(const struct node_walk *w)
{
	const uint8_t *pos = w->pos;

	if (*pos == PT_OPC_MTC)
		return 2;
	if (*pos == PT_OPC_TSC)
		return 1 + PT_TSC_BYTES;
	if ((*pos & PT_OPC_CYC_MASK) == PT_OPC_CYC)
		return cyc_size(pos);
	if (*pos == PT_OPC_EXT && pos[1] == PT_EXT_TMA && pos[4] == 0 && (pos[6] & 0xfe) == 0)
		return 7;
	return 0;
}

bool node_walk_pass(struct node_walk *w)
{
	bool cyc = (*w->pos & PT_OPC_CYC_MASK) == PT_OPC_CYC;
	size_t size;

	if (w->pos >= w->limit)
		return false;
	if (*w->pos == PT_OPC_PAD) {
		w->pos++;
		w->packets++;
		return true;
	}
	size = w->skip_time ? time_size(w) : 0;
	if (size == 0 || w->n_points >= w->max_points)
		return false;
	if (*w->pos == PT_OPC_TSC) {
		uint64_t tsc = 0;

		memcpy(&tsc, w->pos + 1, PT_TSC_BYTES);
		/* The event reader says what this means. */
		if (tsc < w->time)
			return false;
		w->time = tsc;
		if (w->tsc_first == 0)
			w->tsc_first = tsc;
		w->tsc_last = tsc;
		w->has_tsc = true;
	}
	w->pos += size;
	w->packets++;
	w->timed = cyc ? 2 : MAX_OF(w->timed, (uint8_t)1);
	if (!cyc)
		w->order = ORDER_OTHER;
	return true;
}
