/*
 * Compiles code to nodes, found by first address, for bench_walk. Code that does not fit or cannot
 * be decoded ends the program: bench_walk measures speed only.
 */
#include "tests/bench/walk_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/base.h"

#define MAX_NODES (1u << 22)
#define MAX_CALLS (1u << 22)
#define MIN_SLOTS 4096u
#define MAX_RUN	  4096u /* instructions; also ends a jump to itself */

int nodes_init(struct nodes *n, const struct code *code)
{
	*n = (struct nodes){.code = code, .n = 1};
	n->reader = insn_reader_new();
	n->nodes = calloc(MAX_NODES, sizeof(*n->nodes));
	n->more = calloc(MAX_NODES, sizeof(*n->more));
	n->calls = calloc(MAX_CALLS, sizeof(*n->calls));
	n->slots = calloc(MIN_SLOTS, sizeof(*n->slots));
	n->n_slots = MIN_SLOTS;
	if (!n->reader || !n->nodes || !n->more || !n->calls || !n->slots)
		return -ENOMEM;
	n->nodes[0] = (struct node){.next = {LINK_MORE, LINK_MORE}};
	n->more[0].kind = NODE_END;
	return 0;
}

void nodes_done(struct nodes *n)
{
	insn_reader_free(n->reader);
	free(n->nodes);
	free(n->more);
	free(n->calls);
	free(n->slots);
}

/* The instruction at AT; an invalid instruction ends the node. */
static void read_insn(struct nodes *n, uint64_t at, struct insn *ret)
{
	size_t left = 0;
	const uint8_t *bytes = code_at(n->code, at, &left);

	if (bytes == NULL || insn_read(n->reader, INSN_MODE_64, at, bytes,
				       MIN_OF(left, (size_t)INSN_MAX_SIZE), ret) != 0)
		*ret = (struct insn){.class = INSN_FAR};
}

static void note_call(struct nodes *n, struct node_more *m, uint64_t return_address)
{
	if (n->n_calls == MAX_CALLS)
		abort();
	n->calls[n->n_calls++] = (struct node_call){.address = return_address};
	m->n_calls++;
}

/* True: the instruction was the node's last one. */
static bool ends_node(struct nodes *n, struct node_more *m, const struct insn *insn, uint64_t *at)
{
	uint64_t behind = *at + insn->size;

	*at = behind;
	switch (insn->class) {
	case INSN_JUMP: *at = insn->target; return false;
	case INSN_CALL:
		if (insn->target != behind)
			note_call(n, m, behind);
		*at = insn->target;
		return false;
	case INSN_COND:
		m->targets[0] = behind;
		m->targets[1] = insn->target;
		m->kind = NODE_COND;
		return true;
	case INSN_CALL_IND:
		note_call(n, m, behind);
		m->kind = NODE_INDIRECT;
		return true;
	case INSN_JUMP_IND: m->kind = NODE_INDIRECT; return true;
	case INSN_RET: m->kind = NODE_RET; return true;
	case INSN_FAR:
	case INSN_SYSCALL: m->kind = NODE_END; return true;
	default: return false;
	}
}

static void compile(struct nodes *n, uint32_t number, uint64_t address)
{
	struct node_more *m = &n->more[number];
	uint64_t at = address;
	struct insn insn;

	*m = (struct node_more){.address = address, .calls = n->n_calls, .kind = NODE_END};
	n->nodes[number] = (struct node){.next = {LINK_MORE, LINK_MORE}};
	do {
		read_insn(n, at, &insn);
		m->instructions++;
	} while (!ends_node(n, m, &insn, &at) && m->instructions < MAX_RUN);
}

static struct node_slot *find(const struct nodes *n, uint64_t address)
{
	uint32_t at = (uint32_t)(address * 0x9e3779b97f4a7c15ull >> 32);
	struct node_slot *s;

	do {
		s = &n->slots[at++ & (n->n_slots - 1)];
	} while (s->link != 0 && s->address != address);
	return s;
}

static void grow(struct nodes *n)
{
	struct node_slot *old = n->slots;
	uint32_t n_old = n->n_slots;

	n->n_slots *= 4;
	n->slots = calloc(n->n_slots, sizeof(*n->slots));
	if (n->slots == NULL)
		abort();
	for (uint32_t i = 0; i < n_old; i++)
		if (old[i].link != 0)
			*find(n, old[i].address) = old[i];
	free(old);
}

static uint32_t add(struct nodes *n, uint64_t address)
{
	const struct node_more *m = &n->more[n->n];
	uint32_t link = n->n << 1;

	if (n->n == MAX_NODES)
		abort();
	if (n->n >= n->n_slots / 2)
		grow(n);
	compile(n, n->n++, address);
	if (m->kind != NODE_COND || m->n_calls > 0)
		link |= LINK_MORE;
	*find(n, address) = (struct node_slot){.address = address, .link = link};
	return link;
}

uint32_t nodes_link(struct nodes *n, uint64_t address)
{
	uint32_t link = find(n, address)->link;

	return link != 0 ? link : add(n, address);
}
