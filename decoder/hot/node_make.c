/*
 * Compiles nodes from blocks, when the hot loop comes to a node for the first time.
 *
 * A stranger's trace says which code is asked for, so the cost of a node is bounded (NODE_PARTS,
 * INSNS_MAX), and so is the number of nodes that are looked at behind it (GO_MAX).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/hot/hot_private.h"
#include "proto/base.h"

#define INSNS_MAX GRAPH_BLOCK_MAX
#define GO_MAX	  16u

/* A node that is being made. */
struct making {
	struct nodes *n;
	const struct node_place *place;
	uint8_t mode;
	uint64_t ip;	     /* of the next block */
	uint32_t insns;	     /* of the part at hand */
	uint32_t part_start; /* offset of that part */
	uint32_t last;	     /* offset of the last instruction so far */
	uint32_t call;	     /* the node behind the call in this node; 0: none */
	bool done;
	struct node_part parts[NODE_PARTS];
	struct node_info info;
};

/* Whether IP is in the code, so that another node may begin there. */
static bool is_within(const struct making *m, uint64_t ip)
{
	return ip - m->place->address < m->place->size;
}

static uint32_t offset_of(const struct making *m, uint64_t ip)
{
	return (uint32_t)(ip - m->place->address);
}

static void end_part(struct making *m, uint8_t kind, uint8_t flags)
{
	m->parts[m->info.n_parts++] = (struct node_part){.start = m->part_start,
							 .last = m->last,
							 .insns = (uint16_t)m->insns,
							 .kind = kind,
							 .flags = flags};
	m->info.insns += m->insns;
	m->insns = 0;
}

static void end_node(struct making *m, enum node_kind kind)
{
	m->info.kind = (uint8_t)kind;
	m->done = true;
}

/* The block at m->ip is not part of the node. */
static void end_before(struct making *m)
{
	if (m->insns > 0)
		end_part(m, NODE_PLAIN, 0);
	m->info.next = offset_of(m, m->ip);
	end_node(m, m->info.n_parts > 0 ? NODE_GO : NODE_STOP);
}

static void take_insns(struct making *m, const struct graph_block *b)
{
	m->insns += b->n;
	m->last = offset_of(m, b->last);
}

/* A direct call or jump. */
static int take_direct(struct making *m, const struct graph_block *b)
{
	bool call = b->class == INSN_CALL, empty = call && b->target == b->next;
	int r = 0;

	if (!is_within(m, b->target) || (call && !is_within(m, b->next)) ||
	    (call && !empty && m->call != 0)) {
		end_before(m);
		return 0;
	}
	if (call && !empty)
		r = nodes_get(m->n, m->place->code, offset_of(m, b->next), m->mode, &m->call);
	if (r != 0) {
		end_before(m);
		return r < 0 ? r : 0;
	}
	take_insns(m, b);
	end_part(m, call ? FLOW_CALL : FLOW_JUMP, empty ? FLOW_ZERO_LENGTH : 0);
	m->info.n_direct++;
	m->ip = b->target;
	m->part_start = offset_of(m, m->ip);
	if (m->info.n_parts == NODE_PARTS - 1 || m->info.insns >= INSNS_MAX) {
		m->info.next = m->part_start;
		end_node(m, NODE_GO);
	}
	return 0;
}

/* A branch that the trace decides. */
static void take_end(struct making *m, const struct graph_block *b, enum node_kind kind)
{
	if ((kind == NODE_COND && (!is_within(m, b->target) || !is_within(m, b->next))) ||
	    (kind == NODE_CALL_IND && !is_within(m, b->next))) {
		end_before(m);
		return;
	}
	take_insns(m, b);
	end_part(m,
		 kind == NODE_COND	 ? FLOW_COND
		 : kind == NODE_RET	 ? FLOW_RET
		 : kind == NODE_JUMP_IND ? FLOW_JUMP_IND
					 : FLOW_CALL_IND,
		 0);
	m->info.next = offset_of(m, b->next);
	if (kind == NODE_COND)
		m->info.target = offset_of(m, b->target);
	end_node(m, kind);
}

/* Blocks that are not wholly in this code, or that cannot be executed, are left to the stepping
 * walk.
 */
static bool is_usable(const struct making *m, const struct graph_block *b)
{
	return b->fault == FAULT_NONE && b->n > 0 && b->changing == m->place->changing &&
	       b->next - m->place->address <= m->place->size && b->next > b->ip;
}

static int take_block(struct making *m, const struct graph_block *b)
{
	if (!is_usable(m, b)) {
		end_before(m);
		return 0;
	}
	switch (b->class) {
	case INSN_JUMP:
	case INSN_CALL: return take_direct(m, b);
	case INSN_COND: take_end(m, b, NODE_COND); break;
	case INSN_RET: take_end(m, b, NODE_RET); break;
	case INSN_JUMP_IND: take_end(m, b, NODE_JUMP_IND); break;
	case INSN_CALL_IND: take_end(m, b, NODE_CALL_IND); break;
	case INSN_FAR:
	case INSN_SYSCALL:
	case INSN_VMENTRY: end_before(m); break;
	default:
		take_insns(m, b);
		m->ip = b->next;
		if (!is_within(m, m->ip) || m->info.insns + m->insns >= INSNS_MAX)
			end_before(m);
		break;
	}
	return 0;
}

