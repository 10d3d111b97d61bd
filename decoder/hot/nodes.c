/*
 * Stores contents, places, and nodes by (content, offset, mode).
 *
 * A stranger's trace says which code is asked for, so the search for a node is bounded
 * (PROBES_MAX), and when MAX_BYTES are used up no new nodes are made: the stepping walk does
 * without them.
 */
#include "decoder/hot/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/hot/hot_private.h"
#include "proto/base.h"

#define TABLE_MIN  4096u
#define PROBES_MAX 256u
#define PLACES_MAX (1u << 18)
#define CODES_MAX  (1u << 16)
#define NODES_MAX  (1u << 26)
/* Nodes that are made writable at once: so many of each array are whole pages. */
#define STEP	 4096u
#define USER_END (UINT64_C(1) << 47)
/* Bytes of MAX_BYTES that a node costs, with its place in the hash table, and that its info costs.
 */
#define NODE_BYTES (sizeof(struct node) + sizeof(struct node_table) + 2 * sizeof(struct node_slot))
#define INFO_BYTES 96u

/* Reserves room that does not move. It can be read, as zero, before it is made writable: a limit on
 * writable memory (RLIMIT_DATA) counts only what was made writable. */
static void *reserve(size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Elements [OLD, NEW) of SIZE bytes, multiples of STEP. */
static bool make_writable(void *base, size_t size, uint32_t old, uint32_t new)
{
	return mprotect((char *)base + old * size, (new - old) * size, PROT_READ | PROT_WRITE) == 0;
}

static void release(void *p, size_t size)
{
	if (p)
		munmap(p, size);
}

struct nodes *nodes_new(struct graph *graph, size_t max_bytes)
{
	struct nodes *n = calloc(1, sizeof(*n));
	struct nodes_inside *in = calloc(1, sizeof(*in));
	size_t max = MIN_OF(max_bytes / (NODE_BYTES + INFO_BYTES), (size_t)NODES_MAX);
	const int writable = PROT_READ | PROT_WRITE;

	if (!n || !in) {
		free(n);
		free(in);
		return NULL;
	}
	n->inside = in;
	n->n = 1;
	n->max = (uint32_t)max;
	n->ip_end = USER_END;
	in->graph = graph;
	in->max_info_bytes = max * INFO_BYTES;
	in->n_slots = TABLE_MIN;
	n->list = reserve(max * sizeof(*n->list), PROT_READ);
	n->tables = reserve(max * sizeof(*n->tables), PROT_READ);
	n->places = reserve(PLACES_MAX * sizeof(*n->places), writable);
	in->codes = reserve(CODES_MAX * sizeof(*in->codes), writable);
	in->code_slots = reserve(2 * CODES_MAX * sizeof(*in->code_slots), writable);
	in->by_address = reserve(PLACES_MAX * sizeof(*in->by_address), writable);
	in->slots = calloc(in->n_slots, sizeof(*in->slots));
	if (n->list && n->tables && n->places && in->codes && in->code_slots && in->by_address &&
	    in->slots)
		return n;
	nodes_free(n);
	return NULL;
}

void nodes_free(struct nodes *n)
{
	struct nodes_inside *in;

	if (!n)
		return;
	in = n->inside;
	while (in->chunks) {
		struct node_chunk *next = in->chunks->next;

		free(in->chunks);
		in->chunks = next;
	}
	release(n->list, n->max * sizeof(*n->list));
	release(n->tables, n->max * sizeof(*n->tables));
	release(n->places, PLACES_MAX * sizeof(*n->places));
	release(in->codes, CODES_MAX * sizeof(*in->codes));
	release(in->code_slots, 2 * CODES_MAX * sizeof(*in->code_slots));
	release(in->by_address, PLACES_MAX * sizeof(*in->by_address));
	free(in->slots);
	free(in);
	free(n);
}

/* --- Contents and places --- */

/* The content's number; UINT32_MAX: there are too many contents. */
static uint32_t code_number(struct nodes_inside *in, const struct node_code *code)
{
	uint64_t h = ((uint64_t)code->begin ^ code->size << 40) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t mask = 2 * CODES_MAX - 1, at = (uint32_t)(h >> 40) & mask;

	for (uint32_t i = 0; in->code_slots[at] != 0; i++, at = (at + 1) & mask) {
		const struct node_code *c = &in->codes[in->code_slots[at] - 1];

		if (i == PROBES_MAX)
			return UINT32_MAX;
		if (c->begin == code->begin && c->size == code->size &&
		    c->changing == code->changing && c->ends == code->ends)
			return in->code_slots[at] - 1;
	}
	if (in->n_codes == CODES_MAX)
		return UINT32_MAX;
	in->codes[in->n_codes] = *code;
	in->code_slots[at] = ++in->n_codes;
	return in->n_codes - 1;
}

/* Index of the first place behind (CONTEXT, IP). */
static uint32_t place_bound(const struct nodes *n, uint64_t context, uint64_t ip)
{
	const uint32_t *by_address = n->inside->by_address;
	const struct node_place *p = n->places;

	return FIRST_WHERE(
		i, n->n_places,
		p[by_address[i]].context > context ||
			(p[by_address[i]].context == context && p[by_address[i]].address > ip));
}

/* The mapping that PIECE is a part of, or the piece itself, if the mapping that it names cannot be
 * right. */
static struct node_code map_of(const struct flow_code *piece, uint64_t *ret_address)
{
	uint64_t before = piece->address - piece->map_address;
	struct node_code code = {(uintptr_t)piece->bytes, piece->size, piece->changing,
				 piece->ends};

	*ret_address = piece->address;
	if (piece->map_size == 0 || before > piece->map_size ||
	    piece->size > piece->map_size - before)
		return code;
	*ret_address = piece->map_address;
	code.begin -= (uintptr_t)before;
	code.size = piece->map_size;
	return code;
}

static int add_place(struct nodes *n, uint64_t context, const struct flow_code *piece,
		     uint32_t *ret)
{
	struct nodes_inside *in = n->inside;
	uint64_t address;
	struct node_code code = map_of(piece, &address);
	uint32_t at, number;

	if (n->n_places == PLACES_MAX || code.size > UINT32_MAX)
		return NODES_NONE;
	number = code_number(in, &code);
	if (number == UINT32_MAX)
		return NODES_NONE;
	at = place_bound(n, context, address);
	memmove(&in->by_address[at + 1], &in->by_address[at],
		(n->n_places - at) * sizeof(in->by_address[0]));
	in->by_address[at] = n->n_places;
	n->places[n->n_places] = (struct node_place){.context = context,
						     .address = address,
						     .size = code.size,
						     .code = number,
						     .changing = code.changing};
	if (code.changing)
		__atomic_store_n(&n->changing, true, __ATOMIC_RELAXED);
	*ret = n->n_places;
	__atomic_store_n(&n->n_places, n->n_places + 1, __ATOMIC_RELEASE);
	return 0;
}

static int find_place(struct nodes *n, uint64_t context, uint64_t ip, uint32_t *ret)
{
	uint32_t at = place_bound(n, context, ip);
	struct flow_code code;
	int r;

	if (at > 0) {
		const struct node_place *p = &n->places[n->inside->by_address[at - 1]];

		*ret = n->inside->by_address[at - 1];
		if (p->context == context && ip - p->address < p->size)
			return 0;
	}
	r = graph_code(n->inside->graph, context, ip, &code);
	if (r != 0)
		return r < 0 ? r : NODES_NONE;
	return add_place(n, context, &code, ret);
}

/* --- Nodes by content, offset and mode --- */

static size_t slot_of(const struct nodes_inside *in, uint32_t code, uint32_t offset)
{
	uint64_t h = ((uint64_t)code << 32 | offset) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(h >> 32 ^ h >> 13) & (in->n_slots - 1);
}

/* The slot where the node is or may be put; NULL: too far from where it should be. */
static struct node_slot *find_slot(const struct nodes *n, uint32_t code, uint32_t offset,
				   uint8_t mode)
{
	const struct nodes_inside *in = n->inside;
	size_t at = slot_of(in, code, offset), i;

	for (i = 0; i < PROBES_MAX; i++, at = (at + 1) & (in->n_slots - 1)) {
		struct node_slot *s = &in->slots[at];

		if (s->number == 0 || (s->offset == offset && n->list[s->number].code == code &&
				       n->list[s->number].mode == mode))
			return s;
	}
	return NULL;
}

static int grow_slots(struct nodes *n)
{
	struct nodes_inside *in = n->inside;
	struct node_slot *old = in->slots, *grown = calloc(in->n_slots * 2, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	in->slots = grown;
	in->n_slots *= 2;
	for (uint32_t i = 1; i < n->n; i++) {
		const struct node *node = &n->list[i];
		struct node_slot *slot = find_slot(n, node->code, node->offset, node->mode);

		if (slot)
			*slot = (struct node_slot){i, node->offset};
	}
	free(old);
	return 0;
}

/* Makes room for one node more. */
static bool has_room(struct nodes *n)
{
	struct nodes_inside *in = n->inside;
	uint32_t grown = MIN_OF(in->writable + STEP, n->max);

	if (n->n < in->writable)
		return true;
	if (grown <= n->n || !make_writable(n->list, sizeof(*n->list), in->writable, grown) ||
	    !make_writable(n->tables, sizeof(*n->tables), in->writable, grown))
		return false;
	in->writable = grown;
	return true;
}

int nodes_get(struct nodes *n, uint32_t code, uint32_t offset, uint8_t mode, uint32_t *ret)
{
	struct nodes_inside *in = n->inside;
	struct node_slot *slot;

	if (n->n >= in->n_slots / 2 && grow_slots(n) != 0)
		return -ENOMEM;
	slot = find_slot(n, code, offset, mode);
	if (slot && slot->number != 0) {
		*ret = slot->number;
		return 0;
	}
	if (!slot || in->full || !has_room(n))
		return NODES_NONE;
	n->list[n->n] = (struct node){
		.self = (uint64_t)n->n << 5, .code = code, .offset = offset, .mode = mode};
	*ret = n->n;
	*slot = (struct node_slot){n->n, offset};
	__atomic_store_n(&n->n, n->n + 1, __ATOMIC_RELEASE);
	return 0;
}

int nodes_at(struct nodes *n, uint64_t context, uint8_t mode, uint64_t ip, uint32_t *ret_number,
	     uint32_t *ret_place)
{
	uint64_t end = n->ip_end;
	const struct node_place *p;
	int r = find_place(n, context, ip, ret_place);

	if (r != 0)
		return r;
	p = &n->places[*ret_place];
	/* Beyond 4 GiB targets of direct branches would depend on where the code lies. */
	if (mode != INSN_MODE_64)
		end = MIN_OF(end, UINT64_C(1) << 32);
	if (p->address + p->size > end)
		return NODES_NONE;
	return nodes_get(n, p->code, (uint32_t)(ip - p->address), mode, ret_number);
}

void nodes_lock(struct nodes *n, bool known)
{
	graph_lock(n->inside->graph, known);
}

void nodes_unlock(struct nodes *n)
{
	graph_unlock(n->inside->graph);
}

bool nodes_unlock_and_ask(struct nodes *n)
{
	return graph_unlock_and_ask(n->inside->graph);
}