static struct node_info *keep_info(struct nodes_inside *in, const struct making *m)
{
	size_t parts = m->info.n_parts * sizeof(m->parts[0]);
	size_t size = (sizeof(m->info) + parts + 15) & ~(size_t)15;
	struct node_chunk *c = in->chunks;
	struct node_info *info;

	if (!c || NODE_CHUNK_BYTES - c->used < size) {
		c = malloc(sizeof(*c));
		if (!c)
			return NULL;
		c->next = in->chunks;
		c->used = 0;
		in->chunks = c;
		in->info_bytes += sizeof(*c);
		in->full = in->info_bytes >= in->max_info_bytes;
	}
	info = (struct node_info *)(void *)(c->bytes + c->used);
	c->used += size;
	*info = m->info;
	memcpy(info->parts, m->parts, parts);
	return info;
}

static int link_node(struct making *m, uint32_t offset, unsigned decisions, uint64_t *ret)
{
	uint32_t to;
	int r = nodes_get(m->n, m->place->code, offset, m->mode, &to);

	if (r == 0)
		*ret = (uint64_t)m->call << 32 | (uint32_t)m->n->list[to].self | decisions;
	return r;
}

/* Links the node at hand to what it leads to. */
static int link_all(struct making *m, struct node *node)
{
	int r = 0;

	switch (m->info.kind) {
	case NODE_COND:
		r = link_node(m, m->info.next, 1, &node->link[0]);
		return r == 0 ? link_node(m, m->info.target, 1, &node->link[1]) : r;
	case NODE_GO: return link_node(m, m->info.next, 0, &node->link[0]);
	case NODE_CALL_IND:
		return nodes_get(m->n, m->place->code, m->info.next, m->mode, &node->return_node);
	default: return r;
	}
}

/* Takes blocks up to the node's end. Each is only looked at: blocks are kept for the stepping walk.
 */
static int draw_up(struct making *m)
{
	union graph_room room;

	while (!m->done) {
		const struct graph_block *b = graph_look_locked(
			m->n->inside->graph, m->place->context, m->mode, m->ip, &room);
		int r = b ? take_block(m, b) : -ENOMEM;

		if (r != 0)
			return r;
	}
	return 0;
}

/* Whether the code at the place is the node's content: places may overlap where a mapping became
 * known only later. 0, NODES_NONE, -ENOMEM. */
static int look_there(struct making *m, const struct node *node)
{
	const struct nodes_inside *in = m->n->inside;
	struct flow_code piece;
	int r = graph_code(in->graph, m->place->context, m->ip, &piece);

	if (r != 0)
		return r < 0 ? r : NODES_NONE;
	return (uintptr_t)piece.bytes + (uintptr_t)(m->ip - piece.address) ==
			       in->codes[node->code].begin + node->offset
		       ? 0
		       : NODES_NONE;
}

/* Makes the node's info and links. */
static int compile_one(struct nodes *n, uint32_t number, uint32_t place)
{
	struct node *node = &n->list[number];
	struct making m = {.n = n, .place = &n->places[place], .mode = node->mode};
	int r;

	m.ip = m.place->address + node->offset;
	m.part_start = node->offset;
	m.info.code = node->code;
	m.info.mode = node->mode;
	r = look_there(&m, node);
	if (r == 0)
		r = draw_up(&m);
	if (r == 0)
		r = link_all(&m, node);
	if (r < 0)
		return r;
	if (r == NODES_NONE) {
		m.info = (struct node_info){.code = node->code, .kind = NODE_STOP, .mode = m.mode};
		m.call = 0;
	}
	node->call = m.call;
	node->info = keep_info(n->inside, &m);
	return node->info ? 0 : -ENOMEM;
}

/* Whether nodes that need no decision lead to a node that does. Otherwise they may be a circle,
 * which the stepping walk has to see from its beginning. */
static int leads_on(struct nodes *n, uint32_t number, uint32_t place, bool *ret)
{
	*ret = true;
	for (unsigned int i = 0; i < GO_MAX; i++) {
		const struct node *node = &n->list[number];
		int r = !node->info ? compile_one(n, number, place) : 0;

		if (r != 0)
			return r;
		*ret = node->info->kind != NODE_STOP;
		if (node->info->kind != NODE_GO)
			return 0;
		number = NODE_EDGE_NUMBER(node->link[0]);
	}
	*ret = false;
	return 0;
}

int nodes_compile(struct nodes *n, uint32_t number, uint32_t place)
{
	struct node *node = &n->list[number];
	bool leads = true;
	uint8_t kind;
	int r;

	if (NODE_EDGE_KIND(node->self) != NODE_NEW)
		return 0;
	r = leads_on(n, number, place, &leads);
	if (r != 0)
		return r;
	kind = leads ? node->info->kind : NODE_STOP;
	if (node->call != 0 && kind != NODE_COND && kind != NODE_GO && kind != NODE_STOP)
		kind = NODE_CALLS;
	__atomic_store_n(&node->self, node->self | (uint64_t)kind << 2, __ATOMIC_RELEASE);
	return 0;
}
